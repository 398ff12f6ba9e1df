//! `collStats`: the size of a collection. Documents and their bytes come from the counters and are exact;
//! bytes on the device come from the engine's directories.

use pando_catalog::{Begin, BlockingMode, CappedLimits, Collection, CollectionCounts, StorageSize};
use pando_document::{DocumentWriter, RawValue};

use super::statistics_document::write_statistics;
use crate::arguments::{Arguments, collection_name_or};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Answers sizes.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name_or(request.command()?.1, ErrorCode::InvalidNamespace)?;
    let mut scale = 1;
    for argument in Arguments::of_command("collStats", request.body) {
        let argument = argument?;
        // Unknown fields are passed over here, as MongoDB does.
        if argument.name == "scale" {
            let most = i64::from(i32::MAX);
            scale = argument.at_least(1)?.map_or(1, |scale| scale.min(most).unsigned_abs());
        }
    }
    let namespace = context.namespace(name)?;
    if let Some((buckets, _)) = context.series(name)? {
        let size = CollectionSize::of(context, &buckets)?;
        reply.append_str("ns", &namespace.to_string());
        write_series(&buckets, &size, reply);
        write_size(&size, scale, reply);
        return write_trees(context, &buckets, reply);
    }
    let found = context.no_view(&namespace)?;
    reply.append_str("ns", &namespace.to_string());
    match found {
        Some(collection) => {
            write_size(&CollectionSize::of(context, &collection)?, scale, reply);
            if !collection.layout().is_by_id() && collection.capped_limits().is_none() {
                reply.append_str("layout", collection.layout().name());
            }
            write_trees(context, &collection, reply)?;
            write_partitions(context, &collection, scale, reply)?;
        }
        None => write_nothing(scale, reply),
    }
    Ok(())
}

/// How many buckets a time series has, and how large they are.
pub(crate) fn write_series(buckets: &Collection, size: &CollectionSize, reply: &mut DocumentWriter<'_>) {
    let mut series = reply.document("timeseries");
    series.append_str("bucketsNs", buckets.full_name());
    series.append("bucketCount", scaled(size.counts.documents, 1));
    let average = size.counts.data_bytes.checked_div(size.counts.documents).unwrap_or(0);
    series.append("avgBucketSize", scaled(average, 1));
    series.finish();
}

/// The engine's figures: of the documents under the engine's name, as MongoDB does, and of each index within
/// `indexDetails`.
pub(crate) fn write_trees(
    context: &Context<'_>,
    collection: &Collection,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let engine = context.catalog().engine();
    let figures = collection.tree_statistics()?;
    if let Some((_, documents)) = figures.first() {
        write_statistics(engine.name(), documents, reply);
    }
    let mut details = reply.document("indexDetails");
    // The documents lie in the order of this index, and their tree is its tree.
    let primary = collection.primary_index_name().filter(|_| collection.clustered_index_name().is_none());
    if let (Some(name), Some((_, documents))) = (primary, figures.first()) {
        write_statistics(name, documents, &mut details);
    }
    for (name, figures) in figures.iter().skip(1) {
        write_statistics(name, figures, &mut details);
    }
    details.finish();
    Ok(())
}

/// The documents of each partition and their bytes, of a collection that has partitions.
fn write_partitions(
    context: &Context<'_>,
    collection: &Collection,
    scale: u64,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let Some(partitions) = collection.partitions() else { return Ok(()) };
    reply.append("partitioned", RawValue::Boolean(true));
    let reader = context.catalog().begin(Begin::READ)?;
    let mut list = reply.array("partitions");
    for partition in partitions {
        let totals = collection.partition_totals(partition.id, &*reader, BlockingMode::MayBlock)?;
        let mut shown = list.document();
        shown.append("_id", RawValue::Int64(partition.id.into()));
        shown.append("count", scaled(totals.0.unsigned_abs(), 1));
        shown.append("size", scaled(totals.1.unsigned_abs(), scale));
        shown.finish();
    }
    list.finish();
    reader.rollback();
    Ok(())
}

/// The figures of a collection that does not exist.
fn write_nothing(scale: u64, reply: &mut DocumentWriter<'_>) {
    for name in ["size", "count", "numOrphanDocs", "storageSize", "totalSize", "nindexes", "totalIndexSize"] {
        reply.append(name, RawValue::Int32(0));
    }
    reply.document("indexDetails").finish();
    reply.document("indexSizes").finish();
    reply.append("scaleFactor", scaled(scale, 1));
}

/// The size of a collection.
pub(crate) struct CollectionSize {
    pub counts: CollectionCounts,
    pub storage: StorageSize,
    /// Of a capped collection.
    limits: Option<CappedLimits>,
}

impl CollectionSize {
    /// Blocks; the first time, a collection of an older program is counted.
    pub fn of(context: &Context<'_>, collection: &Collection) -> Result<CollectionSize, CommandError> {
        let counts = context.catalog().counts(collection, context.operation)?;
        let limits = collection.capped_limits();
        Ok(CollectionSize { counts, storage: collection.storage_size()?, limits })
    }
}

/// The fields that say how large a collection is, as `collStats` and the stage `$collStats` show them.
pub(crate) fn write_size(size: &CollectionSize, scale: u64, reply: &mut DocumentWriter<'_>) {
    let CollectionSize { counts, storage, limits } = size;
    let index_total = storage.all_index_bytes();
    reply.append("size", scaled(counts.data_bytes, scale));
    reply.append("count", scaled(counts.documents, 1));
    if let Some(average) = counts.data_bytes.checked_div(counts.documents) {
        reply.append("avgObjSize", scaled(average, 1));
    }
    reply.append("numOrphanDocs", RawValue::Int32(0));
    reply.append("storageSize", scaled(storage.document_bytes, scale));
    reply.append("freeStorageSize", RawValue::Int32(0));
    reply.append("capped", RawValue::Boolean(limits.is_some()));
    if let Some(limits) = limits {
        reply.append("max", scaled(limits.documents.unwrap_or(0), 1));
        reply.append("maxSize", scaled(limits.bytes, scale));
    }
    reply.append("nindexes", scaled(storage.index_bytes.len() as u64, 1));
    reply.array("indexBuilds").finish();
    reply.append("totalIndexSize", scaled(index_total, scale));
    reply.append("totalSize", scaled(index_total + storage.document_bytes, scale));
    let mut sizes = reply.document("indexSizes");
    for (name, bytes) in &storage.index_bytes {
        sizes.append(name, scaled(*bytes, scale));
    }
    sizes.finish();
    reply.append("scaleFactor", scaled(scale, 1));
}

/// A number of bytes in units of `scale`, as short as it fits.
pub(crate) fn scaled(bytes: u64, scale: u64) -> RawValue<'static> {
    let number = bytes / scale;
    match i32::try_from(number) {
        Ok(small) => RawValue::Int32(small),
        Err(_) => RawValue::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
    }
}
