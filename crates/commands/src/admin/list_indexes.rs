//! `listIndexes`: the specifications of a collection's indexes, `_id_` first.

use pando_catalog::Namespace;
use pando_document::DocumentWriter;

use super::series_indexes::SeriesIndexes;
use crate::arguments::{Arguments, collection_name};
use crate::context::Context;
use crate::cursor_reply::{self, ListSource, NewCursor, cursor_batch_size};
use crate::{CommandError, ErrorCode, Request};

/// Answers a cursor over the specifications.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let name = collection_name(request.command()?.1)?;
    let mut batch_size = None;
    for argument in Arguments::of_command("listIndexes", request.body) {
        let argument = argument?;
        match argument.name {
            "cursor" => {
                if let Some(cursor) = argument.document()? {
                    batch_size = cursor_batch_size("listIndexes.cursor", cursor)?;
                }
            }
            "includeBuildUUIDs" | "includeIndexBuildInfo" => {}
            _ => argument.refuse_unless_generic()?,
        }
    }
    let namespace = context.namespace(name)?;
    let specifications = match SeriesIndexes::of(context, &namespace)? {
        Some(series) => series.specifications()?,
        None => specifications_of(context, &namespace)?,
    };
    let source = Box::new(ListSource::new(specifications));
    let first_batch = batch_size.or(Some(u64::MAX));
    let cursor = NewCursor {
        first_batch,
        ..NewCursor::new(request.body, namespace.to_string(), source, context.query_account())
    };
    cursor_reply::open(context, cursor, reply)
}

fn specifications_of(context: &Context<'_>, namespace: &Namespace) -> Result<Vec<Vec<u8>>, CommandError> {
    let Some(collection) = context.no_view(namespace)? else {
        return Err(CommandError::failed(
            ErrorCode::NamespaceNotFound,
            format!("ns does not exist: {namespace}"),
        ));
    };
    Ok(collection.describe_indexes().into_iter().map(|index| index.specification.into_vec()).collect())
}
