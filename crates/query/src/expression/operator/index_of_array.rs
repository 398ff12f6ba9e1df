//! `$indexOfArray`: where an array has an element, from a start index to an end index; -1 if nowhere.
//! A missing value is one with undefined, as in every comparison.

use pando_document::RawValue;

use super::index_of_text::search_bounds;
use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError};

pub(super) static INDEX_OF_ARRAY: Definition =
    Definition { name: "$indexOfArray", arity: Arity::Between(2, 4), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let array = call.argument(0, frame)?;
    if array.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    if array.as_array().is_none() {
        return Err(ExpressionFault::IndexOfArrayNotArray.error(format!(
            "$indexOfArray requires an array as a first argument, found: {}",
            array.type_name()
        )));
    }
    let sought = call.argument(1, frame)?;
    let (start, end) = search_bounds(call, frame)?;
    let table = call.array_table(0, &array, frame)?;
    let Some(array) = array.as_array() else { unreachable!("checked above") };
    let sought = sought.raw().unwrap_or(RawValue::Undefined);
    if let (Some(table), 0) = (table, start) {
        let place = table.place_of(array, sought, call.text_order()).filter(|place| *place < end);
        return Ok(Evaluated::Raw(RawValue::Int32(
            place.and_then(|at| i32::try_from(at).ok()).unwrap_or(-1),
        )));
    }
    for (index, element) in array.iter().enumerate().take(end).skip(start) {
        if call.text_order().is_equal(sought, element?) {
            return Ok(Evaluated::Raw(RawValue::Int32(i32::try_from(index).unwrap_or(i32::MAX))));
        }
    }
    Ok(Evaluated::Raw(RawValue::Int32(-1)))
}
