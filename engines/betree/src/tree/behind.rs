//! Where in a tree something waits that should go down, beside what flushes bring: what they left behind, and what reads had to
//! merge again and again.
//!
//! # Credit
//! On every level of a tree a little more may go down than flushes bring, in the flush or in the steps after it: a sixteenth more, and up to
//! half as much again the more is late there. So what is late becomes less on the whole, and a flush is never followed by more work than it is
//! worth.
//!
//! Children become due in waves, since they were filled by the same flushes, and a wave that is paid for at once is seconds in which commits
//! wait. So it is let run up, and what comes while nothing is late pays for a few steps only.

use std::collections::VecDeque;

use super::flush::Late;
use super::node::{Child, InnerNode};
use super::view::TreeView;

/// Places that are remembered on one level of a tree; more are found again when a flush comes by them. What no flush comes by any more waits,
/// as all that is not due does.
const PLACES_MAX: usize = 256;
/// Bytes of credit that are kept while nothing is late: a wave begins with no more haste than that.
const CREDIT_MAX: usize = 512 << 10;
/// The same while something is late: what could not go down, because others were at the tree, say, is no reason for a wave either.
const CREDIT_LATE_MAX: usize = 4 << 20;
/// Bytes that are owed at most.
const OWED_MAX: usize = 64 << 20;
/// Bytes that are late on a level, in the places that are remembered, from which on half as much again goes down as comes.
const LATE_MUCH: usize = 16 << 20;

/// Levels that are told apart: a tree with the least fanout and as many has up to a million leaves, with the usual one 10^15. Higher ones count
/// as the highest.
const LEVELS: usize = 10;

/// Bytes of messages that went down from nodes, by height, but what was appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved([usize; LEVELS]);

impl Moved {
    pub(crate) fn add(&mut self, height: u8, bytes: usize) {
        self.0[level_of(height)] += bytes;
    }

    /// Takes back what was added before.
    pub(crate) fn remove(&mut self, height: u8, bytes: usize) {
        let moved = &mut self.0[level_of(height)];
        *moved = moved.checked_sub(bytes).expect("it was added before");
    }

    /// To leaves.
    #[cfg(test)]
    pub(crate) fn to_leaves(self) -> usize {
        self.0[level_of(1)]
    }
}

fn level_of(height: u8) -> usize {
    usize::from(height.max(1) - 1).min(LEVELS - 1)
}

/// What may go down for so many bytes that a flush brings, where so many are late.
fn credit_for(arrived: usize, late: usize) -> usize {
    let haste = arrived as u128 * late.min(LATE_MUCH) as u128 / (2 * LATE_MUCH as u128);
    arrived + (arrived / 16).max(haste as usize)
}

/// See the module's head. Guarded by a lock of its own, which nothing is done under.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// The lowest first.
    levels: [Level; LEVELS],
}

#[derive(Debug, Default)]
struct Level {
    late: VecDeque<Late>,
    /// Bytes that are due at these places.
    bytes: usize,
    /// Less than nothing where a flush sent down more than came.
    credit: isize,
}

impl Behind {
    /// Notes what a flush brought, what of it (or of what waited) went down, and what it left.
    pub(crate) fn note(&mut self, arrived: usize, moved: Moved, late: Vec<Late>) {
        for (level, moved) in self.levels.iter_mut().zip(moved.0) {
            level.credit = level
                .credit
                .saturating_add_unsigned(credit_for(arrived, level.bytes))
                .saturating_sub_unsigned(moved);
        }
        for late in late {
            self.levels[level_of(late.height)].remember(late);
        }
        for level in &mut self.levels {
            let most = if level.late.is_empty() { CREDIT_MAX } else { CREDIT_LATE_MAX };
            level.credit = level.credit.clamp(-(OWED_MAX as isize), most as isize);
        }
    }

    /// Bytes that are late.
    pub(crate) fn bytes(&self) -> usize {
        self.levels.iter().map(|level| level.bytes).sum()
    }

    /// Whether a step is due that flushes have paid for.
    pub(crate) fn is_due(&self) -> bool {
        self.levels.iter().any(Level::is_due)
    }

    /// Places that are remembered.
    pub(crate) fn places(&self) -> usize {
        self.levels.iter().map(|level| level.late.len()).sum()
    }

    /// The place for the next step that is paid for: the lowest, so that what comes from above finds room.
    pub(crate) fn take_paid(&mut self) -> Option<Late> {
        self.levels.iter_mut().find(|level| level.is_due())?.take()
    }

    /// The place for the next step, paid for or not; the lowest.
    pub(crate) fn take(&mut self) -> Option<Late> {
        self.levels.iter_mut().find_map(Level::take)
    }
}

impl Level {
    fn is_due(&self) -> bool {
        self.credit > 0 && !self.late.is_empty()
    }

    fn take(&mut self) -> Option<Late> {
        let late = self.late.pop_front()?;
        self.bytes -= late.bytes;
        Some(late)
    }

    fn remember(&mut self, late: Late) {
        if let Some(known) =
            self.late.iter_mut().find(|known| known.key == late.key && known.height == late.height)
        {
            self.bytes = self.bytes - known.bytes + late.bytes;
            known.bytes = late.bytes;
        } else if self.late.len() < PLACES_MAX {
            self.bytes += late.bytes;
            self.late.push_back(late);
        }
    }
}

/// A child that reads wanted drained: a key that it covers, and the height of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) key: Box<[u8]>,
    pub(crate) height: u8,
}

/// The children in the nodes in memory for which so many reads had to merge slices, a few at most; those nearest to the root first,
/// for what goes down there joins what waits below.
pub(crate) fn wanted_by_reads(view: &TreeView) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    if let Some(Child::Inner(root)) = &view.version.root
        && let Some(node) = root.loaded()
    {
        collect_wanted(node, &[], &mut wanted);
    }
    wanted.sort_by_key(|wanted| std::cmp::Reverse(wanted.height));
    wanted
}

fn collect_wanted(node: &InnerNode, lower: &[u8], wanted: &mut Vec<Wanted>) {
    for (at, child) in node.children().iter().enumerate() {
        if wanted.len() >= PLACES_MAX {
            return;
        }
        let begins = if at == 0 { lower } else { node.pivots().get(at) };
        if !node.slices(at).is_empty() && node.is_wanted(at) {
            wanted.push(Wanted { key: begins.into(), height: node.height() });
        }
        if let Child::Inner(slot) = child
            && let Some(below) = slot.loaded()
        {
            collect_wanted(below, begins, wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(key: u8, bytes: usize) -> Late {
        Late { key: [key].into(), height: 1, bytes }
    }

    fn moved(bytes: usize) -> Moved {
        let mut moved = Moved::default();
        moved.add(1, bytes);
        moved
    }

    #[test]
    fn what_is_late_is_sent_down_a_little_faster_than_more_comes() {
        let mut behind = Behind::default();
        behind.note(1_000, moved(1_000), vec![late(1, 700), late(2, 300)]);
        assert!(behind.is_due());
        assert_eq!(behind.bytes(), 1_000);
        assert_eq!(behind.take_paid(), Some(late(1, 700)));
        behind.note(0, moved(600), Vec::new());
        assert!(!behind.is_due(), "the credit is used up");
        assert_eq!(behind.bytes(), 300);
        behind.note(1_000, moved(0), vec![late(2, 400)]);
        assert_eq!(behind.bytes(), 400, "a place is known once");
        assert_eq!(behind.take_paid(), Some(late(2, 400)));
        assert!(!behind.is_due());
    }

    #[test]
    fn the_more_is_late_the_more_goes_down_up_to_half_as_much_again_as_comes() {
        assert_eq!(credit_for(1_600, 0), 1_700);
        assert_eq!(credit_for(1_600, LATE_MUCH / 2), 2_000);
        assert_eq!(credit_for(1_600, LATE_MUCH), 2_400);
        assert_eq!(credit_for(1 << 29, usize::MAX), (1 << 29) + (1 << 28));
    }

    #[test]
    fn what_came_while_nothing_was_late_pays_only_for_a_little_haste() {
        let mut behind = Behind::default();
        behind.note(1 << 30, moved(0), Vec::new());
        behind.note(0, moved(0), (0..9).map(|key| late(key, 100 << 10)).collect());
        let mut steps = 0;
        while behind.is_due() {
            let step = behind.take_paid().expect("something is due");
            behind.note(0, moved(step.bytes), Vec::new());
            steps += 1;
        }
        assert_eq!(steps, 6);
    }

    #[test]
    fn a_flush_that_moves_more_than_the_kept_credit_still_pays_for_what_it_left() {
        let mut behind = Behind::default();
        behind.note(2 << 20, moved(2 << 20), vec![late(1, 10 << 20)]);
        assert!(behind.is_due());
    }

    #[test]
    fn each_level_is_paid_for_what_goes_through_it() {
        let mut behind = Behind::default();
        let mut upper = moved(3_000);
        upper.add(2, 100);
        let high = Late { height: 2, ..late(1, 50) };
        behind.note(1_000, upper, vec![late(1, 700), high.clone()]);
        assert_eq!(behind.take_paid(), Some(high), "only the upper level has credit");
        assert_eq!((behind.take_paid(), behind.places()), (None, 1));
        assert!(!behind.is_due());
        assert_eq!(behind.take(), Some(late(1, 700)), "who wants all that is late gets it");
        behind.note(16, Moved::default(), vec![Late { height: 200, ..late(9, 1) }]);
        assert!(behind.is_due(), "however high");
    }

    #[test]
    fn waves_of_what_is_due_run_up_and_are_caught_up_with() {
        // What is due goes up and down by half around what comes, for 40 flushes each; a step sends down a place.
        let (mut behind, mut waiting, mut most) = (Behind::default(), 0_usize, 0);
        for flush in 0..4_000_usize {
            let arrived = 1 << 20;
            waiting += if flush / 40 % 2 == 0 { arrived / 2 } else { arrived / 2 * 3 };
            let mut sent = waiting.min(arrived);
            let places = (waiting - sent) / (80 << 10);
            let left = (0..places.min(PLACES_MAX)).map(|place| late(place as u8, 80 << 10));
            behind.note(arrived, moved(sent), left.collect());
            while behind.is_due() {
                let step = behind.take_paid().expect("something is due");
                sent += step.bytes;
                behind.note(0, moved(step.bytes), Vec::new());
            }
            waiting = waiting.saturating_sub(sent);
            most = most.max(waiting);
            assert!(sent <= arrived / 2 * 3 + CREDIT_MAX + (80 << 10), "{sent} bytes in one flush");
        }
        assert!(most < 24 << 20, "{most} bytes were late");
    }
}
