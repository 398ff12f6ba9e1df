//! Conversion of the client's errors into errors of the contract.
//!
//! The client's errors are nested: one error of a request may hold those of many keys and regions.
//! [`outcome_of`] looks through all of them and finds the one that decides.

use pando_environment::EnvironmentError;
use pando_storage::{ErrorKind, StorageError, TreeId};
use tikv_client::Error;

/// The meaning of a client's error, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Another transaction was first: the whole transaction has to be run again.
    Conflict,
    /// A node could not be reached, or a region has moved: the same request may succeed a moment later.
    Unavailable,
    /// The request can never succeed.
    Refused,
    /// A commit may have happened.
    Undetermined,
}

/// The meaning of an error.
pub(crate) fn outcome_of(error: &Error) -> Outcome {
    match error {
        Error::UndeterminedError(_) => Outcome::Undetermined,
        Error::KeyError(key) => outcome_of_key(key),
        Error::MultipleKeyErrors(errors) | Error::ExtractedErrors(errors) => {
            errors.iter().map(outcome_of).max().unwrap_or(Outcome::Unavailable)
        }
        Error::PessimisticLockError { inner, .. } => outcome_of(inner),
        Error::ResolveLockError(_) | Error::TxnNotFound(_) => Outcome::Conflict,
        Error::Unimplemented
        | Error::DuplicateKeyInsertion
        | Error::InvalidTransactionType
        | Error::OperationAfterCommitError
        | Error::NoPrimaryKey
        | Error::UnsupportedMode
        | Error::Url(_)
        | Error::ColumnFamilyError(_)
        | Error::MaxScanLimitExceeded { .. }
        | Error::InvalidSemver(_)
        | Error::KeyspaceNotFound(_) => Outcome::Refused,
        Error::RegionError(region) if region.raft_entry_too_large.is_some() => Outcome::Refused,
        Error::OnePcFailure
        | Error::NoCurrentRegions
        | Error::EntryNotFoundInRegionCache
        | Error::Io(_)
        | Error::Channel(_)
        | Error::Grpc(_)
        | Error::GrpcAPI(_)
        | Error::Canceled(_)
        | Error::RegionError(_)
        | Error::JoinError(_)
        | Error::RegionForKeyNotFound { .. }
        | Error::RegionForRangeNotFound { .. }
        | Error::RegionNotFoundInResponse { .. }
        | Error::LeaderNotFound { .. }
        | Error::KvError { .. }
        | Error::InternalError { .. }
        | Error::StringError(_) => Outcome::Unavailable,
    }
}

fn outcome_of_key(error: &tikv_client::ProtoKeyError) -> Outcome {
    let is_conflict = error.conflict.is_some()
        || error.locked.is_some()
        || error.already_exist.is_some()
        || error.deadlock.is_some()
        || error.commit_ts_expired.is_some()
        || error.txn_not_found.is_some()
        || !error.retryable.is_empty()
        || !error.abort.is_empty();
    if is_conflict { Outcome::Conflict } else { Outcome::Refused }
}

/// An error of the client as one of the contract, with the operation that failed.
pub(crate) fn tikv_failed(doing: &str, error: Error) -> StorageError {
    match outcome_of(&error) {
        Outcome::Conflict => StorageError::with_source(
            ErrorKind::Conflict,
            format!("another transaction was first while {doing}"),
            error,
        ),
        Outcome::Unavailable | Outcome::Undetermined => {
            let message = format!("the TiKV cluster could not be reached while {doing}: {error}");
            StorageError::with_source(ErrorKind::Unavailable, message, error)
        }
        Outcome::Refused => {
            let message = format!("the TiKV cluster refused a request while {doing}: {error}");
            StorageError::with_source(ErrorKind::InvalidInput, message, error)
        }
    }
}

/// The error after which nobody knows whether a commit has happened.
pub(crate) fn undetermined(error: impl std::fmt::Display) -> StorageError {
    let message = format!(
        "the TiKV cluster did not answer in time, and the commit may have happened or not: read the documents before \
         writing them again ({error})"
    );
    StorageError::new(ErrorKind::Undetermined, message)
}

/// The error of an operation that took too long.
pub(crate) fn too_slow(doing: &str, seconds: u64) -> StorageError {
    let message =
        format!("the TiKV cluster did not answer within {seconds} s while {doing}: look at its nodes");
    StorageError::new(ErrorKind::Unavailable, message)
}

/// An error of the file system, with what was being done.
pub(crate) fn environment_failed(doing: &str, error: EnvironmentError) -> StorageError {
    let kind = match &error {
        EnvironmentError::Locked { .. } => ErrorKind::InvalidInput,
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
    StorageError::new(ErrorKind::Closed, "the engine `tikv` is closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_nested_errors_decides() {
        let conflict = || Error::ResolveLockError(Vec::new());
        let away = || Error::StringError("away".to_owned());
        assert_eq!(outcome_of(&Error::MultipleKeyErrors(vec![conflict(), conflict()])), Outcome::Conflict);
        assert_eq!(outcome_of(&Error::MultipleKeyErrors(vec![conflict(), away()])), Outcome::Unavailable);
        let unknown = Error::UndeterminedError(Box::new(away()));
        assert_eq!(outcome_of(&Error::ExtractedErrors(vec![away(), unknown])), Outcome::Undetermined);
        assert_eq!(tikv_failed("testing", conflict()).kind(), ErrorKind::Conflict);
        assert_eq!(tikv_failed("testing", away()).kind(), ErrorKind::Unavailable);
    }
}
