//! How much leaves grow by what is merged into them: 1 where all is new, 0 where all overwrites, below where much is deleted.
//!
//! Writes that wait in buffers and runs say nothing of what they will do to a tree's number of entries: most are blind. What
//! the last ones did that reached leaves is the best guess, and good enough for an estimate.

use pando_environment::sync::atomic::{AtomicI64, Ordering};

use crate::tree::leaf_merge::LeafFigures;

/// What stands for 1.
const ONE: i64 = 1 << 16;
/// So many messages count as much as all before them.
const MEMORY: i64 = 8_000;

/// Entries of leaves gained for each message, lately, in fractions of [`ONE`].
#[derive(Debug)]
pub(crate) struct Growth(AtomicI64);

impl Default for Growth {
    /// Nothing is known: all is taken for new.
    fn default() -> Growth {
        Growth(AtomicI64::new(ONE))
    }
}

impl Growth {
    /// Notes what a flush did to leaves. One flush of a tree is under way at a time.
    pub(crate) fn note(&self, leaves: LeafFigures) {
        let messages = i64::try_from(leaves.messages).unwrap_or(i64::MAX / 2).min(1 << 40);
        if messages == 0 {
            return;
        }
        let gained = i128::from(leaves.entries) - i128::from(leaves.entries_before);
        let sample =
            (gained * i128::from(ONE) / i128::from(messages)).clamp(-i128::from(ONE), i128::from(ONE));
        let before = i128::from(self.0.load(Ordering::Relaxed));
        let (old, new) = (i128::from(MEMORY), i128::from(messages));
        let after = (before * old + sample * new) / (old + new);
        // Between the two of them, which are between -ONE and ONE.
        self.0.store(after as i64, Ordering::Relaxed);
    }

    /// What so many entries (or bytes) on their way will add to the leaves.
    pub(crate) fn of(&self, waiting: u64) -> i64 {
        let growth = i128::from(self.0.load(Ordering::Relaxed));
        i64::try_from(i128::from(waiting) * growth / i128::from(ONE)).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::leaf_growth::*;

    fn merged(entries_before: u64, messages: u64, entries: u64) -> LeafFigures {
        LeafFigures { leaves: 1, entries, entries_before, messages }
    }

    #[test]
    fn what_waits_counts_as_what_came_before_it_did() {
        let growth = Growth::default();
        assert_eq!(growth.of(1_000), 1_000);
        (0..100).for_each(|_| growth.note(merged(50_000, 10_000, 50_000)));
        assert_eq!(growth.of(1_000), 0, "all overwrites");
        (0..100).for_each(|_| growth.note(merged(50_000, 10_000, 55_000)));
        assert!((490..=500).contains(&growth.of(1_000)), "half is new");
        (0..100).for_each(|_| growth.note(merged(50_000, 10_000, 40_000)));
        assert!((-1_000..=-990).contains(&growth.of(1_000)), "all deletes");
    }

    #[test]
    fn absurd_figures_stay_within_bounds() {
        let growth = Growth::default();
        growth.note(merged(u64::MAX, u64::MAX, 0));
        growth.note(merged(0, 1, u64::MAX));
        assert!((-1_000..=1_000).contains(&growth.of(1_000)));
        growth.note(merged(7, 0, 7));
    }
}
