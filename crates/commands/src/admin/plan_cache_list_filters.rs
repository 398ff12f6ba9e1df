//! `planCacheListFilters`: the index filters of a collection, in the order in which they were set.

use pando_document::{DocumentWriter, RawDocument, RawValue};

use super::named_shape;
use crate::context::Context;
use crate::{CommandError, Request};

/// Lists them.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let collection = named_shape::collection_of(context, request)?;
    let filters = collection.map(|collection| collection.index_filters().all()).unwrap_or_default();
    let mut list = reply.array("filters");
    for filter in filters {
        let mut document = list.document();
        for field in &*filter.request {
            let (name, value) = field?;
            document.append(name, value);
        }
        let mut indexes = document.array("indexes");
        for pattern in &filter.patterns {
            let pattern: &RawDocument = pattern;
            indexes.push(RawValue::Document(pattern));
        }
        filter.names.iter().for_each(|name| indexes.push(RawValue::String(name)));
        indexes.finish();
        document.finish();
    }
    list.finish();
    Ok(())
}
