//! `planCacheSetFilter`: restricts the indexes that queries of a shape may use, until the store is closed.

use std::collections::BTreeSet;

use pando_catalog::IndexFilter;
use pando_document::{DocumentWriter, RawDocument, RawValue};

use super::named_shape::{self, NamedShape, bad_value};
use crate::context::Context;
use crate::{CommandError, Request};

/// Sets the filter in the place of the one before.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let collection = named_shape::collection_of(context, request)?;
    let Some(collection) = collection else { return Err(bad_value("no such collection")) };
    let mut filter = allowed_indexes(request.body)?;
    let named = NamedShape::required(context, request.body, &collection)?;
    filter.shape = named.shape;
    filter.request = named.request;
    collection.index_filters().set(filter);
    Ok(())
}

/// A filter of the indexes that a request names, without its shape.
fn allowed_indexes(body: &RawDocument) -> Result<IndexFilter, CommandError> {
    let list = match body.get("indexes")? {
        None => return Err(bad_value("required field indexes missing")),
        Some(RawValue::Array(list)) => list,
        Some(_) => return Err(bad_value("required field indexes must be an array")),
    };
    let mut filter = IndexFilter {
        shape: Vec::new(),
        request: RawDocument::empty().to_owned(),
        names: BTreeSet::new(),
        patterns: Vec::new(),
    };
    for index in list.iter() {
        match index? {
            RawValue::String(name) => {
                filter.names.insert(name.to_owned());
            }
            RawValue::Document(pattern) if pattern.is_empty() => {
                return Err(bad_value("index specification cannot be empty"));
            }
            RawValue::Document(pattern) => filter.add_pattern(pattern),
            _ => return Err(bad_value("each item in indexes must be an object or string")),
        }
    }
    match filter.names.is_empty() && filter.patterns.is_empty() {
        true => Err(bad_value("required field indexes must contain at least one index")),
        false => Ok(filter),
    }
}
