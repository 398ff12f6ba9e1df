//! The delete of measurements that a filter of any of their fields selects.
//!
//! # Steps
//! 1. The buckets in which a measurement may match are found by their own filter (`bucket_filter` of crate
//!    `query`), as those of a read are.
//! 2. Each is unpacked, and the filter is asked of each measurement.
//! 3. The measurements that are left are packed as the same bucket. A bucket without any is removed.
//!
//! A delete that selects by the meta value alone removes whole buckets and unpacks none (`series_change`).

use std::sync::Arc;

use pando_catalog::{Bytes, Collection, WriteTransaction};
use pando_document::{RawDocument, RawDocumentBuf, RawValue};
use pando_query::QueryError;
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::hold_value;
use pando_query::time_series::{Series, bucket_filter};

use super::delete::{DeleteOutcome, DeleteParts, delete_one};
use super::selection::{self, KeyScan, Selection};
use super::statement_batch::{Effect, Statement, StatementRun};
use super::steps::{Meter, Written, documents_max, in_steps};
use super::update_statement::Reach;
use crate::CommandError;
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::error::write_failure;

/// Whose memory the measurements of a bucket are.
const OWNER: &str = "a delete of measurements";
/// Buckets that are looked for at a time, where one measurement is wanted.
const BUCKETS_AT_A_TIME: usize = 64;

/// The measurements that are to be deleted.
pub(super) struct MeasurementFilter<'a> {
    pub series: &'a Series,
    pub query: &'a RawDocument,
    pub hint: Option<RawValue<'a>>,
    pub collation: CollationChoice<'a>,
}

/// A delete of measurements.
pub(super) struct MeasurementDelete<'a> {
    parts: DeleteParts<'a>,
    series: &'a Series,
}

/// The filters of a delete, parsed.
pub(super) struct ParsedFilter<'a> {
    series: &'a Series,
    buckets: Selection,
    measurements: Filter,
}

/// The effect on one bucket.
#[derive(Default)]
struct Removed {
    measurements: u64,
    /// The first of them, where it is wanted.
    first: Option<RawDocumentBuf>,
}

impl<'a> MeasurementFilter<'a> {
    fn parse(
        &self,
        scope: &ParseScope,
        collection: &Arc<Collection>,
    ) -> Result<ParsedFilter<'a>, CommandError> {
        let scope = self.collation.scope_in(scope, Some(collection))?;
        let measurements = Filter::parse(self.query, &scope)?;
        let of_buckets = bucket_filter(self.series, self.query)?;
        let of_buckets = of_buckets.as_deref().unwrap_or(RawDocument::empty());
        let buckets = Selection::new(Filter::parse_for_plan(of_buckets, &scope)?, None, self.hint, None)?;
        Ok(ParsedFilter { series: self.series, buckets, measurements })
    }

    /// Deletes the first measurement that matches, and gives it.
    pub fn delete_first(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
        scope: &ParseScope,
    ) -> Result<Option<RawDocumentBuf>, CommandError> {
        let parsed = self.parse(scope, collection)?;
        let mut scan = KeyScan::new(&parsed.buckets, collection, &**transaction, context)?;
        loop {
            let keys = scan.next(&**transaction, context.caller(), BUCKETS_AT_A_TIME)?;
            if keys.is_empty() {
                return Ok(None);
            }
            for key in keys {
                context.check()?;
                let Some(old) = collection.fetch(&**transaction, &key, context.blocking)? else { continue };
                let bucket = Bucket { context, collection, key: &key, old: &old };
                let (removed, _) = parsed.delete_in(&bucket, transaction, Reach::One)?;
                if removed.first.is_some() {
                    return Ok(removed.first);
                }
            }
        }
    }
}

/// A bucket as it is stored.
struct Bucket<'b> {
    context: &'b Context<'b>,
    collection: &'b Arc<Collection>,
    key: &'b [u8],
    old: &'b Bytes,
}

impl ParsedFilter<'_> {
    /// Deletes the first measurement of a bucket that matches, or all that do.
    fn delete_in(
        &self,
        bucket: &Bucket<'_>,
        transaction: &mut WriteTransaction,
        reach: Reach,
    ) -> Result<(Removed, Written), CommandError> {
        let Bucket { context, collection, key, old } = *bucket;
        let stored = RawDocument::from_bytes(old)?;
        // A bucket of few bytes may have many values, and a large meta value stands in each measurement.
        let mut memory = context.query_account().reserve();
        let mut held = 0;
        let mut hold = |bytes| {
            held = bytes;
            hold_value(&mut memory, bytes, OWNER)
        };
        let unpacked = self.series.unpack_within(stored, None, &mut hold)?;
        let (mut removed, mut left, mut row) = (Removed::default(), Vec::new(), Vec::new());
        for at in 0..unpacked.len() {
            row.clear();
            unpacked.write(at, &mut row);
            let is_wanted = reach == Reach::Many || removed.measurements == 0;
            if is_wanted && self.measurements.matches(RawDocument::from_bytes(&row)?)? {
                removed.measurements += 1;
                if reach == Reach::One {
                    removed.first = Some(RawDocumentBuf::from_vec(row.clone())?);
                }
                continue;
            }
            let mut kept = Vec::new();
            unpacked.write_without_meta(at, &mut kept);
            held += kept.len();
            hold_value(&mut memory, held, OWNER)?;
            left.push(RawDocumentBuf::from_vec(kept)?);
        }
        if removed.measurements == 0 {
            return Ok((removed, Written(0)));
        }
        if left.is_empty() {
            delete_one(context, collection, transaction, key, old)?;
            return Ok((removed, Written(0)));
        }
        let Some(RawValue::ObjectId(id)) = stored.get("_id")? else {
            return Err(QueryError::failed_to_parse("a bucket has an ObjectId as its _id").into());
        };
        let new = self.series.pack(id, stored.get("meta")?, &left)?;
        collection
            .replace(transaction, key, stored, &new, context.blocking)
            .map_err(|error| write_failure(error, &collection.namespace().to_string()))?;
        Ok((removed, Written(new.as_bytes().len())))
    }
}

impl<'a> MeasurementDelete<'a> {
    /// The delete of a request.
    pub fn new(parts: DeleteParts<'a>, series: &'a Series) -> Self {
        MeasurementDelete { parts, series }
    }

    fn filter(&self) -> MeasurementFilter<'a> {
        let DeleteParts { query, hint, collation, .. } = self.parts;
        MeasurementFilter { series: self.series, query, hint, collation }
    }
}

impl<'a> Statement for MeasurementDelete<'a> {
    type Outcome = DeleteOutcome;
    type Large = ParsedFilter<'a>;

    fn run(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
        scope: &ParseScope,
    ) -> Result<StatementRun<Self>, CommandError> {
        context.list_statement(self.parts.query, || self.parts.shown());
        self.parts.check_retryable(context)?;
        if self.parts.reach == Reach::One {
            let deleted = self.filter().delete_first(context, collection, transaction, scope)?;
            return Ok(StatementRun::Done(DeleteOutcome { documents: u64::from(deleted.is_some()) }));
        }
        let parsed = self.filter().parse(scope, collection)?;
        let keys =
            selection::keys(&parsed.buckets, collection, &**transaction, context, documents_max(context))?;
        let Some(keys) = keys else { return Ok(StatementRun::TooLarge(Box::new(parsed))) };
        let (mut outcome, mut meter) = (DeleteOutcome::default(), Meter::of(context));
        for key in keys {
            context.check()?;
            if meter.is_full(transaction) {
                return Ok(StatementRun::TooLarge(Box::new(parsed)));
            }
            let Some(old) = collection.fetch(&**transaction, &key, context.blocking)? else { continue };
            meter.add(&old);
            let bucket = Bucket { context, collection, key: &key, old: &old };
            let (removed, written) = parsed.delete_in(&bucket, transaction, Reach::Many)?;
            meter.add_written(written);
            outcome.documents += removed.measurements;
        }
        Ok(StatementRun::Done(outcome))
    }

    fn shown(&self) -> Option<RawDocumentBuf> {
        Some(self.parts.shown())
    }

    fn effect(outcome: &DeleteOutcome) -> Option<Effect<'_>> {
        <DeleteParts<'_> as Statement>::effect(outcome)
    }

    fn repeated(upserted: Option<pando_document::Value>) -> DeleteOutcome {
        <DeleteParts<'_> as Statement>::repeated(upserted)
    }

    /// After an error the client is told of the measurements that the earlier steps have deleted.
    fn run_in_steps(
        large: &ParsedFilter<'a>,
        context: &mut Context<'_>,
        collection: &Arc<Collection>,
        outcome: &mut DeleteOutcome,
    ) -> Result<(), CommandError> {
        let change = |context: &Context<'_>,
                      transaction: &mut WriteTransaction,
                      key: &[u8],
                      old: Bytes,
                      step: &mut DeleteOutcome| {
            let bucket = Bucket { context, collection, key, old: &old };
            let (removed, written) = large.delete_in(&bucket, transaction, Reach::Many)?;
            step.documents += removed.measurements;
            Ok(written)
        };
        // An insert between two steps may put the measurements of a bucket into another one.
        while in_steps(context, &large.buckets, collection, &change, |step: DeleteOutcome| {
            outcome.documents += step.documents;
        })? > 0
        {}
        Ok(())
    }
}
