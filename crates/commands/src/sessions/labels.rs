//! The labels of errors, by which drivers decide whether to try a transaction or a write again.

use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// The whole transaction may be run again.
const TRANSIENT: &str = "TransientTransactionError";
/// The same write may be sent again.
const RETRYABLE: &str = "RetryableWriteError";

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

fn add(failure: &mut Failure, request: Labelled) {
    let is_shutdown =
        matches!(failure.code, ErrorCode::ShutdownInProgress | ErrorCode::InterruptedAtShutdown);
    let is_transient = matches!(
        failure.code,
        ErrorCode::WriteConflict
            | ErrorCode::LockTimeout
            | ErrorCode::SnapshotUnavailable
            | ErrorCode::NoSuchTransaction
    );
    match request {
        Labelled::Write | Labelled::End if is_shutdown => failure.labels.push(RETRYABLE),
        Labelled::Statement if is_shutdown => failure.labels.push(TRANSIENT),
        Labelled::Statement | Labelled::End if is_transient => failure.labels.push(TRANSIENT),
        _ => {}
    }
}
