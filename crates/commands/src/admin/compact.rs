//! `compact`: makes a collection and its indexes as small on the device as the engine can. Reads and writes
//! go on meanwhile, unless the engine has to do it alone, as `lmdb`.
//!
//! Every engine but `lmdb` gives space back without it. It is for data that will not be written to any more,
//! of which the engine still holds a part in buffers. An interruption ends it between two steps.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::collection_name_or;
use crate::context::Context;
use crate::error::write_failure;
use crate::{CommandError, ErrorCode, Request};

/// Compacts a collection.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    refuse_estimate(request)?;
    // Other fields are passed over, as MongoDB does.
    let name = collection_name_or(request.command()?.1, ErrorCode::InvalidNamespace)?;
    let namespace = context.namespace(name)?;
    let of_series = || Ok::<_, CommandError>(context.series(name)?.map(|(buckets, _)| buckets));
    let found = match context.catalog().collection(context.database, name) {
        None => of_series()?,
        found => found,
    };
    let Some(collection) = found else {
        if context.view(name)?.is_some() {
            return Err(CommandError::failed(ErrorCode::CommandNotSupportedOnView, "can't compact a view"));
        }
        return Err(CommandError::failed(ErrorCode::NamespaceNotFound, "collection does not exist"));
    };
    let freed = collection.compact(context.operation);
    let freed = freed.map_err(|error| write_failure(error.into(), &namespace.to_string()))?;
    reply.append("bytesFreed", RawValue::Int64(i64::try_from(freed).unwrap_or(i64::MAX)));
    Ok(())
}

/// Refuses `dryRun` of MongoDB 8, which asks for an estimate: to compact instead would be wrong.
fn refuse_estimate(request: &Request<'_>) -> Result<(), CommandError> {
    if matches!(request.body.get("dryRun")?, Some(value) if value.to_bool()) {
        return Err(CommandError::failed(
            ErrorCode::CommandNotSupported,
            "the option 'dryRun' of compact is not supported yet",
        ));
    }
    Ok(())
}
