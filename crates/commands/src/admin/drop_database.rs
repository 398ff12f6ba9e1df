//! `dropDatabase`: every collection of a database.

use pando_catalog::CatalogError;
use pando_document::{DocumentWriter, RawValue};

use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, Request};

/// Drops one collection after the other; one that somebody else drops meanwhile is gone as wanted.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_patience()?;
    no_more("dropDatabase", request.body)?;
    let collections = context.catalog().collections(context.database);
    for collection in &collections {
        match context.catalog().drop_collection(collection.namespace()) {
            Ok(_) | Err(CatalogError::CollectionNotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if !collections.is_empty() {
        reply.append("dropped", RawValue::String(context.database));
    }
    Ok(())
}
