//! The first stages that make their documents themselves, from figures of the server instead of the
//! collection.

use pando_catalog::Bytes;
use pando_document::RawDocumentBuf;

use super::aggregate::AggregateRequest;
use super::coll_stats_stage::{first_stage, stages_behind_first};
use super::{
    coll_stats_stage, current_op_stage, index_stats_stage, list_sessions_stage, plan_cache_stats_stage,
};
use crate::CommandError;
use crate::context::Context;

/// Whether a pipeline asks for the figures of a time series' indexes, and so not for its documents.
pub(super) fn are_of_series(
    context: &Context<'_>,
    request: &AggregateRequest<'_>,
) -> Result<bool, CommandError> {
    Ok(first_stage(request.pipeline, index_stats_stage::NAME)?.is_some()
        && context.series(request.collection)?.is_some())
}

/// The documents of a first stage that does not read its collection, and the stages behind it.
pub(super) fn documents(
    context: &Context<'_>,
    request: &AggregateRequest<'_>,
) -> Result<Option<(Vec<Bytes>, RawDocumentBuf)>, CommandError> {
    let AggregateRequest { collection, pipeline, .. } = *request;
    if let Some((argument, rest)) = coll_stats_stage::split(pipeline)? {
        return Ok(Some((vec![coll_stats_stage::document(context, collection, argument)?], rest)));
    }
    if let Some((argument, rest)) = current_op_stage::split(pipeline)? {
        return Ok(Some((current_op_stage::documents(context, collection, argument)?, rest)));
    }
    match others(context, request)? {
        Some(documents) => Ok(Some((documents, stages_behind_first(pipeline)?))),
        None => Ok(None),
    }
}

/// The documents of the stages that are told by the name of the first field alone.
fn others(context: &Context<'_>, request: &AggregateRequest<'_>) -> Result<Option<Vec<Bytes>>, CommandError> {
    let AggregateRequest { collection, pipeline, .. } = *request;
    if let Some(argument) = first_stage(pipeline, index_stats_stage::NAME)? {
        return index_stats_stage::documents(context, collection, argument).map(Some);
    }
    if let Some(argument) = first_stage(pipeline, plan_cache_stats_stage::NAME)? {
        return plan_cache_stats_stage::documents(context, collection, argument).map(Some);
    }
    for name in [list_sessions_stage::LOCAL, list_sessions_stage::STORED] {
        if let Some(argument) = first_stage(pipeline, name)? {
            return list_sessions_stage::documents(context, collection, name, argument).map(Some);
        }
    }
    Ok(None)
}
