//! `$in`: whether an array has an element. A missing value is one with undefined, as in every comparison.

use pando_document::RawValue;

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError};

pub(super) static IN: Definition = Definition { name: "$in", arity: Arity::Exactly(2), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (sought, array) = (call.argument(0, frame)?, call.argument(1, frame)?);
    let table = call.array_table(1, &array, frame)?;
    let Some(array) = array.as_array() else {
        return Err(ExpressionFault::InNotArray
            .error(format!("$in requires an array as a second argument, found: {}", array.type_name())));
    };
    let sought = sought.raw().unwrap_or(RawValue::Undefined);
    if let Some(table) = table {
        return Ok(Evaluated::boolean(table.place_of(array, sought, call.text_order()).is_some()));
    }
    for element in array.iter() {
        if call.text_order().is_equal(sought, element?) {
            return Ok(Evaluated::boolean(true));
        }
    }
    Ok(Evaluated::boolean(false))
}
