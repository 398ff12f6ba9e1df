//! Conversion of the library's errors and the environment's into errors of the contract.

use pando_environment::EnvironmentError;
use pando_storage::{ErrorKind, StorageError, TreeId};

use crate::library::{LibraryError, LibraryFault};

/// An error of the library as one of the contract, with the operation that failed.
pub(crate) fn library_failed(doing: &str, error: LibraryError) -> StorageError {
    let (kind, cure) = match error.fault() {
        // The library also rolls back a reader or a writer for which its cache has no room.
        LibraryFault::Rollback => (ErrorKind::Busy, ""),
        LibraryFault::CacheFull => {
            (ErrorKind::Busy, "; retry when large transactions have ended, or make the cache larger")
        }
        LibraryFault::InUse => (ErrorKind::Busy, ""),
        LibraryFault::Damaged => (ErrorKind::Corrupt, "; restore the store from a backup"),
        LibraryFault::Panic => (ErrorKind::Closed, "; the engine has stopped, open it again"),
        LibraryFault::Invalid => (ErrorKind::InvalidInput, ""),
        LibraryFault::System => (ErrorKind::Io, ""),
    };
    StorageError::with_source(kind, format!("WiredTiger failed while {doing}: {error}{cure}"), error)
}

/// An error of the file system, with what was being done.
pub(crate) fn environment_failed(doing: &str, error: EnvironmentError) -> StorageError {
    let kind = match &error {
        EnvironmentError::Locked { .. } => ErrorKind::Busy,
        EnvironmentError::Replaced { .. } => ErrorKind::Io,
        EnvironmentError::Io { .. } => ErrorKind::Io,
    };
    StorageError::with_source(kind, format!("{doing}: {error}"), error)
}

/// An error for bytes that make no sense.
pub(crate) fn corrupt(what: impl Into<String>) -> StorageError {
    StorageError::new(ErrorKind::Corrupt, what)
}

/// An error for a request that cannot be met.
pub(crate) fn refused(why: impl Into<String>) -> StorageError {
    StorageError::new(ErrorKind::InvalidInput, why)
}

/// An error for a tree that is not there (any more).
pub(crate) fn no_tree(tree: TreeId) -> StorageError {
    StorageError::new(ErrorKind::NotFound, format!("there is no {tree}"))
}

/// An error for an engine that has been closed.
pub(crate) fn closed() -> StorageError {
    StorageError::new(ErrorKind::Closed, "the engine `wiredtiger` is closed")
}
