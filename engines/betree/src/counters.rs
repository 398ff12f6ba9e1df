//! The counters of an open store. Each only grows, but for figures of the last checkpoint; statistics show
//! them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::Counter;

/// Counts of the engine's work since it was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: Counter,
    pub(crate) large_commits: Counter,
    pub(crate) large_parts: Counter,
    pub(crate) writes: Counter,
    pub(crate) write_bytes: Counter,
    /// Of commits' records, before they were compressed.
    pub(crate) payload_bytes: Counter,
    /// Patches that went down without a read.
    pub(crate) patches: Counter,
    pub(crate) gets: Counter,
    pub(crate) scans: Counter,
    pub(crate) scan_rows: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) flushes: Counter,
    /// Of versions that were dropped from active buffers because no snapshot could see them any more.
    pub(crate) swept_bytes: Counter,
    pub(crate) flushed_entries: Counter,
    pub(crate) written_leaves: Counter,
    /// Leaves and inner nodes that were divided, by one for each that was added.
    pub(crate) leaf_splits: Counter,
    pub(crate) node_splits: Counter,
    pub(crate) leaf_entries: Counter,
    pub(crate) leaf_bytes: Counter,
    pub(crate) slices: Counter,
    pub(crate) slice_entries: Counter,
    pub(crate) run_bytes: Counter,
    pub(crate) large_values: Counter,
    pub(crate) large_bytes: Counter,
    pub(crate) loaded_entries: Counter,
    pub(crate) loaded_leaves: Counter,
    pub(crate) loaded_bytes: Counter,
    pub(crate) failed_flushes: Counter,
    pub(crate) partial_flushes: Counter,
    pub(crate) idle_flushes: Counter,
    pub(crate) range_deletes: Counter,
    /// Steps that applied range deletes, and the leaves and slices that thereby went unread.
    pub(crate) range_delete_steps: Counter,
    pub(crate) unread_leaves: Counter,
    pub(crate) unread_slices: Counter,
    pub(crate) aged_flushes: Counter,
    pub(crate) flush_nanos: Counter,
    pub(crate) delays: Counter,
    pub(crate) delay_nanos: Counter,
    pub(crate) stalls: Counter,
    pub(crate) checkpoints: Counter,
    pub(crate) failed_checkpoints: Counter,
    /// Dropped trees that could not be read, so that their room could not be freed.
    pub(crate) failed_drops: Counter,
    pub(crate) returned_bytes: Counter,
    pub(crate) moved_bytes: Counter,
    pub(crate) failed_returns: Counter,
    /// Of blocks that were written anew under a new data key, and failed steps of that.
    pub(crate) rewritten_bytes: Counter,
    pub(crate) failed_rewrites: Counter,
    pub(crate) checkpoint_nanos: Counter,
    pub(crate) last_checkpoint: LastCheckpoint,
    pub(crate) replayed_records: Counter,
    pub(crate) replayed_writes: Counter,
}

/// The last checkpoint that has ended.
#[derive(Debug, Default)]
pub(crate) struct LastCheckpoint {
    nanos: AtomicU64,
    ended_millis: AtomicU64,
}

impl LastCheckpoint {
    /// Notes one, with the wall clock's milliseconds at its end.
    pub(crate) fn note(&self, nanos: u64, ended_millis: u64) {
        self.nanos.store(nanos, Ordering::Relaxed);
        self.ended_millis.store(ended_millis, Ordering::Relaxed);
    }

    /// Its nanoseconds, and milliseconds since 1970 at its end; zeros before the first.
    pub(crate) fn get(&self) -> (u64, u64) {
        (self.nanos.load(Ordering::Relaxed), self.ended_millis.load(Ordering::Relaxed))
    }
}
