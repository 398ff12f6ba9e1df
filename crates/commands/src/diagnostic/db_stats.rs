//! `dbStats`: how much a database holds and takes, as estimates.

use pando_document::{DocumentWriter, RawValue};

use super::coll_stats::scale_of;
use crate::arguments::Arguments;
use crate::context::Context;
use crate::{CommandError, Request};

/// Answers the sums over the collections.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_patience()?;
    let mut scale = 1;
    for argument in Arguments::new("dbStats", request.body) {
        let argument = argument?;
        match argument.name {
            "scale" => scale = scale_of(argument.integer()?)?,
            "freeStorage" => {}
            _ => return Err(argument.unknown()),
        }
    }
    let collections = context.catalog().collections(context.database);
    let (mut objects, mut data, mut storage, mut indexes, mut index_bytes) = (0, 0, 0, 0, 0);
    for collection in &collections {
        let size = collection.size()?;
        objects += size.documents;
        data += size.data_bytes;
        storage += size.storage_bytes;
        indexes += size.index_bytes.len() as u64;
        index_bytes += size.index_bytes.iter().map(|(_, bytes)| bytes).sum::<u64>();
    }
    let scaled = |bytes: u64| RawValue::Double(bytes as f64 / scale as f64);
    let count = |number: u64| RawValue::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    reply.append_str("db", context.database);
    reply.append("collections", count(collections.len() as u64));
    reply.append("views", count(0));
    reply.append("objects", count(objects));
    reply.append(
        "avgObjSize",
        RawValue::Double(if objects == 0 { 0.0 } else { data as f64 / objects as f64 }),
    );
    reply.append("dataSize", scaled(data));
    reply.append("storageSize", scaled(storage));
    reply.append("indexes", count(indexes));
    reply.append("indexSize", scaled(index_bytes));
    reply.append("totalSize", scaled(storage + index_bytes));
    reply.append("scaleFactor", RawValue::Double(scale as f64));
    Ok(())
}
