//! `$concatArrays`: arrays one after the other; null if one of them is null or missing.

use super::{
    Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, array_of, check_computed_bytes,
};

pub(super) static CONCAT_ARRAYS: Definition = Definition { name: "$concatArrays", arity: Arity::Any, run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let mut arrays = Vec::new();
    let mut bytes = 0;
    for index in 0..call.len() {
        let value = call.argument(index, frame)?;
        if value.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let Some(array) = value.as_array() else {
            return Err(ExpressionFault::ConcatArraysNotArray
                .error(format!("$concatArrays only supports arrays, not {}", value.type_name())));
        };
        bytes += array.as_bytes().len();
        check_computed_bytes(bytes)?;
        arrays.push(value);
    }
    array_of(|writer| {
        for array in arrays.iter().filter_map(Evaluated::as_array) {
            for element in array.iter() {
                writer.push(element?);
            }
        }
        Ok(())
    })
}
