//! Leaf growth: the entries that leaves gain per message. It is 1 where all messages insert, 0 where all
//! overwrite, negative where deletes prevail.
//!
//! Pending messages do not tell by how much they change the number of entries, since most writes are blind.
//! The recent messages that reached leaves are the best guess, and good enough for an estimate.

use pando_environment::sync::atomic::{AtomicI64, Ordering};

use crate::tree::leaf_merge::LeafFigures;

/// The fixed-point representation of 1.
const ONE: i64 = 1 << 16;
/// The weight of all earlier messages together, in messages.
const MEMORY: i64 = 8_000;

/// The entries that leaves gained per message recently, in fractions of [`ONE`].
#[derive(Debug)]
pub(crate) struct Growth(AtomicI64);

impl Default for Growth {
    /// Without any experience, every message counts as an insert.
    fn default() -> Growth {
        Growth(AtomicI64::new(ONE))
    }
}

impl Growth {
    /// Notes the result of a flush into leaves. One flush of a tree is under way at a time.
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
        // The weighted mean lies between the two, which are both within -ONE and ONE.
        self.0.store(after as i64, Ordering::Relaxed);
    }

    /// The entries (or bytes) that pending ones will add to the leaves.
    pub(crate) fn of(&self, pending: u64) -> i64 {
        let growth = i128::from(self.0.load(Ordering::Relaxed));
        i64::try_from(i128::from(pending) * growth / i128::from(ONE)).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::leaf_growth::*;

    fn merged(entries_before: u64, messages: u64, entries: u64) -> LeafFigures {
        LeafFigures { leaves: 1, entries, entries_before, messages }
    }

    #[test]
    fn pending_messages_count_as_the_recent_ones_did() {
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
