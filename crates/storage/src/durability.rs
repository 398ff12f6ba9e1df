//! Durability: the stages of a commit on its way to the device, and the waker that is told.

use crate::error::StorageError;
use crate::identifiers::{CommitTimestamp, Lsn};

/// How durable a commit must be before its client is told that it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Visible, and no more is promised; the log follows in its own time.
    None,
    /// The log record is in the kernel: it survives a killed process, and is synced within 100 ms.
    Logged,
    /// The log record is on the device: it survives a power cut.
    Synced,
}

/// The answer of a commit, given as soon as its writes are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitReceipt {
    /// The commit's place in the order of all commits.
    pub timestamp: CommitTimestamp,
    /// The log record to wait for. [`Lsn::ZERO`] for a transaction that wrote nothing.
    pub lsn: Lsn,
}

/// Called once, on any thread, when a log record has reached the wanted durability or never will.
/// It must be quick and must not call the engine.
pub type DurabilityWaker = Box<dyn FnOnce(Result<(), StorageError>) + Send>;
