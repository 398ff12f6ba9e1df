//! Inserts of a connection that has a load open: the load takes the documents, and its commit writes them.
//!
//! A document that cannot be stored is told as in every other insert. Any other failure ends the load,
//! because its client could not know which documents were taken.

use pando_document::RawDocument;

use super::insert::ends_session_transaction;
use super::stored_document;
use super::write_reply::{FailedWrite, Order, tried};
use crate::CommandError;
use crate::context::Context;
use crate::error::write_failure;
use crate::open_load::OpenLoad;
use crate::operation_counters::OperationKind;

/// Gives a batch to the load; the number of documents taken, and those that failed.
pub(super) fn insert_batch(
    context: &mut Context<'_>,
    load: &OpenLoad,
    documents: &[&RawDocument],
    order: Order,
) -> Result<(u64, Vec<FailedWrite>), CommandError> {
    // The sorters may write to scratch files.
    context.require_may_block()?;
    if let Some(session) = &mut context.session_use {
        session.touch();
    }
    let outcome = insert_all(context, load, documents, order);
    match &outcome {
        Ok((_, failed)) => {
            context.shared.operations.add(OperationKind::Insert, tried(documents.len(), order, failed));
        }
        Err(_) => load.end(),
    }
    outcome
}

fn insert_all(
    context: &mut Context<'_>,
    load: &OpenLoad,
    documents: &[&RawDocument],
    order: Order,
) -> Result<(u64, Vec<FailedWrite>), CommandError> {
    let namespace = load.namespace().to_string();
    let mut load = load.lock()?;
    let (mut inserted, mut failed, mut stored) = (0, Vec::new(), Vec::new());
    for (index, document) in documents.iter().enumerate() {
        context.check()?;
        let outcome =
            match stored_document::prepare(context.shared, document, context.empty_timestamps, &mut stored) {
                Ok(()) => load
                    .insert(RawDocument::from_bytes(&stored)?, context.operation)
                    .map_err(|error| write_failure(error, &namespace)),
                refused => refused,
            };
        match outcome {
            Ok(()) => inserted += 1,
            Err(CommandError::Failed(failure)) if !load.is_broken() => {
                failed.push(FailedWrite { index, failure: *failure });
                if ends_session_transaction(context) || order == Order::Ordered {
                    break;
                }
            }
            Err(error) => return Err(error),
        }
    }
    load.report(context.operation);
    Ok((inserted, failed))
}
