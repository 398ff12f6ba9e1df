//! What is in somebody's hands for a while, and counts against the limit of memory.
//!
//! | account | what | how long |
//! |---|---|---|
//! | *work* | of merges: messages with the pages that they lie in, pages of leaves that are written anew, blocks that are about to be written; of loads: the open leaf, the list of leaves | a step; a load |
//! | *batches* | of cursors: entries that were fetched and not delivered | as long as the client lets the cursor wait |
//! | *lent* | of callers: what index builds sort in, what the server keeps of a waiting cursor beside its batch | as long as they hold it |
//!
//! Work comes and goes many times a second. Were it counted as it is, pages would be dropped and read again as often: what counts is the most that
//! there was of it lately.
//!
//! # Bounds
//! - Of lent memory a quarter of the limit, and 1 MiB for each caller beyond that; who wants no more than 1 MiB gets it, and takes nothing of the
//!   others' quarter.
//! - Of batches an eighth, and one batch: beyond, each gets 16 KiB at a time, too little to be counted each; who keeps many such cursors borrows for
//!   them. A document that is larger is delivered all the same.
//! - Of work what a step takes ([`crate::tree::flush`]), for each thread that merges.

use pando_environment::sync::atomic::{AtomicUsize, Ordering};
use pando_storage::{Batch, BatchLimits, HeldMemory, MemoryAccount};

/// The part of the limit that may be lent altogether, and to one caller.
const LENT_SHARE: usize = 4;
const LENT_SHARE_OF_ONE: usize = 8;
/// The part of the limit that batches of cursors may have.
const BATCHES_SHARE: usize = 8;
/// Beside one cursor others may have as much as one, however little memory there is.
const BATCHES_LEAST: usize = BatchLimits::LARGEST.bytes_max;
/// Entries in a batch beyond that.
const NARROW_ENTRIES: usize = 256;
/// So much is lent to everybody, or sorting would end in tiny runs. Less is wanted by many, and at any moment: pages make room for it when they are
/// next looked at.
pub(crate) const LENT_LEAST: usize = 1 << 20;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct MemoryAccounts {
    work: MemoryAccount,
    /// The most work since the last look, and what counts since then.
    most: AtomicUsize,
    counted: AtomicUsize,
    pub(crate) batches: MemoryAccount,
    /// To those who can do with less.
    lent: MemoryAccount,
    /// To those who want little, and need it.
    lent_little: MemoryAccount,
}

impl MemoryAccounts {
    /// Counts so many bytes as work, until what this returns is dropped.
    pub(crate) fn hold(&self, bytes: usize) -> HeldMemory {
        let held = self.work.hold(bytes);
        self.most.fetch_max(self.work.bytes(), Ordering::Relaxed);
        held
    }

    /// It is so much work now.
    pub(crate) fn set(&self, held: &mut HeldMemory, bytes: usize) {
        held.set(bytes);
        self.most.fetch_max(self.work.bytes(), Ordering::Relaxed);
    }

    /// Lends as much as is wanted, or what its part of the limit leaves.
    pub(crate) fn lend(&self, wanted: usize, limit: usize) -> HeldMemory {
        if wanted <= LENT_LEAST {
            return self.lent_little.hold(wanted);
        }
        let wanted = wanted.min(limit / LENT_SHARE_OF_ONE).max(LENT_LEAST);
        self.lent.hold_within(LENT_LEAST, wanted, limit / LENT_SHARE)
    }

    /// What is to go into a batch, which gives back what it has where all have their part.
    pub(crate) fn batch_limits(&self, wanted: BatchLimits, limit: usize, batch: &mut Batch) -> BatchLimits {
        let others = self.batches.bytes().saturating_sub(batch.counted_bytes());
        if batch.is_owned() || others <= (limit / BATCHES_SHARE).max(BATCHES_LEAST) {
            return wanted;
        }
        if batch.counted_bytes() > 0 {
            *batch = Batch::new();
        }
        wanted.within(BatchLimits { entries_max: NARROW_ENTRIES, ..BatchLimits::FIRST })
    }

    /// Bytes that count.
    pub(crate) fn bytes(&self) -> usize {
        self.working_bytes() + self.batches.bytes() + self.lent_bytes()
    }

    /// Of work: the most that there was lately.
    pub(crate) fn working_bytes(&self) -> usize {
        self.counted.load(Ordering::Relaxed).max(self.most.load(Ordering::Relaxed))
    }

    /// Lent to callers.
    pub(crate) fn lent_bytes(&self) -> usize {
        self.lent.bytes() + self.lent_little.bytes()
    }

    /// Looks how much work there was at most since the last time: counts that, or half of what counted. Once a second.
    pub(crate) fn look(&self) {
        let most = self.most.swap(self.work.bytes(), Ordering::Relaxed);
        let before = self.counted.load(Ordering::Relaxed);
        self.counted.store(most.max(before / 2), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::accounts::*;

    #[test]
    fn the_most_work_of_the_last_seconds_counts_and_is_forgotten_by_and_by() {
        let accounts = MemoryAccounts::default();
        let mut held = accounts.hold(100);
        accounts.set(&mut held, 4_000);
        accounts.set(&mut held, 200);
        assert_eq!(accounts.bytes(), 4_000);
        accounts.look();
        assert_eq!(accounts.bytes(), 4_000);
        drop(held);
        accounts.look();
        assert_eq!(accounts.bytes(), 2_000);
        (0..40).for_each(|_| accounts.look());
        assert_eq!(accounts.bytes(), 0);
    }

    #[test]
    fn one_caller_gets_an_eighth_and_all_together_a_quarter_but_everybody_something() {
        let accounts = MemoryAccounts::default();
        let limit = 64 << 20;
        let lent: Vec<HeldMemory> = (0..4).map(|_| accounts.lend(64 << 20, limit)).collect();
        let bytes: Vec<usize> = lent.iter().map(HeldMemory::bytes).collect();
        assert_eq!(bytes, [8 << 20, 8 << 20, 1 << 20, 1 << 20]);
        assert_eq!(accounts.lent_bytes(), 18 << 20);
        assert_eq!(accounts.lend(100, limit).bytes(), 100);
        drop(lent);
        assert_eq!(accounts.bytes(), 0);
    }
}
