//! The query shape that a plan cache command names by a query with its sort, projection and collation.

use std::sync::Arc;

use pando_catalog::Collection;
use pando_document::{RawDocument, RawDocumentBuf, RawValue};
use pando_query::filter::Filter;
use pando_query::plan::{FindSpecification, ProjectionNeeds, query_shape};
use pando_query::projection::Projection;
use pando_query::sort::Sort;

use crate::arguments::collection_name_or;
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::views::{not_a_collection, not_a_plain_collection};
use crate::{CommandError, ErrorCode, Request};

/// A shape, and its query as it was written.
pub(super) struct NamedShape {
    pub shape: Vec<u8>,
    /// Query, sort, projection and collation, as MongoDB lists them.
    pub request: RawDocumentBuf,
}

/// The collection of a plan cache command, if it exists.
///
/// # Errors
/// The name is that of a view or a time series.
pub(super) fn collection_of(
    context: &Context<'_>,
    request: &Request<'_>,
) -> Result<Option<Arc<Collection>>, CommandError> {
    let name = collection_name_or(request.command()?.1, ErrorCode::InvalidNamespace)?;
    let namespace = context.namespace(name)?;
    if let Some(collection) = context.collection(name)? {
        return Ok(Some(collection));
    }
    if context.series(name)?.is_some() {
        return Err(not_a_plain_collection(&namespace));
    }
    match context.view(name)?.is_some() {
        true => Err(not_a_collection(&namespace)),
        false => Ok(None),
    }
}

impl NamedShape {
    /// The shape that a request names; `None` where it names none, and so means all.
    pub fn given(
        context: &Context<'_>,
        body: &RawDocument,
        collection: &Collection,
    ) -> Result<Option<NamedShape>, CommandError> {
        if body.get("query")?.is_some() {
            return NamedShape::required(context, body, collection).map(Some);
        }
        for name in ["sort", "projection", "collation"] {
            if body.get(name)?.is_some() {
                return Err(bad_value("sort, projection, or collation provided without query"));
            }
        }
        Ok(None)
    }

    /// The shape that a request has to name.
    pub fn required(
        context: &Context<'_>,
        body: &RawDocument,
        collection: &Collection,
    ) -> Result<NamedShape, CommandError> {
        let query = match body.get("query")? {
            None => return Err(bad_value("required field query missing")),
            Some(RawValue::Document(query)) => query,
            Some(_) => return Err(bad_value("required field query must be an object")),
        };
        let sort = optional(body, "sort")?.unwrap_or(RawDocument::empty());
        let projection = optional(body, "projection")?.unwrap_or(RawDocument::empty());
        let collation = optional(body, "collation")?;
        if collation.is_some_and(RawDocument::is_empty) {
            return Err(bad_value("optional field collation cannot be an empty object"));
        }
        let scope = context.parse_scope();
        let scope =
            CollationChoice::of(collation).scope_in(&scope, Some(collection)).map_err(in_collation)?;
        let filter = Filter::parse_for_plan(query, &scope)?;
        check_text_index(&filter, collection)?;
        let parsed_sort = Sort::parse(sort)?;
        let paths = match projection.is_empty() {
            true => None,
            false => Projection::parse(projection, &scope)?.needed_paths(),
        };
        let find = FindSpecification {
            sort: &parsed_sort,
            needs: paths.as_deref().map_or(ProjectionNeeds::Everything, ProjectionNeeds::Paths),
            ..FindSpecification::matching(&filter)
        };
        let shape = query_shape(&find, collection.text_order());
        let mut request = pando_document::Document::new();
        request.push("query", RawValue::Document(query).to_owned());
        request.push("sort", RawValue::Document(sort).to_owned());
        request.push("projection", RawValue::Document(projection).to_owned());
        if let Some(collation) = collation.and(scope.text_order().document()) {
            request.push("collation", RawValue::Document(collation).to_owned());
        }
        Ok(NamedShape { shape, request: request.to_raw() })
    }
}

fn optional<'b>(body: &'b RawDocument, name: &str) -> Result<Option<&'b RawDocument>, CommandError> {
    match body.get(name)? {
        None => Ok(None),
        Some(RawValue::Document(document)) => Ok(Some(document)),
        Some(_) => Err(bad_value(format!("optional field {name} must be an object"))),
    }
}

/// A search for words has no plan without its index.
fn check_text_index(filter: &Filter, collection: &Collection) -> Result<(), CommandError> {
    if filter.has_text() && !collection.describe_indexes().iter().any(|index| index.is_text()) {
        return Err(CommandError::failed(ErrorCode::IndexNotFound, "text index required for $text query"));
    }
    Ok(())
}

/// The fault of a collation in the words of these commands.
fn in_collation(error: CommandError) -> CommandError {
    match error {
        CommandError::Failed(failure) => CommandError::failed(
            failure.code,
            format!("unable to parse collation :: caused by :: {}", failure.message),
        ),
        other => other,
    }
}

pub(super) fn bad_value(message: impl Into<String>) -> CommandError {
    CommandError::failed(ErrorCode::BadValue, message)
}
