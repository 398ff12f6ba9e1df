//! Conversion of LMDB's errors and the environment's into errors of the contract.

use heed::MdbError;
use pando_environment::EnvironmentError;
use pando_storage::{ErrorKind, StorageError};

/// An error of LMDB as one of the contract, with the operation that failed.
pub(crate) fn lmdb_failed(doing: &str, error: heed::Error) -> StorageError {
    let kind = match &error {
        heed::Error::Mdb(MdbError::ReadersFull) => ErrorKind::Busy,
        heed::Error::Mdb(
            MdbError::Corrupted | MdbError::PageNotFound | MdbError::Invalid | MdbError::VersionMismatch,
        ) => ErrorKind::Corrupt,
        heed::Error::Mdb(MdbError::Panic) => ErrorKind::Closed,
        _ => ErrorKind::Io,
    };
    let cure = match (kind, &error) {
        (ErrorKind::Corrupt, _) => "; restore the store from a backup",
        (ErrorKind::Closed, _) => "; the engine has stopped, open it again",
        (ErrorKind::Busy, _) => "; retry when transactions have ended, or raise `readersMax`",
        (_, heed::Error::Io(system)) if system.kind() == std::io::ErrorKind::StorageFull => {
            "; make room on the device"
        }
        _ => "",
    };
    StorageError::with_source(kind, format!("LMDB failed while {doing}: {error}{cure}"), error)
}

/// Whether LMDB failed because it has used up its map.
pub(crate) fn is_map_full(error: &StorageError) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<heed::Error>());
    matches!(cause, Some(heed::Error::Mdb(MdbError::MapFull)))
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

/// An error for a tree that is not there (any more).
pub(crate) fn no_tree(tree: pando_storage::TreeId) -> StorageError {
    StorageError::new(ErrorKind::NotFound, format!("there is no {tree}"))
}

/// An error for an engine that has been closed.
pub(crate) fn closed() -> StorageError {
    StorageError::new(ErrorKind::Closed, "the engine `lmdb` is closed")
}
