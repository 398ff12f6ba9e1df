//! Conversion of RocksDB's errors and the environment's into errors of the contract.

use pando_environment::EnvironmentError;
use pando_storage::{ErrorKind, StorageError, TreeId};

/// An error of RocksDB as one of the contract, with the operation that failed.
pub(crate) fn rocksdb_failed(doing: &str, error: rocksdb::Error) -> StorageError {
    let kind = match error.kind() {
        // A block that is not in the cache, asked for without leave to wait.
        rocksdb::ErrorKind::Incomplete => return StorageError::would_block(),
        rocksdb::ErrorKind::Corruption => ErrorKind::Corrupt,
        rocksdb::ErrorKind::InvalidArgument | rocksdb::ErrorKind::NotSupported => ErrorKind::InvalidInput,
        rocksdb::ErrorKind::Busy | rocksdb::ErrorKind::TryAgain => ErrorKind::Busy,
        rocksdb::ErrorKind::ShutdownInProgress => ErrorKind::Closed,
        _ => ErrorKind::Io,
    };
    let cure = match kind {
        ErrorKind::Corrupt => "; restore the store from a backup",
        _ => "",
    };
    StorageError::with_source(kind, format!("RocksDB failed while {doing}: {error}{cure}"), error)
}

/// The error that stops the engine: a write or a sync of the log failed, and its outcome is not known.
pub(crate) fn stopped(doing: &str, error: StorageError) -> StorageError {
    let message = format!(
        "the engine `rocksdb` has stopped, as {doing} failed ({error}): make room on the device or mend it, then \
         open the store again"
    );
    StorageError::with_source(ErrorKind::Closed, message, error)
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
pub(crate) fn corrupt(message: impl Into<String>) -> StorageError {
    StorageError::new(ErrorKind::Corrupt, message)
}

/// An error for a request that breaks a rule.
pub(crate) fn invalid(message: impl Into<String>) -> StorageError {
    StorageError::new(ErrorKind::InvalidInput, message)
}

/// An error for a tree that is not there (any more).
pub(crate) fn no_tree(tree: TreeId) -> StorageError {
    StorageError::new(ErrorKind::NotFound, format!("there is no {tree}"))
}

/// An error for an engine that has been closed.
pub(crate) fn closed() -> StorageError {
    StorageError::new(ErrorKind::Closed, "the engine `rocksdb` is closed")
}
