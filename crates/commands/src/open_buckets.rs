//! The buckets of time series that take more measurements, as far as they are remembered.
//!
//! # Terms
//! - *Run*: a bucket with fewer measurements than a full one. Later inserts of the same meta value and window
//!   merge some runs of one tier into a bucket of the next tier (`crud/time_series.rs`).
//!
//! This memory can be lost without harm: a forgotten bucket stays as it is, and so do all of them after a
//! restart. So it is bounded, and is emptied where it is full.

use std::collections::HashMap;

use pando_document::ObjectId;
use parking_lot::Mutex;

/// The most pairs of a meta value and a window that are remembered.
const KEYS_MAX: usize = 20_000;
/// The most bytes of a key; buckets of longer ones are not remembered.
const KEY_BYTES_MAX: usize = 1024;

/// A bucket that takes part in merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketRun {
    pub id: ObjectId,
    pub size: BucketSize,
}

/// The size of a bucket, or of measurements that are to become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BucketSize {
    /// The measurements.
    pub rows: usize,
    /// The bytes of the measurements, as they were inserted.
    pub bytes: usize,
    /// The different fields of the measurements, at most.
    pub fields: usize,
}

impl BucketSize {
    /// At most the size of one bucket of the measurements of both.
    pub fn with(self, other: BucketSize) -> BucketSize {
        BucketSize {
            rows: self.rows + other.rows,
            bytes: self.bytes + other.bytes,
            fields: self.fields + other.fields,
        }
    }
}

/// A collection of buckets, and a meta value and a window in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RunKey {
    pub collection: [u8; 16],
    pub window: i64,
    /// The bytes of the meta value.
    pub meta: Vec<u8>,
}

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct OpenBuckets {
    runs: Mutex<HashMap<RunKey, Vec<BucketRun>>>,
}

impl OpenBuckets {
    /// The runs of a key, the oldest first.
    pub fn runs(&self, key: &RunKey) -> Vec<BucketRun> {
        self.runs.lock().get(key).cloned().unwrap_or_default()
    }

    /// Remembers the runs of a key.
    pub fn remember(&self, key: RunKey, runs: Vec<BucketRun>) {
        let mut all = self.runs.lock();
        if all.len() >= KEYS_MAX && !all.contains_key(&key) {
            all.clear();
        }
        if runs.is_empty() || key.meta.len() > KEY_BYTES_MAX {
            all.remove(&key);
        } else {
            all.insert(key, runs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_bounded() {
        let open = OpenBuckets::default();
        let key = |window, bytes| RunKey { collection: [1; 16], window, meta: vec![0; bytes] };
        let size = BucketSize { rows: 1, bytes: 50, fields: 3 };
        let run = BucketRun { id: ObjectId::from_bytes([2; 12]), size };
        for window in 0..3 * KEYS_MAX as i64 {
            open.remember(key(window, 1), vec![run]);
            assert_eq!(open.runs(&key(window, 1)), [run]);
        }
        assert!(open.runs.lock().len() <= KEYS_MAX);
        open.remember(key(-1, KEY_BYTES_MAX + 1), vec![run]);
        assert!(open.runs(&key(-1, KEY_BYTES_MAX + 1)).is_empty());
    }
}
