//! Updates and deletes of a time series: they become those of its buckets.
//!
//! Updates concern all measurements of the meta values that match (`time_series/meta_change` of crate
//! `query`), as in MongoDB. Deletes concern any measurements; those that name the meta field alone remove
//! whole buckets, and the others change buckets (`measurement_delete`). The figures count measurements. A
//! statement that is refused fails by itself.

use std::sync::Arc;

use pando_catalog::{Collection, Lease, Namespace, WriteTransaction};
use pando_document::{RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::expression::ParseScope;
use pando_query::time_series::Series;

use super::delete::{DeleteOutcome, DeleteParts, LargeDelete};
use super::measurement_delete::{MeasurementDelete, ParsedFilter};
use super::statement_batch::{BatchOutcome, Effect, Statement, StatementBatch, StatementRun};
use super::time_series::buckets_of;
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

/// A delete of measurements.
enum SeriesDelete<'a> {
    /// Of all measurements of buckets.
    Buckets(DeleteParts<'a>),
    Measurements(MeasurementDelete<'a>),
}

/// A large one.
enum LargeSeriesDelete<'a> {
    Buckets(LargeDelete<'a>),
    Measurements(ParsedFilter<'a>),
}

impl<'a> Statement for SeriesDelete<'a> {
    type Outcome = DeleteOutcome;
    type Large = LargeSeriesDelete<'a>;

    fn run(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
        scope: &ParseScope,
    ) -> Result<StatementRun<Self>, CommandError> {
        let large = match self {
            SeriesDelete::Buckets(parts) => match parts.run(context, collection, transaction, scope)? {
                StatementRun::Done(outcome) => return Ok(StatementRun::Done(outcome)),
                StatementRun::TooLarge(large) => LargeSeriesDelete::Buckets(*large),
            },
            SeriesDelete::Measurements(delete) => {
                match delete.run(context, collection, transaction, scope)? {
                    StatementRun::Done(outcome) => return Ok(StatementRun::Done(outcome)),
                    StatementRun::TooLarge(large) => LargeSeriesDelete::Measurements(*large),
                }
            }
        };
        Ok(StatementRun::TooLarge(Box::new(large)))
    }

    fn shown(&self) -> Option<RawDocumentBuf> {
        match self {
            SeriesDelete::Buckets(parts) => Statement::shown(parts),
            SeriesDelete::Measurements(delete) => delete.shown(),
        }
    }

    fn effect(outcome: &DeleteOutcome) -> Option<Effect<'_>> {
        <DeleteParts<'_> as Statement>::effect(outcome)
    }

    fn repeated(upserted: Option<Value>) -> DeleteOutcome {
        <DeleteParts<'_> as Statement>::repeated(upserted)
    }

    fn run_in_steps(
        large: &LargeSeriesDelete<'a>,
        context: &mut Context<'_>,
        collection: &Arc<Collection>,
        outcome: &mut DeleteOutcome,
    ) -> Result<(), CommandError> {
        match large {
            LargeSeriesDelete::Buckets(large) => {
                DeleteParts::run_in_steps(large, context, collection, outcome)
            }
            LargeSeriesDelete::Measurements(large) => {
                MeasurementDelete::run_in_steps(large, context, collection, outcome)
            }
        }
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
    let queries: Vec<_> = parts.iter().map(|part| whole_bucket_query(&series, part)).collect();
    let hints: Vec<_> = parts.iter().map(|part| bucket_hint(&series, part.hint)).collect();
    let statements = parts.iter().zip(&queries).zip(&hints).map(|((part, query), hint)| {
        let part = DeleteParts { hint: hint.as_deref().map(RawValue::Document).or(part.hint), ..*part };
        match query {
            Some(query) => {
                SeriesDelete::Buckets(DeleteParts { query, counted: Counted::Measurements(&series), ..part })
            }
            None => SeriesDelete::Measurements(MeasurementDelete::new(part, &series)),
        }
    });
    let statements: Vec<SeriesDelete<'_>> = statements.collect();
    run(context, namespace, &statements, scope, order)
}

/// The filter of the buckets that a delete removes as a whole; `None` where it selects measurements.
fn whole_bucket_query(series: &Series, part: &DeleteParts<'_>) -> Option<RawDocumentBuf> {
    match part.reach {
        Reach::One => None,
        Reach::Many => series.meta_filter(part.query).ok(),
    }
}

/// The pattern of the index of buckets for a hint that names one of measurements by its pattern.
pub(super) fn bucket_hint(series: &Series, hint: Option<RawValue<'_>>) -> Option<RawDocumentBuf> {
    match hint {
        Some(RawValue::Document(pattern)) if !matches!(pattern.get("$natural"), Ok(Some(_))) => {
            Some(series.bucket_key_pattern(pattern))
        }
        _ => None,
    }
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
    let buckets = buckets_outside_transactions(context, namespace)?;
    let mut batch = StatementBatch::new(statements, scope, order);
    unit_of_work::run(context, |context| {
        let lease = lease_of_buckets(context, &buckets)?;
        batch.run(context, &lease)
    })?;
    Ok(batch.into_outcome())
}

/// The name of the buckets of a series, which no transaction writes to.
pub(super) fn buckets_outside_transactions(
    context: &Context<'_>,
    namespace: &Namespace,
) -> Result<Namespace, CommandError> {
    if context.open_transaction().is_some() {
        return Err(CommandError::failed(
            ErrorCode::OperationNotSupportedInTransaction,
            format!("Cannot perform a multi-document transaction on a time-series collection: {namespace}"),
        ));
    }
    Ok(buckets_of(namespace)?)
}

/// A lease of the buckets of a series.
pub(super) fn lease_of_buckets(
    context: &mut Context<'_>,
    buckets: &Namespace,
) -> Result<Lease, CommandError> {
    context
        .lease(buckets)?
        .ok_or_else(|| CommandError::failed(ErrorCode::NamespaceNotFound, format!("ns not found: {buckets}")))
}

pub(super) fn series_of(context: &Context<'_>, namespace: &Namespace) -> Result<Series, CommandError> {
    match context.series_of(namespace)? {
        Some((_, series)) => Ok(series),
        None => Err(CommandError::failed(ErrorCode::NamespaceNotFound, format!("ns not found: {namespace}"))),
    }
}

fn invalid(reason: &str) -> CommandError {
    CommandError::failed(ErrorCode::InvalidOptions, reason)
}
