//! `$multiply`: the product of numbers.

use pando_document::{Number, Overflow};

use super::{Arity, Call, Definition, Evaluated, Frame, QueryError};

pub(super) static MULTIPLY: Definition = Definition { name: "$multiply", arity: Arity::Any, run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let mut product = Number::Int32(1);
    for index in 0..call.len() {
        let value = call.argument(index, frame)?;
        if value.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let Some(number) = value.as_number() else {
            return Err(QueryError::type_mismatch(format!(
                "$multiply only supports numeric types, not {}",
                value.type_name()
            )));
        };
        product = product.multiply(number, Overflow::Double).expect("only refused overflow gives none");
    }
    Ok(Evaluated::number(product))
}
