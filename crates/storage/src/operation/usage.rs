//! The usage of an operation: counters that its own thread raises and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering};

/// See the module's head.
#[derive(Debug, Default)]
pub struct Usage {
    keys_examined: AtomicU64,
    documents_examined: AtomicU64,
    conflicts: AtomicU64,
    spills: AtomicU64,
    spilled_bytes: AtomicU64,
    memory_bytes: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageFigures {
    /// Index entries stepped over, and lookups by primary key.
    pub keys_examined: u64,
    /// Documents looked at.
    pub documents_examined: u64,
    /// Conflicts with other transactions after which a statement was run again.
    pub conflicts: u64,
    /// Times that a stage wrote its memory to the device.
    pub spills: u64,
    /// Bytes that stages wrote to the device for lack of memory.
    pub spilled_bytes: u64,
    /// Bytes of memory that its query held when it last told.
    pub memory_bytes: u64,
}

/// Adds to a counter that one thread writes: a load and a store, where `fetch_add` would lock the cache line.
pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Usage {
    /// Counts index entries and documents.
    pub fn add_examined(&self, keys: u64, documents: u64) {
        add(&self.keys_examined, keys);
        add(&self.documents_examined, documents);
    }

    /// Takes back index entries that count for nothing.
    pub fn forget_keys(&self, keys: u64) {
        let counted = self.keys_examined.load(Ordering::Relaxed);
        self.keys_examined.store(counted.saturating_sub(keys), Ordering::Relaxed);
    }

    /// Counts a conflict.
    pub fn add_conflict(&self) {
        add(&self.conflicts, 1);
    }

    /// Counts spills of so many bytes together.
    pub fn add_spilled(&self, spills: u64, bytes: u64) {
        add(&self.spills, spills);
        add(&self.spilled_bytes, bytes);
    }

    /// Sets the bytes of memory that its query holds.
    pub fn set_memory(&self, bytes: u64) {
        self.memory_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The counters.
    pub fn figures(&self) -> UsageFigures {
        UsageFigures {
            keys_examined: self.keys_examined.load(Ordering::Relaxed),
            documents_examined: self.documents_examined.load(Ordering::Relaxed),
            conflicts: self.conflicts.load(Ordering::Relaxed),
            spills: self.spills.load(Ordering::Relaxed),
            spilled_bytes: self.spilled_bytes.load(Ordering::Relaxed),
            memory_bytes: self.memory_bytes.load(Ordering::Relaxed),
        }
    }

    /// Sets all to zero.
    pub(super) fn clear(&self) {
        self.clear_work();
        self.conflicts.store(0, Ordering::Relaxed);
    }

    /// Sets all but the conflicts to zero.
    pub(super) fn clear_work(&self) {
        let all = [
            &self.keys_examined,
            &self.documents_examined,
            &self.spills,
            &self.spilled_bytes,
            &self.memory_bytes,
        ];
        all.into_iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
    }
}
