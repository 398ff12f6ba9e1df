//! `dbStats`: the size of a database. Documents and their bytes are exact, as in `collStats`.

use pando_catalog::StorageSize;
use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Arguments, whole};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Answers the sums over the collections.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let mut scale = 1;
    let mut shows_free = false;
    for argument in Arguments::of_command("dbStats", request.body) {
        let argument = argument?;
        // Unknown fields are passed over here, as MongoDB does.
        match argument.name {
            "scale" => scale = scale_of(argument.value)?,
            "freeStorage" => shows_free = argument.value.to_bool(),
            _ => {}
        }
    }
    let collections = context.catalog().collections(context.database);
    let (mut objects, mut data, mut storage, mut indexes, mut index_bytes) = (0, 0, 0, 0, 0);
    for (collection, size) in collections.iter().zip(StorageSize::of_all(&collections)?) {
        context.check()?;
        let counts = context.catalog().counts(collection, context.operation)?;
        objects += counts.documents;
        data += counts.data_bytes;
        storage += size.document_bytes;
        indexes += size.index_bytes.len() as u64;
        index_bytes += size.all_index_bytes();
    }
    let scaled = |bytes: u64| RawValue::Double(bytes as f64 / scale as f64);
    let count = |number: u64| match i32::try_from(number) {
        Ok(small) => RawValue::Int32(small),
        Err(_) => RawValue::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
    };
    // Of a database that there is none of, MongoDB tells whole numbers.
    let scaled = |bytes: u64| if collections.is_empty() { RawValue::Int32(0) } else { scaled(bytes) };
    reply.append_str("db", context.database);
    reply.append("collections", count(collections.len() as u64));
    reply.append("views", count(context.views()?.len() as u64));
    reply.append("objects", count(objects));
    let average = data.checked_div(objects).map_or(0.0, |_| data as f64 / objects as f64);
    let average = if collections.is_empty() { RawValue::Int32(0) } else { RawValue::Double(average) };
    reply.append("avgObjSize", average);
    reply.append("dataSize", scaled(data));
    reply.append("storageSize", scaled(storage));
    reply.append("indexes", count(indexes));
    reply.append("indexSize", scaled(index_bytes));
    reply.append("totalSize", scaled(storage + index_bytes));
    if shows_free {
        for name in ["freeStorageSize", "indexFreeStorageSize", "totalFreeStorageSize"] {
            reply.append(name, scaled(0));
        }
    }
    let space = match &context.shared.options.folder {
        Some(folder) if !collections.is_empty() => {
            context.shared.environment.files().device_space(folder).ok()
        }
        _ => None,
    };
    let factor = if collections.is_empty() { count(scale) } else { RawValue::Double(scale as f64) };
    reply.append("scaleFactor", factor);
    reply.append("fsUsedSize", scaled(space.map_or(0, |space| space.used_bytes)));
    reply.append("fsTotalSize", scaled(space.map_or(0, |space| space.total_bytes)));
    Ok(())
}

/// The unit of the sizes, in bytes. A wrong one is refused without a code, as MongoDB does.
fn scale_of(value: RawValue<'_>) -> Result<u64, CommandError> {
    if !value.is_number() {
        if value.to_bool() {
            return Err(CommandError::failed(ErrorCode::Untold, "scale has to be a number > 0"));
        }
        return Ok(1);
    }
    match u32::try_from(whole(value)) {
        Ok(scale) if scale > 0 && i32::try_from(scale).is_ok() => Ok(u64::from(scale)),
        _ => Err(CommandError::failed(ErrorCode::Untold, "scale has to be > 0")),
    }
}
