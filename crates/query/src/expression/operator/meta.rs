//! `$meta`: a figure about a document that is none of its fields, such as the score of a search. MongoDB
//! refuses those that a stage in front must make, and the others are missing.

use pando_document::RawValue;

use super::super::field_path::FieldPath;
use super::{Expression, ExpressionFault, Node, ParseScope, QueryError};
use crate::shell_text;
use crate::text_index::SCORE_FIELD;

pub(crate) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let RawValue::String(name) = argument else {
        return Err(ExpressionFault::MetaNotString.error(format!(
            "$meta only supports string arguments, found {}",
            shell_text::value_text(argument)
        )));
    };
    let not_available = match name {
        "textScore" if scope.has_scores() => {
            return Ok(Expression::of_path(FieldPath::of_name(SCORE_FIELD)));
        }
        "textScore" => "text score",
        "geoNearDistance" => "$geoNear distance",
        "geoNearPoint" => "$geoNear point",
        "indexKey"
        | "searchScore"
        | "searchHighlights"
        | "searchSequenceToken"
        | "vectorSearchScore"
        | "timeseriesBucketMinTime"
        | "timeseriesBucketMaxTime" => {
            return Ok(Expression { node: Node::Remove });
        }
        "recordId" | "sortKey" | "randVal" => {
            return Err(QueryError::not_implemented(&format!("$meta: \"{name}\"")));
        }
        _ => {
            return Err(ExpressionFault::UnknownMeta.error(format!("Unsupported argument to $meta: {name}")));
        }
    };
    Err(ExpressionFault::MetaNotAvailable
        .error(format!("query requires {not_available} metadata, but it is not available")))
}
