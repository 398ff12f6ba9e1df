//! `$and`, `$or`, `$nor` over whole filters, and `$not` over a field's operators.

use pando_document::RawValue;

use super::parse::{self, Context};
use super::{Node, Test};
use crate::QueryError;
use crate::path::Path;
use crate::regular_expression::RegularExpression;

/// Parses the array of filters behind `$and`, `$or` or `$nor`.
pub(super) fn parse_list(
    name: &str,
    argument: RawValue<'_>,
    context: Context<'_>,
) -> Result<Vec<Node>, QueryError> {
    let RawValue::Array(array) = argument else {
        return Err(QueryError::bad_value(format!("{name} must be an array")));
    };
    if array.is_empty() {
        return Err(QueryError::bad_value("$and/$or/$nor must be a nonempty array"));
    }
    array
        .iter()
        .map(|entry| match entry? {
            RawValue::Document(document) => parse::tree(document, context.deeper()?),
            _ => Err(QueryError::bad_value("$or/$and/$nor entries need to be full objects")),
        })
        .collect()
}

/// Parses `$not`: a regular expression, or a document of operators.
pub(super) fn parse_not(
    path: &Path,
    argument: RawValue<'_>,
    context: Context<'_>,
) -> Result<Node, QueryError> {
    match argument {
        RawValue::Regex(regex) => {
            let test = RegularExpression::new(regex.pattern, regex.options)?;
            Ok(Node::field(path, Test::Regex(test)).negated())
        }
        RawValue::Document(document) if document.is_empty() => {
            Err(QueryError::bad_value("$not cannot be empty"))
        }
        RawValue::Document(document) => {
            parse::operators(path, document, context.deeper()?).map(|nodes| Node::all_of(nodes).negated())
        }
        _ => Err(QueryError::bad_value("$not needs a regex or a document")),
    }
}
