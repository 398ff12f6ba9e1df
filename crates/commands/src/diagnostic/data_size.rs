//! `dataSize`: the bytes of the documents of a collection, which the request names with its database.

use pando_catalog::Namespace;
use pando_document::DocumentWriter;

use crate::arguments::{Arguments, collection_name};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Answers the size.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let full = collection_name(request.command()?.1)?;
    let mut estimate = false;
    for argument in Arguments::of_command("dataSize", request.body) {
        let argument = argument?;
        match argument.name {
            "estimate" => estimate = argument.value.to_bool(),
            "keyPattern" | "min" | "max" => {
                return Err(CommandError::failed(
                    ErrorCode::CommandNotSupported,
                    "the size of a part of a collection is not supported yet",
                ));
            }
            // Unknown fields are passed over here, as MongoDB does.
            _ => {}
        }
    }
    let Some((database, collection)) = full.split_once('.') else {
        return Err(CommandError::failed(
            ErrorCode::InvalidNamespace,
            format!("Invalid namespace specified '{full}'"),
        ));
    };
    let namespace = Namespace::new(database, collection)?;
    let began = context.shared.now_ms();
    let found = context.no_view(&namespace)?;
    let counts = found.as_ref().map(|collection| context.catalog().counts(collection, context.operation));
    let counts = counts.transpose()?.unwrap_or_default();
    if found.is_some() {
        reply.append_bool("estimate", estimate);
    }
    reply.append("size", super::coll_stats::scaled(counts.data_bytes, 1));
    reply.append("numObjects", super::coll_stats::scaled(counts.documents, 1));
    let millis = context.shared.now_ms().saturating_sub(began);
    reply.append_i32("millis", i32::try_from(millis).unwrap_or(i32::MAX));
    Ok(())
}
