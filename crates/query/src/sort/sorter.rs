//! The sorter: holds documents in memory and gives them back in order.
//!
//! With a limit of k documents only the k least are held (a heap whose root is the greatest of them), so a
//! sorted first page costs the memory of that page. Documents with equal keys come in the order in which they
//! were pushed.
//!
//! # Invariants
//! - Without [`DiskUse::Allowed`], at most [`MEMORY_BYTES_MAX`] bytes are held, and more is an error rather
//!   than a guess.
//!
//! # Not here
//! Spilling to disk: with [`DiskUse::Allowed`] everything stays in memory for now.

use std::collections::BinaryHeap;

use pando_catalog::Bytes;

use crate::{ErrorCode, QueryError};

/// Bytes of documents and keys that a sort may hold, as MongoDB's
/// `internalQueryMaxBlockingSortMemoryUsageBytes`.
pub const MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Whether a sort may use the disk when memory runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskUse {
    /// It may.
    Allowed,
    /// It may not: more than [`MEMORY_BYTES_MAX`] is an error.
    Forbidden,
}

/// A document that waits, ordered by key and then by arrival.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    key: Vec<u8>,
    arrival: u64,
    primary_key: Vec<u8>,
    document: Bytes,
}

impl Waiting {
    fn bytes(&self) -> usize {
        size_of::<Waiting>() + self.key.len() + self.primary_key.len() + self.document.len()
    }
}

/// Sorts documents by their keys.
#[derive(Debug)]
pub struct Sorter {
    /// `Some`: only so many are wanted.
    limit: Option<usize>,
    disk_use: DiskUse,
    bytes_max: usize,
    bytes: usize,
    arrivals: u64,
    held: Held,
    total_bytes: u64,
}

#[derive(Debug)]
enum Held {
    /// No order yet.
    All(Vec<Waiting>),
    /// The greatest of the least is on top.
    Least(BinaryHeap<Waiting>),
    /// Sorted; the next is the last.
    Sorted(Vec<Waiting>),
}

impl Sorter {
    /// An empty sorter; `limit` is how many documents will be taken out at most.
    pub fn new(limit: Option<u64>, disk_use: DiskUse) -> Sorter {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        let held = match limit {
            Some(_) => Held::Least(BinaryHeap::new()),
            None => Held::All(Vec::new()),
        };
        Sorter { limit, disk_use, bytes_max: MEMORY_BYTES_MAX, bytes: 0, arrivals: 0, held, total_bytes: 0 }
    }

    /// The same with a smaller limit of memory.
    #[must_use]
    pub fn with_memory(self, bytes_max: usize) -> Sorter {
        Sorter { bytes_max, ..self }
    }

    /// Takes a document in.
    ///
    /// # Errors
    /// [`ExceededMemoryLimitNoDiskUse`](ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed).
    pub fn push(&mut self, key: &[u8], primary_key: &[u8], document: Bytes) -> Result<(), QueryError> {
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.total_bytes += document.len() as u64;
        match (&mut self.held, self.limit) {
            (Held::Least(_), Some(0)) => return Ok(()),
            (Held::Least(heap), Some(limit)) if heap.len() == limit => {
                // Equal keys keep the earlier document, so only a lesser key gets in.
                if heap.peek().is_some_and(|greatest| key >= greatest.key.as_slice()) {
                    return Ok(());
                }
                self.bytes -= heap.pop().map_or(0, |gone| gone.bytes());
            }
            _ => {}
        }
        let waiting = Waiting { key: key.to_vec(), arrival, primary_key: primary_key.to_vec(), document };
        self.bytes += waiting.bytes();
        match &mut self.held {
            Held::All(all) => all.push(waiting),
            Held::Least(heap) => heap.push(waiting),
            Held::Sorted(_) => unreachable!("nothing is pushed after the first document was taken out"),
        }
        self.check_memory()
    }

    fn check_memory(&self) -> Result<(), QueryError> {
        if self.bytes <= self.bytes_max || self.disk_use == DiskUse::Allowed {
            return Ok(());
        }
        Err(QueryError::new(
            ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
            format!(
                "Executor error during find command :: caused by :: Sort exceeded memory limit of {} bytes, but did \
                 not opt in to external sorting.",
                self.bytes_max
            ),
        ))
    }

    /// The next document in order, with its primary key. The first call sorts.
    pub fn pop(&mut self) -> Option<(Vec<u8>, Bytes)> {
        self.finish();
        match &mut self.held {
            Held::Sorted(sorted) => sorted.pop().map(|next| (next.primary_key, next.document)),
            Held::All(_) | Held::Least(_) => unreachable!("sorted just before"),
        }
    }

    fn finish(&mut self) {
        let mut sorted = match &mut self.held {
            Held::Sorted(_) => return,
            Held::All(all) => std::mem::take(all),
            Held::Least(heap) => std::mem::take(heap).into_vec(),
        };
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        self.held = Held::Sorted(sorted);
    }

    /// Bytes of all documents that were pushed, for `explain`.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }
}
