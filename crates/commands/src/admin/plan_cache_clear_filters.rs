//! `planCacheClearFilters`: takes the index filter of a query shape away, or all of a collection.

use pando_document::DocumentWriter;

use super::named_shape::{self, NamedShape};
use crate::context::Context;
use crate::{CommandError, Request};

/// Clears.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let Some(collection) = named_shape::collection_of(context, request)? else { return Ok(()) };
    match NamedShape::given(context, request.body, &collection)? {
        Some(named) => collection.index_filters().clear(&named.shape),
        None => collection.index_filters().clear_all(),
    }
    Ok(())
}
