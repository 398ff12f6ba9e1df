//! `$meta`: a figure about a document that is none of its fields, such as the score of a search.
//!
//! | the documents | the value |
//! |---|---|
//! | come with the figure | that of its hidden field |
//! | do not, in a filter or update | missing |
//! | do not, in a projection or pipeline | an error for scores and distances, else missing |
//! | any, in the filter of `$match` | an error |
//! | none, in the `let` of a command | counts as a field, which is an error there |

use pando_document::RawValue;

use super::super::field_path::FieldPath;
use super::super::scope::AbsentMetadata;
use super::{Expression, ExpressionFault, Node, ParseScope, QueryError};
use crate::ErrorCode;
use crate::metadata::{Metadata, not_available_text};

pub(crate) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let RawValue::String(name) = argument else {
        return Err(ExpressionFault::MetaNotString.error("$meta only supports string arguments"));
    };
    let is_refused = scope.absent_metadata() == AbsentMetadata::Refused;
    let is_field = scope.absent_metadata() == AbsentMetadata::Field;
    let Some(kind) = Metadata::of_name(name) else {
        return match name {
            "timeseriesBucketMinTime" if is_refused => refused("timeseries bucket min time"),
            "timeseriesBucketMaxTime" if is_refused => refused("timeseries bucket max time"),
            "timeseriesBucketMinTime" | "timeseriesBucketMaxTime" if is_field => {
                Ok(Expression { node: Node::Root })
            }
            "searchScore"
            | "searchHighlights"
            | "searchScoreDetails"
            | "searchSequenceToken"
            | "vectorSearchScore"
            | "timeseriesBucketMinTime"
            | "timeseriesBucketMaxTime" => Ok(Expression { node: Node::Remove }),
            _ => Err(ExpressionFault::UnknownMeta.error(format!("Unsupported argument to $meta: {name}"))),
        };
    };
    if is_refused {
        return Err(kind.not_available());
    }
    if is_field || scope.metadata().has(kind) {
        return Ok(Expression::of_path(FieldPath::of_name(kind.field())));
    }
    match (scope.absent_metadata(), kind) {
        (AbsentMetadata::Checked, Metadata::TextScore | Metadata::GeoDistance | Metadata::GeoPoint) => {
            Err(kind.not_available())
        }
        (AbsentMetadata::Checked, Metadata::SortKey) if !scope.is_within_stage() => {
            Err(QueryError::new(ErrorCode::BadValue, "cannot use sortKey $meta projection without a sort"))
        }
        (AbsentMetadata::Checked, Metadata::SortKey | Metadata::IndexKey | Metadata::RecordId)
            if scope.is_within_stage() =>
        {
            Err(QueryError::not_implemented(&format!("$meta: \"{name}\" in a pipeline within a stage")))
        }
        _ => Ok(Expression { node: Node::Remove }),
    }
}

fn refused(title: &str) -> Result<Expression, QueryError> {
    Err(ExpressionFault::MetaNotAvailable.error(not_available_text(title)))
}
