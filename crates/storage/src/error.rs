//! Errors of the contract. The kind says what the caller must do; the message and the source say what
//! happened.

use std::fmt;
use std::sync::Arc;

use pando_environment::MissedRead;

use crate::contest::Contested;

/// The cure of an error: each kind says what its caller must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Another transaction updated the key first: roll back and retry the whole transaction.
    Conflict,
    /// The engine has no room for this now (too many transactions, the log budget is used up): retry later.
    Busy,
    /// The answer needs the device, and the caller asked for
    /// [`BlockingMode::CachedOnly`](crate::BlockingMode::CachedOnly): ask again where waiting is allowed.
    WouldBlock,
    /// The tree is not there (or not any more).
    NotFound,
    /// The request breaks a rule of the contract: fix the request.
    InvalidInput,
    /// A transaction has more writes than the engine holds at once: roll back, and do it in smaller steps.
    TooLarge,
    /// Bytes on the device are not what was written: restore from a backup; other trees and ranges stay
    /// readable.
    Corrupt,
    /// The device refused this request (full, or an error): free space or mend it. No acknowledged commit is
    /// lost.
    Io,
    /// The cluster that has the data could not be reached: ask again later, or another server of the store.
    /// Nothing was committed.
    Unavailable,
    /// The answer to a commit was lost: it may have happened, or not. Read before writing again.
    Undetermined,
    /// The engine is closed, or has stopped itself after a failed sync: open it again.
    Closed,
}

impl ErrorKind {
    /// Whether the same transaction, run again from its beginning, may succeed with nothing else changed.
    pub const fn is_retryable(self) -> bool {
        match self {
            // The other transaction has the key now; the next try begins after it.
            ErrorKind::Conflict => true,
            // Room comes back with time.
            ErrorKind::Busy => true,
            // The same question with `MayBlock` is answered.
            ErrorKind::WouldBlock => true,
            // A name does not come back by asking again.
            ErrorKind::NotFound => false,
            // The request stays wrong.
            ErrorKind::InvalidInput => false,
            // The same writes stay too many.
            ErrorKind::TooLarge => false,
            // The bytes stay wrong.
            ErrorKind::Corrupt => false,
            // A person has to make room or change the disk.
            ErrorKind::Io => false,
            // The cluster comes back with time.
            ErrorKind::Unavailable => true,
            // Run again it may have happened twice.
            ErrorKind::Undetermined => false,
            // The process has to open the store again.
            ErrorKind::Closed => false,
        }
    }

    /// Whether the engine takes no further writes after this error.
    pub const fn poisons_engine(self) -> bool {
        match self {
            // A failed fsync surfaces as `Closed`: a second try can never sync pages that the kernel has
            // dropped.
            ErrorKind::Closed => true,
            ErrorKind::Conflict
            | ErrorKind::Busy
            | ErrorKind::WouldBlock
            | ErrorKind::NotFound
            | ErrorKind::InvalidInput
            | ErrorKind::TooLarge
            // One damaged block says nothing of the others.
            | ErrorKind::Corrupt
            // A refused write leaves the store as it was.
            | ErrorKind::Io
            // It goes on as soon as it reaches the cluster.
            | ErrorKind::Unavailable
            // So does it after a lost answer.
            | ErrorKind::Undetermined => false,
        }
    }
}

/// An error of an engine: a [`kind`](StorageError::kind) for the caller, a sentence for people, and the
/// cause.
///
/// Cloning is cheap: wakers hand one error to many waiters.
#[derive(Clone)]
pub struct StorageError {
    kind: ErrorKind,
    detail: Option<Arc<Detail>>,
}

enum Detail {
    Fault { message: String, source: Option<Box<dyn std::error::Error + Send + Sync>> },
    Missed(Arc<dyn MissedRead>),
    QueryMemory(&'static str),
    Contested(Arc<Contested>),
}

impl StorageError {
    /// An error with a sentence that says what happened to what.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> StorageError {
        StorageError { kind, detail: Some(Arc::new(Detail::Fault { message: message.into(), source: None })) }
    }

    /// An error with its cause.
    pub fn with_source(
        kind: ErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> StorageError {
        StorageError {
            kind,
            detail: Some(Arc::new(Detail::Fault { message: message.into(), source: Some(source.into()) })),
        }
    }

    /// [`ErrorKind::WouldBlock`], without an allocation: it is an answer rather than a fault.
    pub const fn would_block() -> StorageError {
        StorageError { kind: ErrorKind::WouldBlock, detail: None }
    }

    /// [`ErrorKind::WouldBlock`] with the missed read.
    pub fn missed(read: Arc<dyn MissedRead>) -> StorageError {
        StorageError { kind: ErrorKind::WouldBlock, detail: Some(Arc::new(Detail::Missed(read))) }
    }

    /// The read whose bytes would let the same call go on, if the engine could tell.
    pub fn missed_read(&self) -> Option<Arc<dyn MissedRead>> {
        match self.detail.as_deref() {
            Some(Detail::Missed(read)) => Some(Arc::clone(read)),
            Some(Detail::Fault { .. } | Detail::QueryMemory(_) | Detail::Contested(_)) | None => None,
        }
    }

    /// [`ErrorKind::Busy`], because a query needs more memory than there is and cannot spill.
    pub(crate) fn out_of_query_memory(sentence: &'static str) -> StorageError {
        StorageError { kind: ErrorKind::Busy, detail: Some(Arc::new(Detail::QueryMemory(sentence))) }
    }

    /// Whether a query has failed for lack of memory.
    pub fn is_out_of_query_memory(&self) -> bool {
        matches!(self.detail.as_deref(), Some(Detail::QueryMemory(_)))
    }

    /// [`ErrorKind::Conflict`] without a key, and without an allocation.
    pub const fn conflict() -> StorageError {
        StorageError { kind: ErrorKind::Conflict, detail: None }
    }

    /// [`ErrorKind::Conflict`] with the key that was contested, which its loser may wait for.
    pub(crate) fn contested(key: Arc<Contested>) -> StorageError {
        StorageError { kind: ErrorKind::Conflict, detail: Some(Arc::new(Detail::Contested(key))) }
    }

    /// The key of a conflict, if the engine could tell.
    pub fn contested_key(&self) -> Option<&Arc<Contested>> {
        match self.detail.as_deref() {
            Some(Detail::Contested(key)) => Some(key),
            _ => None,
        }
    }

    /// The kind, which says what the caller must do.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether this is [`ErrorKind::WouldBlock`].
    pub const fn is_would_block(&self) -> bool {
        matches!(self.kind, ErrorKind::WouldBlock)
    }

    /// Whether this is [`ErrorKind::Conflict`].
    pub const fn is_conflict(&self) -> bool {
        matches!(self.kind, ErrorKind::Conflict)
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.detail.as_deref(), self.kind) {
            (Some(Detail::Fault { message, .. }), _) => f.write_str(message),
            (Some(Detail::QueryMemory(sentence)), _) => f.write_str(sentence),
            (_, ErrorKind::WouldBlock) => f.write_str("the answer needs the device"),
            (_, ErrorKind::Conflict) => f.write_str("another transaction updated the key first"),
            (_, kind) => write!(f, "{kind:?}"),
        }
    }
}

impl fmt::Debug for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind)?;
        match self.detail.as_deref() {
            Some(Detail::Fault { source: Some(source), .. }) => write!(f, " ({source:?})"),
            Some(Detail::Missed(read)) => write!(f, " ({read:?})"),
            Some(Detail::Fault { source: None, .. } | Detail::QueryMemory(_) | Detail::Contested(_))
            | None => Ok(()),
        }
    }
}

impl std::error::Error for StorageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.detail.as_deref()? {
            Detail::Fault { source, .. } => Some(source.as_ref()?.as_ref()),
            Detail::Missed(_) | Detail::QueryMemory(_) | Detail::Contested(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_shown_and_the_source_is_kept() {
        let error =
            StorageError::with_source(ErrorKind::Io, "cannot write data.0000", std::io::Error::other("EIO"));
        assert_eq!(error.to_string(), "cannot write data.0000");
        assert!(std::error::Error::source(&error).is_some());
        assert!(!error.kind().is_retryable());
    }

    #[test]
    fn answers_rather_than_faults_carry_no_allocation_and_can_be_retried() {
        for error in [StorageError::would_block(), StorageError::conflict()] {
            assert!(error.detail.is_none());
            assert!(error.kind().is_retryable());
            assert!(!error.kind().poisons_engine());
        }
    }
}
