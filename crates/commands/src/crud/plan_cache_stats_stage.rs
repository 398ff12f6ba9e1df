//! The stage `$planCacheStats`: the cached plans of a collection. There is no cache of plans, since each
//! query is planned by itself, so the stage gives no documents.

use pando_catalog::Bytes;
use pando_document::RawValue;
use pando_query::pipeline::PipelineFault;

use crate::context::Context;
use crate::error::Execution;
use crate::{CommandError, ErrorCode};

pub(super) const NAME: &str = "$planCacheStats";

/// No documents, of a collection that exists.
pub(super) fn documents(
    context: &Context<'_>,
    collection: &str,
    argument: RawValue<'_>,
) -> Result<Vec<Bytes>, CommandError> {
    let found = argument.element_type().alias();
    let message = match argument.as_document() {
        Some(options) if options.is_empty() => {
            if context.collection(collection)?.is_some() {
                return Ok(Vec::new());
            }
            let namespace = context.namespace(collection)?;
            let sentence = format!("collection '{namespace}' does not exist");
            return Err(Execution::Aggregate.fault(PipelineFault::PlanCacheOfNoCollection.error(sentence)));
        }
        Some(_) => format!("$planCacheStats parameters object must be empty. Found: {found}"),
        None => format!("$planCacheStats value must be an object. Found: {found}"),
    };
    Err(CommandError::failed(ErrorCode::FailedToParse, message))
}
