//! Where in a tree something waits that should go down, beside what flushes bring: what they left behind, and what reads had to
//! merge again and again.
//!
//! # Credit
//! For every byte that a flush brings one and a half may go down to leaves, in the flush or in the steps after it. So what is late
//! becomes less on the whole, and a flush is never followed by more work than it is worth.

use std::collections::VecDeque;

use super::flush::Late;
use super::node::{Child, InnerNode};
use super::view::TreeView;

/// Places that are remembered of one tree; more are found again once these are done.
const PLACES_MAX: usize = 256;
/// Bytes of credit that are kept at most, for bytes of messages: what comes late after a long time is no reason for haste.
const CREDIT_MAX: usize = 64 << 20;

/// See the module's head. Guarded by a lock of its own, which nothing is done under.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    late: VecDeque<Late>,
    /// Bytes that are due at these places.
    bytes: usize,
    credit: usize,
}

impl Behind {
    /// Notes what a flush brought, what of it (or of what waited) reached leaves, and what it left.
    pub(crate) fn note(&mut self, arrived: usize, moved: usize, late: Vec<Late>) {
        self.credit = (self.credit + arrived / 2 * 3).min(CREDIT_MAX).saturating_sub(moved);
        for late in late {
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

    /// Bytes that are late.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a step is due that flushes have paid for.
    pub(crate) fn is_due(&self) -> bool {
        self.credit > 0 && !self.late.is_empty()
    }

    /// The place for the next step.
    pub(crate) fn take(&mut self) -> Option<Late> {
        let late = self.late.pop_front()?;
        self.bytes -= late.bytes;
        Some(late)
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

    #[test]
    fn what_is_late_is_sent_down_as_fast_as_one_and_a_half_times_what_comes() {
        let mut behind = Behind::default();
        behind.note(1_000, 1_000, vec![late(1, 700), late(2, 300)]);
        assert!(behind.is_due());
        assert_eq!(behind.bytes(), 1_000);
        assert_eq!(behind.take(), Some(late(1, 700)));
        behind.note(0, 600, Vec::new());
        assert!(!behind.is_due(), "the credit is used up");
        assert_eq!(behind.bytes(), 300);
        behind.note(1_000, 0, vec![late(2, 400)]);
        assert_eq!(behind.bytes(), 400, "a place is known once");
        assert_eq!(behind.take(), Some(late(2, 400)));
        assert!(!behind.is_due());
    }
}
