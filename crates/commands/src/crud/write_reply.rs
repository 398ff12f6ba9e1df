//! Replies of commands that carry a batch of writes: the count of writes, and the failed ones.

use pando_catalog::Namespace;
use pando_document::{DocumentWriter, RawValue};

use crate::context::Context;
use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// Failures of a batch whose details of validation are told, so that the reply does not grow too large.
const DETAILS_MAX: usize = 256;

/// The end of the refusal of a write to a capped collection in a transaction.
const CAPPED_IN_TRANSACTION: &str = "Writes in transactions are not allowed on capped collections.";
/// The begin of the refusal of a removal.
const CAPPED_REMOVAL: &str = "Cannot remove from a capped collection in a multi-document transaction: ";

/// A write of a batch that failed.
#[derive(Debug)]
pub(super) struct FailedWrite {
    /// Its place in the batch.
    pub index: usize,
    /// The error that the client is told.
    pub failure: Failure,
}

/// Whether the writes behind a failed one are still carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The first failure ends the batch.
    Ordered,
    /// Every write is tried.
    Unordered,
}

/// Adds a failed write. Of many, the later ones are without details of validation.
pub(super) fn push_failed(failed: &mut Vec<FailedWrite>, mut write: FailedWrite) {
    if failed.len() >= DETAILS_MAX {
        write.failure.details.remove("errInfo");
    }
    failed.push(write);
}

/// The failures of the writes of a batch whose target is a view, or a capped collection in a transaction;
/// another error stays one of the command.
pub(super) fn writes_into_view(
    error: CommandError,
    writes: usize,
    order: Order,
) -> Result<Vec<FailedWrite>, CommandError> {
    match error {
        CommandError::Failed(failure)
            if failure.code == ErrorCode::CommandNotSupportedOnView || is_of_capped(&failure) =>
        {
            Ok(refusals(&failure, writes, order))
        }
        other => Err(other),
    }
}

/// The same failure of every statement of a batch, or of the first if that ends it.
pub(super) fn refusals(failure: &Failure, writes: usize, order: Order) -> Vec<FailedWrite> {
    let tried = if order == Order::Ordered { writes.min(1) } else { writes };
    (0..tried).map(|index| FailedWrite { index, failure: failure.clone() }).collect()
}

/// Whether a write was refused because its collection is capped.
fn is_of_capped(failure: &Failure) -> bool {
    match failure.code {
        ErrorCode::OperationNotSupportedInTransaction => failure.message.ends_with(CAPPED_IN_TRANSACTION),
        ErrorCode::IllegalOperation => failure.message.starts_with(CAPPED_REMOVAL),
        _ => false,
    }
}

/// The removal from a capped collection in a transaction, which MongoDB refuses in words of its own.
pub(super) fn capped_removal(error: CommandError, namespace: &Namespace) -> CommandError {
    match error {
        CommandError::Failed(failure) if is_of_capped(&failure) => {
            CommandError::failed(ErrorCode::IllegalOperation, format!("{CAPPED_REMOVAL}{namespace}"))
        }
        other => other,
    }
}

/// The number of tried operations of a batch. An ordered batch ends with its first failure.
pub(super) fn tried(operations: usize, order: Order, failed: &[FailedWrite]) -> usize {
    match (order, failed.first()) {
        (Order::Ordered, Some(first)) => first.index + 1,
        _ => operations,
    }
}

/// Notes how many writes have failed, and the damage on the device that they have met, if they have met some.
pub(super) fn note_failed(context: &Context<'_>, failed: &[FailedWrite]) {
    context.note(|notes| notes.write_errors += failed.len() as u64);
    let is_damage = |one: &&FailedWrite| one.failure.code == ErrorCode::DataCorruptionDetected;
    if let Some(one) = failed.iter().find(is_damage) {
        context.note(|notes| notes.damage = Some(one.failure.message.clone()));
    }
}

/// Writes the `writeErrors` field, if there are any.
pub(super) fn write_errors(reply: &mut DocumentWriter<'_>, failed: &[FailedWrite]) {
    if failed.is_empty() {
        return;
    }
    let mut errors = reply.array("writeErrors");
    for FailedWrite { index, failure } in failed {
        let mut one = errors.document();
        one.append("index", RawValue::Int32(i32::try_from(*index).unwrap_or(i32::MAX)));
        one.append("code", RawValue::Int32(failure.code.code()));
        one.append("errmsg", RawValue::String(&failure.message));
        for (name, value) in failure.details.iter() {
            one.append_value(name, value);
        }
        one.finish();
    }
    errors.finish();
}

/// Writes the statements that an earlier request has carried out, if there are any.
pub(super) fn write_retried(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let retried = context.session_use.as_ref().map_or(&[][..], |session| session.retried());
    if retried.is_empty() {
        return;
    }
    let mut list = reply.array("retriedStmtIds");
    for id in retried {
        list.push(RawValue::Int32(*id));
    }
    list.finish();
}

/// A count as replies show it.
pub(super) fn count(number: u64) -> RawValue<'static> {
    match i32::try_from(number) {
        Ok(small) => RawValue::Int32(small),
        Err(_) => RawValue::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
    }
}
