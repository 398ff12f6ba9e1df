//! `planCacheClear`: forgets cached plans, of one query shape or of a collection. Each query is planned by
//! itself, so that there is none to forget: the command checks its request.

use pando_document::DocumentWriter;

use super::named_shape::{self, NamedShape};
use crate::context::Context;
use crate::{CommandError, Request};

/// Checks the request.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    if let Some(collection) = named_shape::collection_of(context, request)? {
        NamedShape::given(context, request.body, &collection)?;
    }
    Ok(())
}
