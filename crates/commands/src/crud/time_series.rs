//! Inserts into a time series: measurements become buckets of the collection `system.buckets.NAME`.
//!
//! # Steps of a batch
//! 1. Measurements that have no time, or could not be stored as documents, are refused. The others are
//!    grouped by meta value and window.
//! 2. A group becomes buckets of at most [`ROWS_MAX`] measurements. Where seven buckets of its tier are
//!    remembered (a tier has eight times as many measurements as the one below), they are merged with it: an
//!    insert of one measurement a time writes each about four times, and not each time the whole bucket.
//!    When the next window of a meta value begins, the buckets that are left of the one before become one.
//!    Buckets whose sum would be too large to be one ([`fits`]) stay as they are.
//! 3. One commit writes the new buckets and removes the merged ones. So an acknowledged measurement is as
//!    durable as any document.
//!
//! # Not here
//! The form of a bucket (crate `query`, `time_series`), reads, which go through a view.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pando_catalog::{Collection, NameError, Namespace, WriteTransaction};
use pando_document::{DocumentWriter, ObjectId, RawDocument, RawDocumentBuf, RawValue};
use pando_query::time_series::{BUCKETS_PREFIX, FieldNames, ROWS_MAX, Series};

use super::stored_document;
use super::write_reply::{FailedWrite, Order, push_failed};
use crate::context::Context;
use crate::error::write_failure;
use crate::open_buckets::{BucketRun, BucketSize, RunKey};
use crate::{CommandError, ErrorCode, unit_of_work};

/// The most bytes of the measurements of a bucket, unless it is one or has been merged.
pub(super) const BYTES_MAX: usize = 125 * 1024;
/// The most bytes of the measurements of a merged bucket. Its document has the least and the greatest value
/// of each field besides, and has to stay within 16 MiB.
const MERGED_BYTES_MAX: usize = 3 << 20;
/// The most measurements times fields of a merged bucket: a field that some measurements lack costs a bit for
/// each of them.
const MERGED_CELLS_MAX: usize = 4_000_000;
/// Buckets of one tier that are merged with the next of it.
const RUNS_MERGED: usize = 7;
/// A bucket with so many measurements takes no more.
const ROWS_FULL: usize = 512;
/// A bucket with so many bytes takes no more.
const BYTES_FULL: usize = MERGED_BYTES_MAX / 2;

/// The measurements of a meta value and a window.
type Groups = BTreeMap<(i64, Vec<u8>), Vec<RawDocumentBuf>>;

/// The name of the buckets of a series.
pub(super) fn buckets_of(namespace: &Namespace) -> Result<Namespace, NameError> {
    Namespace::new(namespace.database(), &format!("{BUCKETS_PREFIX}{}", namespace.collection()))
}

/// Inserts measurements; gives the number of them, and those that failed.
pub(super) fn insert_batch(
    context: &mut Context<'_>,
    namespace: &Namespace,
    series: &Series,
    documents: &[&RawDocument],
    order: Order,
) -> Result<(u64, Vec<FailedWrite>), CommandError> {
    if context.open_transaction().is_some() {
        return Err(CommandError::failed(
            ErrorCode::OperationNotSupportedInTransaction,
            format!(
                "Cannot insert into a time-series collection in a multi-document transaction: {namespace}"
            ),
        ));
    }
    let buckets = buckets_of(namespace)?;
    let (inserted, failed, remembered) = unit_of_work::run(context, |context| {
        let lease = context.lease(&buckets)?.ok_or_else(|| {
            CommandError::failed(ErrorCode::NamespaceNotFound, format!("ns not found: {buckets}"))
        })?;
        let mut work = context.begin_work()?;
        let (inserted, failed, groups) = grouped(context, series, documents, order)?;
        let mut remembered = HashMap::<RunKey, Vec<BucketRun>>::new();
        for ((window, meta), rows) in groups {
            let key = RunKey { collection: lease.uuid(), window, meta };
            let mut runs = context.shared.open_buckets.runs(&key);
            let meta = key.meta.clone();
            let writer = GroupWriter { context, series, collection: &lease, window, meta: &meta };
            if runs.is_empty() {
                // The window before has ended, as a rule.
                let before = RunKey { window: window - series.span_seconds, ..key.clone() };
                // This batch may have added to it.
                let ended = match remembered.get_mut(&before) {
                    Some(runs) => std::mem::take(runs),
                    None => context.shared.open_buckets.runs(&before),
                };
                if !ended.is_empty() {
                    GroupWriter { window: before.window, ..writer }.end(work.writer(), ended)?;
                    remembered.insert(before, Vec::new());
                }
            }
            writer.write(work.writer(), rows, &mut runs)?;
            remembered.insert(key, runs);
        }
        context.commit_work(work)?;
        Ok((inserted, failed, remembered))
    })?;
    for (key, runs) in remembered {
        context.shared.open_buckets.remember(key, runs);
    }
    Ok((inserted, failed))
}

/// Checks the measurements, and groups those that are to be inserted.
fn grouped(
    context: &mut Context<'_>,
    series: &Series,
    documents: &[&RawDocument],
    order: Order,
) -> Result<(u64, Vec<FailedWrite>, Groups), CommandError> {
    let (mut inserted, mut failed, mut groups) = (0, Vec::new(), Groups::new());
    for (index, document) in documents.iter().enumerate() {
        context.check()?;
        if context.session_use.as_mut().is_some_and(|session| session.repeated(index).is_some()) {
            inserted += 1;
            continue;
        }
        let time = match checked_time(series, document) {
            Ok(time) => time,
            Err(CommandError::Failed(failure)) => {
                push_failed(&mut failed, FailedWrite { index, failure: *failure });
                if order == Order::Ordered {
                    break;
                }
                continue;
            }
            Err(error @ CommandError::WouldBlock(_)) => return Err(error),
        };
        let mut meta = Vec::new();
        if let Some(value) = series.meta_of(document)? {
            append_key(value, &mut meta)?;
        }
        groups.entry((series.window_of(time), meta)).or_default().push((*document).to_owned());
        inserted += 1;
        if let Some(session) = &mut context.session_use {
            session.executed(index, None);
        }
    }
    Ok((inserted, failed, groups))
}

/// The time of a measurement that can be stored.
pub(super) fn checked_time(series: &Series, document: &RawDocument) -> Result<i64, CommandError> {
    stored_document::check_measurement(document)?;
    let time = series.time_of(document)?;
    time.ok_or_else(|| {
        CommandError::failed(
            ErrorCode::BadValue,
            format!("'{}' must be present and contain a valid BSON UTC datetime value", series.time_field),
        )
    })
}

/// Appends the key of the runs of a meta value: a document of the value with an empty name.
pub(super) fn append_key(meta: RawValue<'_>, out: &mut Vec<u8>) -> Result<(), CommandError> {
    let normal = normalised(meta)?;
    let mut writer = DocumentWriter::begin(out);
    writer.append("", normal.as_ref().map_or(meta, |whole| RawValue::Document(whole)));
    writer.finish();
    Ok(())
}

/// A meta document with its fields in the order of their names, so that it is one source in whatever order
/// they come; `None` for a value that is no document.
fn normalised(meta: RawValue<'_>) -> Result<Option<RawDocumentBuf>, CommandError> {
    let RawValue::Document(meta) = meta else { return Ok(None) };
    let mut fields = meta.iter().collect::<Result<Vec<_>, _>>()?;
    fields.sort_by_key(|(name, _)| *name);
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    for (name, value) in fields {
        match normalised(value)? {
            Some(inner) => writer.append_raw_document(name, &inner),
            None => writer.append(name, value),
        }
    }
    writer.finish();
    Ok(Some(RawDocumentBuf::from_vec(bytes)?))
}

/// The writer of one group.
#[derive(Clone, Copy)]
struct GroupWriter<'w, 'c> {
    context: &'w Context<'c>,
    series: &'w Series,
    collection: &'w Arc<Collection>,
    window: i64,
    /// The key of the meta value, empty where there is none.
    meta: &'w [u8],
}

impl GroupWriter<'_, '_> {
    /// Merges the runs of a window that has ended into one bucket, where they fit.
    fn end(&self, transaction: &mut WriteTransaction, runs: Vec<BucketRun>) -> Result<(), CommandError> {
        let sum = runs.iter().fold(BucketSize::default(), |sum, run| sum.with(run.size));
        if runs.len() < 2 || !fits(sum) {
            return Ok(());
        }
        let mut rows = Vec::new();
        for run in runs {
            self.take_bucket(transaction, run, &mut rows)?;
        }
        match rows.is_empty() {
            true => Ok(()),
            false => self.put_bucket(transaction, &rows).map(|_| ()),
        }
    }

    /// Writes the buckets of a group, and merges runs.
    fn write(
        &self,
        transaction: &mut WriteTransaction,
        rows: Vec<RawDocumentBuf>,
        runs: &mut Vec<BucketRun>,
    ) -> Result<(), CommandError> {
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            self.context.check()?;
            let (mut chunk, mut bytes) = (Vec::new(), 0);
            while let Some(row) = rows.next_if(|row| {
                chunk.is_empty() || (chunk.len() < ROWS_MAX && bytes + row.as_bytes().len() <= BYTES_MAX)
            }) {
                bytes += row.as_bytes().len();
                chunk.push(row);
            }
            self.write_bucket(transaction, chunk, runs)?;
        }
        Ok(())
    }

    fn write_bucket(
        &self,
        transaction: &mut WriteTransaction,
        mut rows: Vec<RawDocumentBuf>,
        runs: &mut Vec<BucketRun>,
    ) -> Result<(), CommandError> {
        let mut size = size_of_rows(&rows)?;
        while let Some(merged) = taken_for_merge(runs, size) {
            let mut older = Vec::new();
            for run in merged {
                self.take_bucket(transaction, run, &mut older)?;
            }
            older.append(&mut rows);
            rows = older;
            size = size_of_rows(&rows)?;
        }
        let id = self.put_bucket(transaction, &rows)?;
        if !is_full(size) {
            runs.push(BucketRun { id, size });
        }
        Ok(())
    }

    /// Writes a bucket; gives its id.
    fn put_bucket(
        &self,
        transaction: &mut WriteTransaction,
        rows: &[RawDocumentBuf],
    ) -> Result<ObjectId, CommandError> {
        let id = self.series.bucket_id(self.window, self.context.shared.new_object_id());
        let meta = match self.meta {
            [] => None,
            meta => RawDocument::from_bytes(meta)?.get("")?,
        };
        let bucket = self.series.pack(id, meta, rows)?;
        let namespace = self.collection.namespace();
        self.collection
            .insert(transaction, &bucket, self.context.blocking)
            .map_err(|error| write_failure(error, &namespace.to_string()))?;
        Ok(id)
    }

    /// Removes a bucket, and takes its measurements. One that is gone has none, and one whose meta value was
    /// updated stays as it is.
    fn take_bucket(
        &self,
        transaction: &mut WriteTransaction,
        run: BucketRun,
        rows: &mut Vec<RawDocumentBuf>,
    ) -> Result<(), CommandError> {
        let (collection, blocking) = (self.collection, self.context.blocking);
        let id = collection.id_key(RawValue::ObjectId(run.id));
        let Some(key) = collection.locate(&**transaction, &id, blocking)? else { return Ok(()) };
        let Some(bytes) = collection.fetch(&**transaction, &key, blocking)? else { return Ok(()) };
        let bucket = RawDocument::from_bytes(&bytes)?;
        let mut meta = Vec::new();
        if let Some(value) = bucket.get("meta")? {
            append_key(value, &mut meta)?;
        }
        if meta != self.meta {
            return Ok(());
        }
        let unpacked = self.series.unpack(bucket, None)?;
        for at in 0..unpacked.len() {
            let mut row = Vec::new();
            unpacked.write(at, &mut row);
            rows.push(RawDocumentBuf::from_vec(row)?);
        }
        let namespace = collection.namespace();
        collection
            .remove(transaction, &key, bucket, blocking)
            .map_err(|error| write_failure(error, &namespace.to_string()))
    }
}

/// The size of measurements.
fn size_of_rows(rows: &[RawDocumentBuf]) -> Result<BucketSize, CommandError> {
    let (mut names, mut bytes) = (FieldNames::default(), 0);
    for row in rows {
        bytes += row.as_bytes().len();
        names.begin_measurement();
        for field in row.iter() {
            names.place_of(field?.0);
        }
    }
    Ok(BucketSize { rows: rows.len(), bytes, fields: names.count() })
}

/// Whether measurements may become one bucket by a merge.
fn fits(sum: BucketSize) -> bool {
    sum.rows <= ROWS_MAX && sum.bytes <= MERGED_BYTES_MAX && sum.rows * sum.fields <= MERGED_CELLS_MAX
}

/// Whether a bucket takes no more measurements.
fn is_full(size: BucketSize) -> bool {
    size.rows >= ROWS_FULL || size.bytes >= BYTES_FULL
}

/// Takes the runs that are merged with a bucket of some size; `None` where it stays alone. Where they would
/// not fit into one bucket with it, they are forgotten.
fn taken_for_merge(runs: &mut Vec<BucketRun>, size: BucketSize) -> Option<Vec<BucketRun>> {
    let tier = |size: BucketSize| size.rows.max(1).ilog(RUNS_MERGED + 1);
    let same = runs.iter().rev().take_while(|run| tier(run.size) == tier(size)).take(RUNS_MERGED);
    let (count, sum) = same.fold((0, size), |(count, sum), run| (count + 1, sum.with(run.size)));
    let taken = (count == RUNS_MERGED).then(|| runs.split_off(runs.len() - RUNS_MERGED))?;
    fits(sum).then_some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inserts of one measurement each, of so many bytes.
    struct Inserts {
        runs: Vec<BucketRun>,
        /// Each bucket that was written.
        written: Vec<BucketSize>,
    }

    fn single_inserts(measurements: usize, bytes: usize) -> Inserts {
        let (mut runs, mut written) = (Vec::<BucketRun>::new(), Vec::new());
        for _ in 0..measurements {
            let mut size = BucketSize { rows: 1, bytes, fields: 50 };
            while let Some(merged) = taken_for_merge(&mut runs, size) {
                let fields = size.fields;
                size = merged.iter().fold(size, |size, run| size.with(run.size));
                size.fields = fields;
            }
            written.push(size);
            if !is_full(size) {
                runs.push(BucketRun { id: ObjectId::from_bytes([0; 12]), size });
            }
            assert!(runs.len() <= 4 * RUNS_MERGED, "{} runs of {bytes} bytes", runs.len());
        }
        Inserts { runs, written }
    }

    #[test]
    fn single_measurements_end_in_full_buckets_and_are_written_few_times() {
        let Inserts { runs, written } = single_inserts(4096, 100);
        let full = written.iter().filter(|size| is_full(**size)).count();
        let rows: usize = written.iter().map(|size| size.rows).sum();
        assert!(full == 8 && rows <= 4 * 4096, "{full} full ones, {rows} rows written");
        assert!(runs.is_empty());
    }

    #[test]
    fn large_measurements_are_merged_as_far_as_a_document_holds_them() {
        for bytes in [40_000, 300_000, 500_000, 2_000_000, 15_000_000] {
            let written = single_inserts(2_000, bytes).written;
            assert!(written.iter().all(|size| size.rows == 1 || size.bytes <= MERGED_BYTES_MAX), "{bytes}");
            let merged = written.iter().filter(|size| size.rows > 1).count();
            assert_eq!(merged > 0, bytes * (RUNS_MERGED + 1) <= MERGED_BYTES_MAX, "{bytes}");
        }
    }

    #[test]
    fn measurements_of_ever_new_fields_are_merged_as_far_as_their_gaps_are_few() {
        let row = |at: usize| {
            let mut bytes = Vec::new();
            let mut writer = DocumentWriter::begin(&mut bytes);
            (0..1_000).for_each(|field| writer.append(&format!("{at} {field}"), RawValue::Null));
            writer.finish();
            RawDocumentBuf::from_vec(bytes).expect("a document")
        };
        let rows: Vec<RawDocumentBuf> = (0..64).map(row).collect();
        let size = size_of_rows(&rows).expect("the size of documents");
        assert_eq!((size.rows, size.fields), (64, 64_000));
        assert!(!fits(size) && fits(size_of_rows(&rows[..32]).expect("the size of documents")));
    }
}
