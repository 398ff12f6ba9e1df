//! `$regex` and `$options`, which stand side by side in either order.

use pando_document::{RawDocument, RawValue};

use super::fault::FilterFault;
use super::{Node, Test};
use crate::QueryError;
use crate::path::Path;
use crate::regular_expression::RegularExpression;

/// Parses `$regex` and `$options`, side by side.
pub(super) fn parse(path: &Path, operators: &RawDocument) -> Result<Node, QueryError> {
    let mut pattern = None;
    let mut options: Option<&str> = None;
    for field in operators {
        match field? {
            ("$regex", RawValue::String(text)) => pattern = Some(text),
            ("$regex", RawValue::Regex(regex)) => {
                pattern = Some(regex.pattern);
                if !regex.options.is_empty() {
                    if options.is_some() {
                        return Err(options_twice(FilterFault::RegexOptionsBeforeRegex));
                    }
                    options = Some(regex.options);
                }
            }
            ("$regex", _) => return Err(QueryError::bad_value("$regex has to be a string")),
            ("$options", RawValue::String(text)) => {
                if options.is_some() {
                    return Err(options_twice(FilterFault::RegexOptionsAfterRegex));
                }
                options = Some(text);
            }
            ("$options", _) => return Err(QueryError::bad_value("$options has to be a string")),
            _ => {}
        }
    }
    let Some(pattern) = pattern else { return Err(QueryError::bad_value("$options needs a $regex")) };
    Ok(Node::field(path, Test::Regex(RegularExpression::new(pattern, options.unwrap_or(""))?)))
}

fn options_twice(fault: FilterFault) -> QueryError {
    fault.error("options set in both $regex and $options")
}
