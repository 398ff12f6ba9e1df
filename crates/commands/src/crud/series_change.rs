//! Updates and deletes of a time series: they become those of its buckets.
//!
//! As in MongoDB 6.0 they concern all measurements of the meta values that match (`time_series/meta_change`
//! of crate `query`). Their figures count measurements. A statement that is refused fails by itself.

use std::sync::Arc;

use pando_catalog::{Collection, Namespace, WriteTransaction};
use pando_document::{RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::expression::ParseScope;
use pando_query::time_series::{BUCKETS_PREFIX, Series};

use super::delete::{DeleteOutcome, DeleteParts};
use super::statement_batch::{BatchOutcome, Effect, Statement, StatementBatch, StatementRun};
use super::update_statement::{Counted, Reach, UpdateOutcome, UpdateParts, Upsert};
use super::write_reply::Order;
use crate::context::Context;
use crate::error::Failure;
use crate::{CommandError, ErrorCode, unit_of_work};

/// A statement of buckets, or why there is none.
struct Translated<S>(Result<S, Box<Failure>>);

impl<S: Statement> Statement for Translated<S> {
    type Outcome = S::Outcome;
    type Large = S::Large;

    fn run(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
        scope: &ParseScope,
    ) -> Result<StatementRun<Self>, CommandError> {
        match &self.0 {
            Ok(statement) => Ok(match statement.run(context, collection, transaction, scope)? {
                StatementRun::Done(outcome) => StatementRun::Done(outcome),
                StatementRun::TooLarge(large) => StatementRun::TooLarge(large),
            }),
            Err(failure) => Err(CommandError::Failed(failure.clone())),
        }
    }

    fn shown(&self) -> Option<RawDocumentBuf> {
        self.0.as_ref().ok().and_then(Statement::shown)
    }

    fn effect(outcome: &S::Outcome) -> Option<Effect<'_>> {
        S::effect(outcome)
    }

    fn repeated(upserted: Option<Value>) -> S::Outcome {
        S::repeated(upserted)
    }

    fn run_in_steps(
        large: &S::Large,
        context: &mut Context<'_>,
        collection: &Arc<Collection>,
        outcome: &mut S::Outcome,
    ) -> Result<(), CommandError> {
        S::run_in_steps(large, context, collection, outcome)
    }
}

/// Deletes measurements.
pub(super) fn delete_batch(
    context: &mut Context<'_>,
    namespace: &Namespace,
    parts: &[DeleteParts<'_>],
    scope: &ParseScope,
    order: Order,
) -> Result<BatchOutcome<DeleteOutcome>, CommandError> {
    let series = series_of(context, namespace)?;
    let queries: Vec<_> = parts.iter().map(|part| bucket_query_of_delete(&series, part)).collect();
    let statements = parts.iter().zip(&queries).map(|(part, query)| match query {
        Ok(query) => {
            Ok(Translated(Ok(DeleteParts { query, counted: Counted::Measurements(&series), ..*part })))
        }
        Err(CommandError::Failed(failure)) => Ok(Translated(Err(failure.clone()))),
        Err(CommandError::WouldBlock(read)) => Err(CommandError::WouldBlock(read.clone())),
    });
    let statements: Vec<Translated<DeleteParts<'_>>> = statements.collect::<Result<_, _>>()?;
    run(context, namespace, &statements, scope, order)
}

fn bucket_query_of_delete(series: &Series, part: &DeleteParts<'_>) -> Result<RawDocumentBuf, CommandError> {
    if part.reach == Reach::One {
        return Err(CommandError::failed(
            ErrorCode::IllegalOperation,
            "Cannot perform a non-multi delete on a time-series collection",
        ));
    }
    if series.meta_field.is_none() && !part.query.is_empty() {
        return Err(invalid(
            "Cannot perform a delete with a non-empty query on a time-series collection that does not have a metaField",
        ));
    }
    Ok(series.meta_filter(part.query)?)
}

/// Updates meta values.
pub(super) fn update_batch(
    context: &mut Context<'_>,
    namespace: &Namespace,
    parts: &[UpdateParts<'_>],
    scope: &ParseScope,
    order: Order,
) -> Result<BatchOutcome<UpdateOutcome>, CommandError> {
    let series = series_of(context, namespace)?;
    let changes: Vec<_> = parts.iter().map(|part| BucketChange::of(&series, part)).collect();
    let statements = parts.iter().zip(&changes).map(|(part, change)| match change {
        Ok(BucketChange { query, update }) => Ok(Translated(Ok(UpdateParts {
            query,
            update: RawValue::Document(update),
            counted: Counted::Measurements(&series),
            ..part.clone()
        }))),
        Err(CommandError::Failed(failure)) => Ok(Translated(Err(failure.clone()))),
        Err(CommandError::WouldBlock(read)) => Err(CommandError::WouldBlock(read.clone())),
    });
    let statements: Vec<Translated<UpdateParts<'_>>> = statements.collect::<Result<_, _>>()?;
    run(context, namespace, &statements, scope, order)
}

/// The filter and the operators of an update of buckets.
struct BucketChange {
    query: RawDocumentBuf,
    update: RawDocumentBuf,
}

impl BucketChange {
    fn of(series: &Series, part: &UpdateParts<'_>) -> Result<BucketChange, CommandError> {
        if series.meta_field.is_none() {
            return Err(invalid(
                "Cannot perform an update on a time-series collection that does not have a metaField",
            ));
        }
        if part.reach == Reach::One {
            return Err(invalid("Cannot perform a non-multi update on a time-series collection"));
        }
        if part.upsert == Upsert::Yes {
            return Err(invalid("Cannot perform an upsert on a time-series collection"));
        }
        let update = match part.update {
            RawValue::Array(_) => {
                return Err(invalid(
                    "Cannot perform an update on a time-series collection using a pipeline update",
                ));
            }
            RawValue::Document(update) if begins_with_operator(update) => update,
            _ => {
                return Err(invalid(
                    "Cannot perform an update on a time-series collection using a replacement document",
                ));
            }
        };
        Ok(BucketChange { query: series.meta_filter(part.query)?, update: series.meta_update(update)? })
    }
}

fn begins_with_operator(update: &RawDocument) -> bool {
    matches!(update.iter().next(), Some(Ok((name, _))) if name.starts_with('$'))
}

/// Carries out statements of the buckets of a series.
fn run<S: Statement>(
    context: &mut Context<'_>,
    namespace: &Namespace,
    statements: &[S],
    scope: &ParseScope,
    order: Order,
) -> Result<BatchOutcome<S::Outcome>, CommandError> {
    if context.open_transaction().is_some() {
        return Err(CommandError::failed(
            ErrorCode::OperationNotSupportedInTransaction,
            format!("Cannot perform a multi-document transaction on a time-series collection: {namespace}"),
        ));
    }
    let buckets = context.namespace(&format!("{BUCKETS_PREFIX}{}", namespace.collection()))?;
    let mut batch = StatementBatch::new(statements, scope, order);
    unit_of_work::run(context, |context| {
        let lease = context.lease(&buckets)?.ok_or_else(|| {
            CommandError::failed(ErrorCode::NamespaceNotFound, format!("ns not found: {buckets}"))
        })?;
        batch.run(context, &lease)
    })?;
    Ok(batch.into_outcome())
}

fn series_of(context: &Context<'_>, namespace: &Namespace) -> Result<Series, CommandError> {
    match context.series(namespace.collection())? {
        Some((_, series)) => Ok(series),
        None => Err(CommandError::failed(ErrorCode::NamespaceNotFound, format!("ns not found: {namespace}"))),
    }
}

fn invalid(reason: &str) -> CommandError {
    CommandError::failed(ErrorCode::InvalidOptions, reason)
}
