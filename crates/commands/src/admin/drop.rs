//! `drop`: a collection with its indexes.

use pando_catalog::VIEWS_COLLECTION;
use pando_document::{DocumentWriter, RawValue};

use super::view_definition;
use crate::arguments::{collection_name, no_more};
use crate::context::Context;
use crate::system_profile::PROFILE_COLLECTION;
use crate::{CommandError, ErrorCode, Request};

/// Drops the collection.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name(request.command()?.1)?;
    no_more("drop", request.body)?;
    let namespace = context.namespace(name)?;
    let is_profile = name == PROFILE_COLLECTION;
    if is_profile && context.shared.profiler.settings.of(context.database).level > 0 {
        return Err(CommandError::failed(
            ErrorCode::IllegalOperation,
            "turn off profiling before dropping system.profile collection",
        ));
    }
    let found = context.catalog().collection(context.database, name).is_some();
    let is_own = is_profile || name == VIEWS_COLLECTION;
    if found && namespace.is_system() && !is_own && !namespace.collection().starts_with("system.buckets.") {
        return Err(CommandError::failed(
            ErrorCode::IllegalOperation,
            format!("can't drop system collection {namespace}"),
        ));
    }
    if !found && context.view(name)?.is_some() && view_definition::remove(context, &namespace)? {
        reply.append("ns", RawValue::String(&namespace.to_string()));
        return Ok(());
    }
    let dropped = context.drop_collection(&namespace)?;
    let indexes = i32::try_from(dropped.indexes().len() + 1).unwrap_or(i32::MAX);
    reply.append("nIndexesWas", RawValue::Int32(indexes));
    reply.append("ns", RawValue::String(&namespace.to_string()));
    Ok(())
}
