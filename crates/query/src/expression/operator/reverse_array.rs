//! `$reverseArray`: an array from its last element to its first.

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, array_of};

pub(super) static REVERSE_ARRAY: Definition =
    Definition { name: "$reverseArray", arity: Arity::Exactly(1), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(array) = value.as_array() else {
        return Err(ExpressionFault::ReverseNotArray.error(format!(
            "The argument to $reverseArray must be an array, but was of type: {}",
            value.type_name()
        )));
    };
    let elements = array.iter().collect::<Result<Vec<_>, _>>()?;
    array_of(|writer| {
        elements.iter().rev().for_each(|element| writer.push(*element));
        Ok(())
    })
}
