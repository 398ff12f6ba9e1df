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

/// The text of an error for people. That of an internal one begins with a place in the client's source.
pub(crate) fn text_of(error: &Error) -> String {
    match error {
        Error::InternalError { message } => {
            let behind = message.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
            behind.map_or(message.as_str(), |(_, text)| text).to_owned()
        }
        other => other.to_string(),
    }
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

/// The start of a transaction that a request was told of and that is not there: it has left a lock.
pub(crate) fn missing_transaction(error: &Error) -> Option<u64> {
    match error {
        Error::TxnNotFound(missing) => Some(missing.start_ts),
        Error::KeyError(key) => key.txn_not_found.as_ref().map(|missing| missing.start_ts),
        Error::MultipleKeyErrors(errors) | Error::ExtractedErrors(errors) => {
            errors.iter().find_map(missing_transaction)
        }
        Error::UndeterminedError(inner) | Error::PessimisticLockError { inner, .. } => {
            missing_transaction(inner)
        }
        _ => None,
    }
}

/// An error of the client as one of the contract, for a request that does not commit. It never conflicts: it
/// has met the lock of a commit for too long.
pub(crate) fn request_failed(doing: &str, error: Error) -> StorageError {
    match outcome_of(&error) {
        Outcome::Conflict => {
            let message = format!(
                "a commit that has not ended keeps a key of the TiKV cluster locked, which was met while {doing}: try \
                 again ({error})"
            );
            StorageError::with_source(ErrorKind::Unavailable, message, error)
        }
        Outcome::Unavailable | Outcome::Undetermined | Outcome::Refused => tikv_failed(doing, error),
    }
}

/// The error of a request whose operation has ended.
pub(crate) fn operation_ended(doing: &str) -> StorageError {
    let message = format!("the operation has ended while it waited for the TiKV cluster ({doing})");
    StorageError::new(ErrorKind::Unavailable, message)
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
            let message = format!("the TiKV cluster could not be reached while {doing}: {}", text_of(&error));
            StorageError::with_source(ErrorKind::Unavailable, message, error)
        }
        Outcome::Refused => {
            let message = format!("the TiKV cluster refused a request while {doing}: {}", text_of(&error));
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

    #[test]
    fn a_place_in_the_clients_source_is_left_out() {
        let internal = |message: &str| text_of(&Error::InternalError { message: message.to_owned() });
        assert_eq!(internal("[client/src/pd.rs:213]: no driver answers"), "no driver answers");
        assert_eq!(internal("no place"), "no place");
        assert_eq!(text_of(&Error::StringError("away".to_owned())), "away");
    }

    #[test]
    fn a_read_that_meets_a_lock_for_too_long_is_told_as_a_cluster_that_does_not_answer() {
        let missing = Box::new(tikv_client::ProtoKeyError {
            txn_not_found: Some(Default::default()),
            ..Default::default()
        });
        // The shape in which the client passes it on.
        let missing = Error::MultipleKeyErrors(vec![Error::KeyError(missing)]);
        assert_eq!(missing_transaction(&missing), Some(0));
        assert_eq!(missing_transaction(&Error::ResolveLockError(Vec::new())), None);
        for error in [Error::ResolveLockError(Vec::new()), missing] {
            assert_eq!(outcome_of(&error), Outcome::Conflict);
            assert_eq!(request_failed("testing", error).kind(), ErrorKind::Unavailable);
        }
    }
}
