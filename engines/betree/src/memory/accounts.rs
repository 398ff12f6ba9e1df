//! Memory accounts: memory that is not pages and not buffers, held for a while, and counted against the
//! memory limit.
//!
//! | account | content | held for |
//! |---|---|---|
//! | *work* of flushes | messages with their pages, rewritten leaf pages, blocks to be written | one step |
//! | *work* of loads | the open leaf, the list of leaves | the load |
//! | *batches* of cursors | entries that were fetched and not delivered yet | until the client fetches them |
//! | *lent* to callers | sort buffers of index builds, the server's part of a waiting cursor | until returned |
//!
//! Work comes and goes many times a second. If its present size counted, pages would be evicted and read
//! again as often. Its recent peak counts instead.
//!
//! # Bounds
//! - *Lent*: a quarter of the limit for requests above 1 MiB, which always get at least 1 MiB each. A request
//!   of up to 1 MiB is always granted and does not count against this quarter.
//! - *Batches*: an eighth of the limit, or one largest batch where that is more. Beyond, each cursor gets 16
//!   KiB at a time, too little to be counted. The keeper of many such cursors borrows for them. A longer
//!   document is still delivered.
//! - *Work*: one step ([`crate::tree::flush`]) for each flush thread.

use pando_environment::sync::atomic::{AtomicUsize, Ordering};
use pando_storage::{Batch, BatchLimits, HeldMemory, MemoryAccount};

/// The divisors of the limit for all lent memory, and for the memory of one caller.
const LENT_DIVISOR: usize = 4;
const LENT_DIVISOR_OF_ONE: usize = 8;
/// The divisor of the limit for the batches of all cursors.
const BATCHES_DIVISOR: usize = 8;
/// The batches of all cursors may have this much even with a low limit: one largest batch.
const BATCHES_LEAST: usize = BatchLimits::LARGEST.bytes_max;
/// Entries of a batch beyond the bound.
const NARROW_ENTRIES: usize = 256;
/// Every caller is lent this much, else sorting would end in tiny runs. Requests of up to this size are
/// frequent and come at any moment. Pages make room for them at the next check.
pub(crate) const LENT_BYTES_MIN: usize = 1 << 20;

/// The accounts; see the module's head.
#[derive(Debug, Default)]
pub(crate) struct MemoryAccounts {
    work: MemoryAccount,
    /// The peak of work since the last check, and the bytes that count since then.
    peak: AtomicUsize,
    counted: AtomicUsize,
    pub(crate) batches: MemoryAccount,
    /// Lent to callers that can make do with less.
    lent: MemoryAccount,
    /// Lent to callers that want no more than [`LENT_BYTES_MIN`] and always get it.
    lent_little: MemoryAccount,
}

impl MemoryAccounts {
    /// Counts these bytes as work until the result is dropped.
    pub(crate) fn hold(&self, bytes: usize) -> HeldMemory {
        let held = self.work.hold(bytes);
        self.peak.fetch_max(self.work.bytes(), Ordering::Relaxed);
        held
    }

    /// Sets the bytes of a holder of work.
    pub(crate) fn set(&self, held: &mut HeldMemory, bytes: usize) {
        held.set(bytes);
        self.peak.fetch_max(self.work.bytes(), Ordering::Relaxed);
    }

    /// Lends the wanted bytes, as far as the bounds leave them.
    pub(crate) fn lend(&self, wanted: usize, limit: usize) -> HeldMemory {
        if wanted <= LENT_BYTES_MIN {
            return self.lent_little.hold(wanted);
        }
        let wanted = wanted.min(limit / LENT_DIVISOR_OF_ONE).max(LENT_BYTES_MIN);
        self.lent.hold_within(LENT_BYTES_MIN, wanted, limit / LENT_DIVISOR)
    }

    /// The limits of the next batch. Beyond the bound of all batches, this batch gives back the memory that
    /// it holds.
    pub(crate) fn batch_limits(&self, wanted: BatchLimits, limit: usize, batch: &mut Batch) -> BatchLimits {
        let others = self.batches.bytes().saturating_sub(batch.counted_bytes());
        if batch.is_owned() || others <= (limit / BATCHES_DIVISOR).max(BATCHES_LEAST) {
            return wanted;
        }
        if batch.counted_bytes() > 0 {
            *batch = Batch::new();
        }
        wanted.within(BatchLimits { entries_max: NARROW_ENTRIES, ..BatchLimits::FIRST })
    }

    /// Bytes that count against the memory limit.
    pub(crate) fn bytes(&self) -> usize {
        self.working_bytes() + self.batches.bytes() + self.lent_bytes()
    }

    /// The recent peak of work.
    pub(crate) fn working_bytes(&self) -> usize {
        self.counted.load(Ordering::Relaxed).max(self.peak.load(Ordering::Relaxed))
    }

    /// Lent to callers.
    pub(crate) fn lent_bytes(&self) -> usize {
        self.lent.bytes() + self.lent_little.bytes()
    }

    /// Updates the peak, once a second: the highest work since the last check counts, but at least half of
    /// the count before.
    pub(crate) fn update_peak(&self) {
        let peak = self.peak.swap(self.work.bytes(), Ordering::Relaxed);
        let before = self.counted.load(Ordering::Relaxed);
        self.counted.store(peak.max(before / 2), Ordering::Relaxed);
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
        accounts.update_peak();
        assert_eq!(accounts.bytes(), 4_000);
        drop(held);
        accounts.update_peak();
        assert_eq!(accounts.bytes(), 2_000);
        (0..40).for_each(|_| accounts.update_peak());
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
