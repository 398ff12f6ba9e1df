//! Expiry: the removal of the documents whose date an index with `expireAfterSeconds` has let pass.
//!
//! # Rules
//! - A document expires when the smallest date at the field of the index is that many seconds old. Values of
//!   other types never expire, and a document without a date stays.
//! - The index finds the documents, so one that it leaves out (a partial index) never expires by it. A hidden
//!   index counts as any other, as in MongoDB. One under construction is not among a collection's indexes.
//! - A document is tested again in the transaction that removes it, as those of every delete are.
//! - Where the documents lie by the date and no index has entries of them, they go by range deletes. Beside a
//!   transaction that changes one of them they go one by one.
//! - One that another transaction is changing stays until the next pass: the others do not wait for it.
//! - Partitions whose documents have all expired are dropped first ([`drop_partitions`]).
//! - Where partitions follow the time, they are dropped by `partition_keeper`. Documents that have expired
//!   and lie in another partition than they should go one by one ([`by_schedule`]).

use std::ops::Bound;
use std::sync::Arc;

use pando_catalog::{
    Bytes, CatalogError, Collection, ID_INDEX, KeyRange, Layout, Namespace, PrimaryKey, RangeStep, StampKind,
    WriteTransaction,
};
use pando_collation::TextOrder;
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, Value, doc};
use pando_keyorder::Direction;
use pando_query::filter::Filter;
use pando_query::plan::Hint;
use pando_query::time_series::Series;

use super::delete::delete_one;
use super::selection::Selection;
use super::steps::{STEP_BYTES, STEP_DOCUMENTS, Written, in_steps};
use crate::CommandError;
use crate::arguments::whole;
use crate::context::Context;
use crate::error::write_failure;
use crate::operations::{RequestFacts, RunningRequest, statement_of};

/// The most documents of one removal, so that the indexes of a store take turns.
pub(crate) const REMOVAL_DOCUMENTS_MAX: u64 = 50_000;

/// The time after which an index lets documents expire: a field in one direction, and seconds.
struct Expiry<'i> {
    path: &'i str,
    seconds: i64,
    /// The documents that the index has.
    partial: Option<&'i RawDocument>,
}

impl<'i> Expiry<'i> {
    fn of(specification: &'i RawDocument) -> Option<Expiry<'i>> {
        let seconds = specification.get("expireAfterSeconds").ok()??;
        let key = specification.get("key").ok()??.as_document()?;
        let mut fields = key.iter();
        let (path, direction) = fields.next()?.ok()?;
        let is_ordered = direction.is_number() && fields.next().is_none();
        let partial =
            specification.get("partialFilterExpression").ok()?.and_then(|value| value.as_document());
        (is_ordered && seconds.is_number()).then(|| Expiry { path, seconds: whole(seconds), partial })
    }

    /// The last date that has expired at this time.
    fn last(&self, now_ms: i64) -> i64 {
        now_ms.saturating_sub(self.seconds.saturating_mul(1000))
    }

    /// The filter of the documents that have expired at this time.
    fn filter(&self, now_ms: i64) -> Document {
        let last = self.last(now_ms);
        let mut of_date = Document::new();
        of_date.push(self.path, doc! { "$lte": (Value::DateTime(last)) });
        let Some(partial) = self.partial else { return of_date };
        let both = vec![Value::Document(of_date), RawValue::Document(partial).to_owned()];
        let mut filter = Document::new();
        filter.push("$and", Value::Array(both));
        filter
    }
}

/// The time after which the buckets of a time series expire: when the last measurement has.
struct SeriesExpiry {
    series: Series,
    seconds: i64,
}

impl SeriesExpiry {
    fn of(collection: &Collection) -> Option<SeriesExpiry> {
        let RawValue::Document(series) = collection.options().get("timeseries").ok()?? else { return None };
        let seconds = collection.options().get("expireAfterSeconds").ok()??;
        Some(SeriesExpiry { series: Series::of(series)?, seconds: whole(seconds) })
    }

    fn filter(&self, now_ms: i64) -> Document {
        let last = now_ms.saturating_sub(self.seconds.saturating_mul(1000));
        let mut filter = Document::new();
        filter.push("_id", doc! { "$lte": (RawValue::ObjectId(self.series.last_id_at(last)).to_owned()) });
        let latest = format!("control.max.{}", self.series.time_field);
        filter.push(latest, doc! { "$lte": (Value::DateTime(last)) });
        filter
    }
}

/// The name of the primary key of a collection whose partitions follow the time, if they are dropped.
pub(crate) fn by_schedule(collection: &Collection) -> Option<String> {
    let drops = collection.schedule()?.horizon(0).is_some();
    collection.primary_index_name().filter(|_| drops).map(str::to_owned)
}

/// The filter of the documents before the horizon of a schedule. Their partitions should be gone.
fn schedule_filter(collection: &Collection, index: &str, now_ms: i64) -> Option<Document> {
    let schedule = collection.schedule().filter(|_| collection.primary_index_name() == Some(index))?;
    let horizon = schedule.kind().first_at(schedule.horizon(now_ms)?);
    let mut filter = Document::new();
    filter.push(schedule.path(), doc! { "$lt": (horizon) });
    Some(filter)
}

/// Whether documents are to be removed one by one after [`drop_partitions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropping {
    /// They are.
    Done,
    /// Partitions are dropped in the next pass, and their documents with them.
    Later,
}

/// Drops the partitions whose documents have all expired by an index: it is of the field by which the
/// partitions lie. `removed` gets the number of documents.
pub(crate) fn drop_partitions(
    context: &Context<'_>,
    namespace: &Namespace,
    index: &str,
    removed: &mut u64,
) -> Result<Dropping, CommandError> {
    let catalog = context.catalog();
    let found = catalog.collection(namespace.database(), namespace.collection());
    let last = found.as_deref().and_then(|found| expired_partitions(found, index, context.shared.now_ms()));
    let Some(last) = last else { return Ok(Dropping::Done) };
    match catalog.drop_expired_partitions(namespace, (StampKind::Date, last), context.operation) {
        Ok(Some(dropped)) => {
            *removed += dropped.documents;
            Ok(Dropping::Done)
        }
        // A statement, a transaction or an index build has the collection.
        Ok(None) => Ok(Dropping::Later),
        Err(CatalogError::IndexBuildRunning { .. }) => Ok(Dropping::Later),
        Err(CatalogError::Storage(error)) if error.is_conflict() => Ok(Dropping::Later),
        Err(CatalogError::CollectionNotFound { .. }) => Ok(Dropping::Done),
        Err(error) => Err(error.into()),
    }
}

/// The last date that has expired by an index of all documents, where the primary key begins with its field.
fn expired_partitions(collection: &Collection, index: &str, now_ms: i64) -> Option<i64> {
    let Layout::Fields(fields) = collection.layout() else { return None };
    let specification = collection.index(index).filter(|_| collection.has_partitions())?.specification();
    let expiry = Expiry::of(specification)?;
    let is_of_key = fields[0].path == expiry.path && fields[0].direction == Direction::Ascending;
    (is_of_key && expiry.partial.is_none()).then(|| expiry.last(now_ms))
}

/// The names of the indexes by which documents of a collection expire. The documents themselves are one, by
/// their `_id`, where `clusteredIndex` stands beside `expireAfterSeconds`.
pub(crate) fn expiring_indexes(collection: &Collection) -> Vec<String> {
    if SeriesExpiry::of(collection).is_some() {
        return vec![ID_INDEX.to_owned()];
    }
    let all = collection.describe_indexes().into_iter();
    all.filter(|index| Expiry::of(&index.specification).is_some()).map(|index| index.name).collect()
}

/// Lists the request of the context as the delete that [`remove`] is, so that it is seen while it waits for
/// its turn. Does nothing for an index that is gone.
pub(crate) fn list(
    context: &mut Context<'_>,
    namespace: &Namespace,
    index: &str,
) -> Result<(), CommandError> {
    let Some(lease) = context.lease(namespace)? else { return Ok(()) };
    let Some(filter) = filter_by(&lease, index, context.shared.now_ms()) else { return Ok(()) };
    let body = doc! { "delete": (namespace.collection()) }.to_raw();
    let database = namespace.database();
    let facts = RequestFacts { database, session: None, began: context.began, wants_answer: false };
    let statement = statement_of(&[("q", RawValue::Document(&filter)), ("limit", RawValue::Int32(0))]);
    let request = RunningRequest { command: statement, ..RunningRequest::of(&body, facts) };
    context.shared.running.list(context.record, request);
    Ok(())
}

/// Removes the documents that have expired by an index, up to [`REMOVAL_DOCUMENTS_MAX`]; gives their number.
///
/// # Errors
/// Documents that earlier transactions have removed are gone; `removed` gets their number.
pub(crate) fn remove(
    context: &mut Context<'_>,
    namespace: &Namespace,
    index: &str,
    removed: &mut u64,
) -> Result<(), CommandError> {
    let Some(lease) = context.lease(namespace)? else { return Ok(()) };
    let Some(filter) = filter_by(&lease, index, context.shared.now_ms()) else { return Ok(()) };
    // The filter of a partial index compares as the index does.
    let order = lease.index(index).map_or(&TextOrder::SIMPLE, |index| index.text_order());
    let parsed = Filter::parse(&filter, &context.parse_scope().collated_by(order))?;
    let selection = Selection::by_index(parsed, Hint::OfServer(index.to_owned()), REMOVAL_DOCUMENTS_MAX);
    let collection: &Arc<Collection> = &lease;
    if let Some(range) = expired_keys(collection, index, context.shared.now_ms())
        && remove_by_ranges(context, collection, &range, removed)?
    {
        return Ok(());
    }
    let change = |context: &Context<'_>,
                  transaction: &mut WriteTransaction,
                  key: &[u8],
                  old: Bytes,
                  step: &mut u64| {
        let before = transaction.savepoint();
        match delete_one(context, collection, transaction, key, &old) {
            Ok(()) => *step += 1,
            Err(CommandError::Failed(failure)) if failure.is_conflict() => transaction.rollback_to(before),
            Err(error) => return Err(error),
        }
        Ok(Written(0))
    };
    in_steps(context, &selection, collection, &change, |step: u64| *removed += step).map(drop)
}

/// The primary keys of the documents that have expired, where they are their dates.
fn expired_keys(collection: &Collection, index: &str, now_ms: i64) -> Option<KeyRange> {
    let is_by_date = collection.layout().is_by_id() && collection.primary_index_name() == Some(index);
    if !is_by_date || SeriesExpiry::of(collection).is_some() {
        return None;
    }
    let described = collection.describe_indexes();
    let found = described.iter().find(|described| described.name == index)?;
    let expiry = Expiry::of(&found.specification)?;
    let key = |date| PrimaryKey::in_order(RawValue::DateTime(date), collection.text_order()).into_bytes();
    let (lower, upper) = (Bound::Included(key(i64::MIN)), Bound::Included(key(expiry.last(now_ms))));
    Some(KeyRange { lower, upper })
}

/// Removes documents by ranges, up to [`REMOVAL_DOCUMENTS_MAX`]. False where the rest has to go one by one.
fn remove_by_ranges(
    context: &mut Context<'_>,
    collection: &Arc<Collection>,
    range: &KeyRange,
    removed: &mut u64,
) -> Result<bool, CommandError> {
    let namespace = collection.namespace().to_string();
    while *removed < REMOVAL_DOCUMENTS_MAX {
        context.check()?;
        let most = RangeStep { documents: STEP_DOCUMENTS as u64, bytes: STEP_BYTES };
        let mut work = context.begin_work()?;
        let gone = collection.remove_first(work.writer(), range.clone(), most, context.caller());
        let gone = match gone.map_err(|error| write_failure(error, &namespace)) {
            Ok(Some(0)) => return Ok(true),
            Ok(None) => return Ok(false),
            Ok(Some(gone)) => context.commit_work(work).map(|()| gone),
            Err(error) => Err(error),
        };
        match gone {
            Ok(gone) => *removed += gone,
            Err(error) if error.is_conflict() => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// The filter of the documents that have expired by an index, which may be gone or be another one by now.
fn filter_by(collection: &Collection, index: &str, now_ms: i64) -> Option<RawDocumentBuf> {
    if let Some(expiry) = SeriesExpiry::of(collection).filter(|_| index == ID_INDEX) {
        return Some(expiry.filter(now_ms).to_raw());
    }
    if let Some(filter) = schedule_filter(collection, index, now_ms) {
        return Some(filter.to_raw());
    }
    let described = collection.describe_indexes();
    let found = described.iter().find(|described| described.name == index)?;
    Some(Expiry::of(&found.specification)?.filter(now_ms).to_raw())
}

#[cfg(test)]
mod tests {
    use pando_catalog::index_kind::{IndexFactory, OrdinaryIndexes};

    use super::*;

    fn filter_of(specification: Document) -> Option<Document> {
        let definition = OrdinaryIndexes.define(&specification.to_raw()).unwrap();
        Expiry::of(&definition.description.specification).map(|expiry| expiry.filter(10_000))
    }

    #[test]
    fn documents_expire_by_one_field_and_the_filter_of_their_index() {
        let plain = doc! { "key": { "a": -1 }, "name": "x", "expireAfterSeconds": 3 };
        assert_eq!(filter_of(plain), Some(doc! { "a": { "$lte": (Value::DateTime(7_000)) } }));
        let partial = doc! {
            "key": { "a": 1 }, "name": "x", "expireAfterSeconds": 0, "partialFilterExpression": { "b": 1 }
        };
        let both = vec![
            Value::Document(doc! { "a": { "$lte": (Value::DateTime(10_000)) } }),
            Value::Document(doc! { "b": 1 }),
        ];
        assert_eq!(filter_of(partial), Some(doc! { "$and": (Value::Array(both)) }));
        assert_eq!(filter_of(doc! { "key": { "a": 1 }, "name": "x" }), None);
        let several = doc! { "key": { "a": 1, "b": 1 }, "name": "x", "expireAfterSeconds": 3 };
        assert_eq!(filter_of(several), None);
    }
}
