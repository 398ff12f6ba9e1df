//! `$concatArrays`: arrays one after the other; null if one of them is null or missing.

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, array_of};

pub(super) static CONCAT_ARRAYS: Definition = Definition { name: "$concatArrays", arity: Arity::Any, run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let mut arrays = Vec::with_capacity(call.len());
    for index in 0..call.len() {
        let value = call.argument(index, frame)?;
        if value.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        if value.as_array().is_none() {
            return Err(ExpressionFault::ConcatArraysNotArray
                .error(format!("$concatArrays only supports arrays, not {}", value.type_name())));
        }
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
