//! `$all`: every value of a list is met, each by any element; or every `$elemMatch` of a list.

use pando_document::{RawDocument, RawValue};

use super::comparison::{self, is_operator_document};
use super::parse::Context;
use super::{Node, elem_match};
use crate::QueryError;
use crate::path::Path;
use crate::path::is_reference_name;

/// Parses `$all`. An empty list matches nothing.
pub(super) fn parse(path: &Path, argument: RawValue<'_>, context: Context<'_>) -> Result<Node, QueryError> {
    let RawValue::Array(array) = argument else { return Err(QueryError::bad_value("$all needs an array")) };
    let Some(first) = array.iter().next() else { return Ok(Node::Never) };
    let by_element = elem_match_of(first?)?.is_some();
    let mut nodes = Vec::new();
    for value in array {
        let value = value?;
        nodes.push(match (by_element, value) {
            (true, value) => match elem_match_of(value)? {
                Some(argument) => elem_match::parse(path, argument, context)?,
                None => return Err(QueryError::bad_value("$all/$elemMatch has to be consistent")),
            },
            (false, RawValue::Document(document))
                if is_operator_document(document)? && !is_reference(document)? =>
            {
                return Err(QueryError::bad_value("no $ expressions in $all"));
            }
            (false, value) => comparison::parse_equality(path, value, context.scope.text_order())?,
        });
    }
    Ok(Node::all_of(nodes))
}

/// Whether a document begins as a reference to another does; it is a value then, though it lacks a part.
fn is_reference(document: &RawDocument) -> Result<bool, QueryError> {
    Ok(document.iter().next().transpose()?.is_some_and(|(name, _)| is_reference_name(name)))
}

/// The argument of a `{ $elemMatch: … }`.
fn elem_match_of(value: RawValue<'_>) -> Result<Option<RawValue<'_>>, QueryError> {
    let RawValue::Document(document) = value else { return Ok(None) };
    match document.iter().next() {
        Some(field) => {
            let (name, argument) = field?;
            Ok((name == "$elemMatch").then_some(argument))
        }
        None => Ok(None),
    }
}
