//! `drop`: a collection with its indexes.

use pando_catalog::VIEWS_COLLECTION;
use pando_document::{DocumentWriter, RawValue};
use pando_query::time_series::BUCKETS_PREFIX;

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
    let view = if found { None } else { context.view(name)? };
    if view.is_some() && view_definition::remove(context, &namespace)? {
        if let Some((buckets, _)) = context.series(name)?
            && view.is_some_and(|view| view.on == buckets.namespace().collection())
        {
            let dropped = context.drop_collection(buckets.namespace())?;
            reply.append(
                "nIndexesWas",
                RawValue::Int32(i32::try_from(dropped.indexes().len()).unwrap_or(i32::MAX)),
            );
        }
        reply.append("ns", RawValue::String(&namespace.to_string()));
        return Ok(());
    }
    let series = name.strip_prefix(BUCKETS_PREFIX);
    if let Some(series) = series
        && context.view(series)?.is_some_and(|view| view.on == name)
    {
        // A series goes with its buckets.
        let series = context.namespace(series)?;
        view_definition::remove(context, &series)?;
    }
    let dropped = context.drop_collection(&namespace)?;
    let indexes = i32::try_from(dropped.indexes().len() + 1).unwrap_or(i32::MAX);
    reply.append("nIndexesWas", RawValue::Int32(indexes));
    reply.append("ns", RawValue::String(&namespace.to_string()));
    Ok(())
}
