//! Flush debt of one tree: the places where messages are overdue, and the quota of each level.
//!
//! Two sources add places: flushes that stopped at their step limit, and ranges that reads had to merge
//! repeatedly ([`wanted_by_reads`]).
//!
//! # Quotas
//! Messages become due in waves, since the children of a node are filled by the same flushes. The work of
//! every second should stay the same. So each level of a tree takes about as many bytes down as flushes
//! bring, however many are due. A wave adds to the debt, a trough repays it.
//!
//! - *To leaves*, most of the work: 0.7 of the incoming bytes when the debt is small, rising with the debt
//!   ([`quota_to_leaves`]). The debt settles at 16 flushes' worth, 8 MB at most.
//! - *From node to node*: at least as many bytes as come in. Pending messages there are read as a whole, so
//!   more debt would take more memory in a step.
//!
//! A child with very many pending bytes is flushed without a quota, too
//! ([`flush_policy`](crate::tree::flush_policy)), and the level owes these bytes then. Otherwise, where all
//! writes go to a few leaves, it would wait until its step is a long one. While no message is overdue,
//! incoming bytes add to the quota for a few steps only. Steps of idle times ([`Payment::Free`]) use no
//! quota.

use std::collections::VecDeque;

use crate::tree::flush::Overdue;
use crate::tree::node::{Child, InnerNode};
use crate::tree::view::TreeView;

/// Places that are remembered on one level of a tree. More are found again by the next flush there; without
/// one they wait, as all messages do that are not due.
const PLACES_MAX: usize = 256;
/// Bytes of quota that are kept while no message is overdue: they bound the rate with which a wave begins.
const QUOTA_IDLE_MAX: usize = 512 << 10;
/// The same while messages are overdue. Steps that could not run because other threads held the tree cause no
/// wave either.
const QUOTA_OVERDUE_MAX: usize = 4 << 20;
/// Bytes that a level owes at most: the usual number of overdue bytes.
const OWED_MAX: usize = USUAL_MAX;
/// The usual number of bytes overdue at leaves: this multiple of the bytes of a flush, and [`USUAL_MAX`] at
/// most.
const USUAL_FLUSHES: usize = 16;
const USUAL_MAX: usize = 8 << 20;
/// The quota in thousandths of the incoming bytes: without debt, the increase for each usual debt, and the
/// maximum.
const PART_LEAST: u128 = 700;
const PART_MORE: u128 = 300;
const PART_MOST: u128 = 1_500;
/// Overdue bytes above leaves from which on the quota is 1.5 times the incoming bytes.
const OVERDUE_MUCH: usize = 16 << 20;

/// Levels that are told apart; higher ones count as the highest. A tree of this height has a million leaves
/// with the least fanout, and 10^15 with the usual one.
const LEVELS: usize = 10;

/// Bytes of messages that were flushed from nodes, by height, without appends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved([usize; LEVELS]);

impl Moved {
    pub(crate) fn add(&mut self, height: u8, bytes: usize) {
        self.0[level_of(height)] += bytes;
    }

    /// Subtracts bytes that were added before.
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

/// The quota to leaves for the bytes that a flush brings, with this many bytes overdue. It equals them at the
/// usual debt.
fn quota_to_leaves(arrived: usize, overdue: usize) -> usize {
    let usual = arrived.saturating_mul(USUAL_FLUSHES).clamp(1, USUAL_MAX);
    let part = (PART_LEAST + PART_MORE * overdue as u128 / usual as u128).min(PART_MOST);
    (arrived as u128 * part / 1_000) as usize
}

/// The same from node to node.
fn quota_to_nodes(arrived: usize, overdue: usize) -> usize {
    let haste = arrived as u128 * overdue.min(OVERDUE_MUCH) as u128 / (2 * OVERDUE_MUCH as u128);
    arrived + (arrived / 16).max(haste as usize)
}

/// The source of the bytes that pay for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payment {
    /// The bytes that flushes brought.
    Quota,
    /// No payment: the store is idle, or a caller waits for the step.
    Free,
}

/// See the module's head. Its lock is held for instants only.
#[derive(Debug, Default)]
pub(crate) struct FlushDebt {
    /// The lowest first.
    levels: [Level; LEVELS],
}

#[derive(Debug, Default)]
struct Level {
    overdue: VecDeque<Overdue>,
    /// Bytes that are due at these places.
    bytes: usize,
    /// Negative where flushes took more down than came in.
    quota: isize,
}

impl FlushDebt {
    /// Notes the bytes that a flush brought, those that it flushed from nodes, and the places that it left
    /// overdue.
    pub(crate) fn note(&mut self, arrived: usize, moved: Moved, overdue: Vec<Overdue>) {
        for (at, (level, moved)) in self.levels.iter_mut().zip(moved.0).enumerate() {
            let quota_for = if at == level_of(1) { quota_to_leaves } else { quota_to_nodes };
            let quota = level.quota.saturating_add_unsigned(quota_for(arrived, level.bytes));
            level.quota = quota.saturating_sub_unsigned(moved);
        }
        for overdue in overdue {
            self.levels[level_of(overdue.height)].remember(overdue);
        }
        for level in &mut self.levels {
            let most = if level.overdue.is_empty() { QUOTA_IDLE_MAX } else { QUOTA_OVERDUE_MAX };
            level.quota = level.quota.clamp(-(OWED_MAX as isize), most as isize);
        }
    }

    /// The bytes that a flush may take down to leaves: the quota with its own bytes, but no more than it
    /// brings.
    pub(crate) fn allowed_to_leaves(&self, arriving: usize) -> usize {
        let leaves = &self.levels[level_of(1)];
        let quota = leaves.quota.saturating_add_unsigned(quota_to_leaves(arriving, leaves.bytes));
        arriving.min(quota.max(0).unsigned_abs())
    }

    /// Overdue bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.levels.iter().map(|level| level.bytes).sum()
    }

    /// Whether a step is due that flushes have paid for.
    pub(crate) fn is_due(&self) -> bool {
        self.levels.iter().any(Level::is_due)
    }

    /// Places that are remembered.
    pub(crate) fn places(&self) -> usize {
        self.levels.iter().map(|level| level.overdue.len()).sum()
    }

    /// The place for the next step: the lowest, so that messages from above find room. It has a quota, if it
    /// needs one.
    pub(crate) fn take(&mut self, payment: Payment) -> Option<Overdue> {
        let is_next = |level: &&mut Level| payment == Payment::Free || level.is_due();
        self.levels.iter_mut().filter(is_next).find_map(Level::take)
    }
}

impl Level {
    fn is_due(&self) -> bool {
        self.quota > 0 && !self.overdue.is_empty()
    }

    fn take(&mut self) -> Option<Overdue> {
        let overdue = self.overdue.pop_front()?;
        self.bytes -= overdue.bytes;
        Some(overdue)
    }

    fn remember(&mut self, overdue: Overdue) {
        let known =
            self.overdue.iter().position(|known| known.height == overdue.height && known.key == overdue.key);
        match known {
            Some(at) => {
                self.bytes = self.bytes - self.overdue[at].bytes + overdue.bytes;
                self.overdue[at].bytes = overdue.bytes;
                if overdue.bytes == 0 {
                    self.overdue.remove(at);
                }
            }
            None if overdue.bytes > 0 && self.overdue.len() < PLACES_MAX => {
                self.bytes += overdue.bytes;
                self.overdue.push_back(overdue);
            }
            None => {}
        }
    }
}

/// A child whose slices reads had to merge often: a key that it covers, and the height of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) key: Box<[u8]>,
    pub(crate) height: u8,
}

/// The children in resident nodes whose slices reads had to merge often, up to a bound. Those nearest to the
/// root come first, since their messages are merged with those pending below.
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
    use crate::tree::flush_debt::*;

    fn overdue(key: u8, bytes: usize) -> Overdue {
        Overdue { key: [key].into(), height: 1, bytes }
    }

    fn moved(bytes: usize) -> Moved {
        let mut moved = Moved::default();
        moved.add(1, bytes);
        moved
    }

    #[test]
    fn overdue_messages_are_flushed_as_far_as_incoming_bytes_give_a_quota() {
        let mut debt = FlushDebt::default();
        debt.note(1_000, moved(0), vec![overdue(1, 700), overdue(2, 300)]);
        assert!(debt.is_due());
        assert_eq!(debt.bytes(), 1_000);
        assert_eq!(debt.take(Payment::Quota), Some(overdue(1, 700)));
        debt.note(0, moved(700), Vec::new());
        assert!(!debt.is_due(), "the quota is used up");
        assert_eq!(debt.bytes(), 300);
        debt.note(1_000, moved(0), vec![overdue(2, 400)]);
        assert_eq!(debt.bytes(), 400, "a place is known once");
        assert_eq!(debt.take(Payment::Quota), Some(overdue(2, 400)));
        debt.note(0, moved(0), vec![overdue(3, 50), overdue(4, 60)]);
        debt.note(0, moved(0), vec![overdue(3, 0), overdue(5, 0)]);
        assert_eq!((debt.bytes(), debt.places()), (60, 1), "a flush has been there meanwhile");
    }

    #[test]
    fn the_quota_grows_with_the_overdue_bytes() {
        assert_eq!(quota_to_leaves(1_600, 0), 1_120);
        assert_eq!(quota_to_leaves(1_600, 16 * 1_600), 1_600);
        assert_eq!(quota_to_leaves(1_600, 32 * 1_600), 2_080);
        assert_eq!(quota_to_leaves(1_600, usize::MAX), 2_400);
        assert_eq!(quota_to_leaves(1 << 29, usize::MAX), (1 << 29) + (1 << 28));
        assert_eq!(quota_to_leaves(1 << 22, 8 << 20), 1 << 22, "however large flushes are");
        assert_eq!(quota_to_leaves(0, 0), 0);
        assert_eq!(quota_to_nodes(1_600, 0), 1_700);
        assert_eq!(quota_to_nodes(1_600, OVERDUE_MUCH / 2), 2_000);
        assert_eq!(quota_to_nodes(1_600, OVERDUE_MUCH), 2_400);
        assert_eq!(quota_to_nodes(1 << 29, usize::MAX), (1 << 29) + (1 << 28));
    }

    #[test]
    fn a_flush_may_take_the_quota_to_leaves_but_no_more_than_it_brings() {
        let mut debt = FlushDebt::default();
        assert_eq!(debt.allowed_to_leaves(1_000), 700);
        debt.note(1_000, moved(900), Vec::new());
        assert_eq!(debt.allowed_to_leaves(1_000), 500);
        debt.note(0, moved(10_000), Vec::new());
        assert_eq!(debt.allowed_to_leaves(1_000), 0, "something is owed");
        debt.note(100_000, moved(0), vec![overdue(1, 1 << 20)]);
        assert_eq!(debt.allowed_to_leaves(1_000), 1_000);
        debt.note(0, moved(1 << 30), Vec::new());
        assert_eq!(debt.allowed_to_leaves(64 << 20), quota_to_leaves(64 << 20, 1 << 20) - OWED_MAX);
    }

    #[test]
    fn bytes_that_came_while_nothing_was_overdue_pay_for_a_few_steps_only() {
        let mut debt = FlushDebt::default();
        debt.note(1 << 30, moved(0), Vec::new());
        debt.note(0, moved(0), (0..9).map(|key| overdue(key, 100 << 10)).collect());
        let mut steps = 0;
        while debt.is_due() {
            let step = debt.take(Payment::Quota).expect("something is due");
            debt.note(0, moved(step.bytes), Vec::new());
            steps += 1;
        }
        assert_eq!(steps, 6);
    }

    #[test]
    fn each_level_has_a_quota_of_its_own() {
        let mut debt = FlushDebt::default();
        let mut upper = moved(3_000);
        upper.add(2, 100);
        let high = Overdue { height: 2, ..overdue(1, 50) };
        debt.note(1_000, upper, vec![overdue(1, 700), high.clone()]);
        assert_eq!(debt.take(Payment::Quota), Some(high), "only the upper level has a quota");
        assert_eq!((debt.take(Payment::Quota), debt.places()), (None, 1));
        assert!(!debt.is_due());
        assert_eq!(debt.take(Payment::Free), Some(overdue(1, 700)), "a free step needs no quota");
        debt.note(16, Moved::default(), vec![Overdue { height: 200, ..overdue(9, 1) }]);
        assert!(debt.is_due(), "however high");
    }

    #[test]
    fn waves_of_due_messages_are_flushed_evenly() {
        // The due bytes alternate between half and one and a half of the incoming bytes, every eight flushes.
        // A step flushes one place.
        let (mut debt, mut pending, mut most) = (FlushDebt::default(), 0_usize, 0);
        let mut sent_by_flush = Vec::new();
        for flush in 0..4_000_usize {
            let arrived = 512 << 10;
            pending += if flush / 8 % 2 == 0 { arrived / 2 } else { arrived / 2 * 3 };
            let mut sent = pending.min(debt.allowed_to_leaves(arrived));
            let places = (pending - sent) / (80 << 10);
            let left = (0..places.min(PLACES_MAX)).map(|place| overdue(place as u8, 80 << 10));
            debt.note(arrived, moved(sent), left.collect());
            while debt.is_due() {
                let step = debt.take(Payment::Quota).expect("something is due");
                sent += step.bytes;
                debt.note(0, moved(step.bytes), Vec::new());
            }
            pending = pending.saturating_sub(sent);
            if flush >= 1_000 {
                most = most.max(pending);
                sent_by_flush.push(sent as f64 / arrived as f64);
            }
        }
        assert!(most < 16 << 20, "{most} bytes were overdue");
        // The bytes flushed in eight flushes together.
        let waves: Vec<f64> = sent_by_flush.chunks(8).map(|wave| wave.iter().sum::<f64>() / 8.0).collect();
        let least = waves.iter().copied().fold(f64::MAX, f64::min);
        let most = waves.iter().copied().fold(0.0, f64::max);
        assert!(least > 0.9 && most < 1.1, "{least} to {most} of the incoming bytes were flushed");
    }
}
