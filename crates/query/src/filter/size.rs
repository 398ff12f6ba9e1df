//! `$size`: an array with exactly so many elements.

use pando_document::RawValue;

use super::number_argument::{self, NumberFault};
use super::{Node, Test};
use crate::QueryError;
use crate::path::Path;

/// Parses `$size`.
pub(super) fn parse(path: &Path, argument: RawValue<'_>) -> Result<Node, QueryError> {
    let fault = |fault: NumberFault| {
        QueryError::bad_value(format!("Failed to parse $size. {}", fault.text("$size", argument)))
    };
    let number = number_argument::integer(argument).map_err(fault)?;
    if number < 0 {
        return Err(fault(NumberFault::Negative));
    }
    if number > i64::from(i32::MAX) {
        return Err(fault(NumberFault::NotInt));
    }
    Ok(Node::field(path, Test::Size(usize::try_from(number).ok())))
}

/// Whether a leaf is an array of this size.
pub(super) fn holds(size: Option<usize>, value: Option<RawValue<'_>>) -> Result<bool, QueryError> {
    let (Some(size), Some(RawValue::Array(array))) = (size, value) else { return Ok(false) };
    let mut elements = 0;
    for element in array {
        element?;
        elements += 1;
        if elements > size {
            return Ok(false);
        }
    }
    Ok(elements == size)
}
