//! `getPartitionInfo`: the partitions of a collection, in the order of their bounds, with the documents
//! of each and their bytes.

use std::sync::Arc;

use pando_catalog::{Begin, BlockingMode, CatalogError, Collection, Namespace};
use pando_document::{Document, DocumentWriter, RawValue, Value};

use crate::arguments::{collection_name, no_more};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Lists them.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name(request.command()?.1)?;
    no_more("getPartitionInfo", request.body)?;
    let namespace = context.namespace(name)?;
    let collection = partitioned(context, &namespace)?;
    let reader = context.catalog().begin(Begin::READ)?;
    let partitions = collection.partitions().unwrap_or_default();
    reply.append("numPartitions", RawValue::Int64(partitions.len() as i64));
    let mut list = reply.array("partitions");
    for partition in partitions {
        let mut shown = Document::new();
        shown.push("_id", Value::Int64(partition.id.into()));
        let bound = match &partition.bound {
            Some(bound) => RawValue::Document(&bound.values).to_owned(),
            None => Value::Document(collection.endless_bound()),
        };
        shown.push("max", bound);
        if let Some(created) = partition.created_ms {
            shown.push("createTime", Value::DateTime(created));
        }
        let (documents, bytes) =
            collection.partition_totals(partition.id, &*reader, BlockingMode::MayBlock)?;
        shown.push("count", Value::Int64(documents));
        shown.push("size", Value::Int64(bytes));
        list.push_document(&shown.to_raw());
    }
    list.finish();
    reader.rollback();
    Ok(())
}

/// The collection of this name, which has partitions.
pub(super) fn partitioned(
    context: &Context<'_>,
    namespace: &Namespace,
) -> Result<Arc<Collection>, CommandError> {
    let found = context.no_view(namespace)?.ok_or_else(|| {
        CommandError::failed(ErrorCode::NamespaceNotFound, format!("ns not found: {namespace}"))
    })?;
    match found.partitions() {
        Some(_) => Ok(found),
        None => Err(CatalogError::NotPartitioned { namespace: namespace.to_string() }.into()),
    }
}
