//! The labels of errors, by which drivers decide whether to try a transaction or a write again.

use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// The whole transaction may be run again.
const TRANSIENT: &str = "TransientTransactionError";
/// The same write may be sent again.
pub(crate) const RETRYABLE: &str = "RetryableWriteError";

/// The request that an error ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Labelled {
    /// A retryable write.
    Write,
    /// A statement of a transaction.
    Statement,
    /// The end of a transaction, which may be sent again.
    End,
}

/// The error of a request that belongs to a transaction, or of a retryable write.
pub(crate) fn labelled(error: CommandError, request: Labelled) -> CommandError {
    match error {
        CommandError::Failed(mut failure) => {
            add(&mut failure, request);
            CommandError::Failed(failure)
        }
        would_block @ CommandError::WouldBlock(_) => would_block,
    }
}

/// The codes after which a write may be sent again: the server goes away, or its network does.
const RETRYABLE_CODES: [i32; 13] =
    [6, 7, 89, 91, 134, 189, 262, 9001, 10_107, 11_600, 11_602, 13_435, 13_436];

/// The code of MongoDB's transactions over several shards, which a fail point can make here.
const PREPARED_TRANSACTION_IN_PROGRESS: i32 = 267;

/// Whether the same request may be sent again after an error of this code.
pub(crate) fn is_retryable(code: i32, request: Labelled) -> bool {
    request != Labelled::Statement && RETRYABLE_CODES.contains(&code)
}

fn add(failure: &mut Failure, request: Labelled) {
    let code = failure.code.code();
    let is_transient = matches!(
        failure.code,
        ErrorCode::WriteConflict
            | ErrorCode::LockTimeout
            | ErrorCode::SnapshotTooOld
            | ErrorCode::SnapshotUnavailable
            | ErrorCode::NoSuchTransaction
    ) || code == PREPARED_TRANSACTION_IN_PROGRESS;
    match request {
        Labelled::Write | Labelled::End if is_retryable(code, request) => failure.labels.push(RETRYABLE),
        Labelled::Statement if RETRYABLE_CODES.contains(&code) => failure.labels.push(TRANSIENT),
        Labelled::Statement | Labelled::End if is_transient => failure.labels.push(TRANSIENT),
        _ => {}
    }
}
