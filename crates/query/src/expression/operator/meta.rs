//! `$meta`: a figure about a document that is none of its fields. Pando's documents have none: no score of a
//! search, no distance of a geometry. MongoDB refuses those that a stage in front must make, and the others
//! are missing.

use pando_document::RawValue;

use super::{Expression, ExpressionFault, Node, ParseScope, QueryError};
use crate::shell_text;

pub(super) fn parse(argument: RawValue<'_>, _: &ParseScope) -> Result<Expression, QueryError> {
    let RawValue::String(name) = argument else {
        return Err(ExpressionFault::MetaNotString.error(format!(
            "$meta only supports string arguments, found {}",
            shell_text::value_text(argument)
        )));
    };
    let not_available = match name {
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
