//! `$multiply`: the product of numbers. One that is a double, or beyond an Int64, is that of the numbers as
//! doubles: MongoDB multiplies them beside the integers.

use pando_document::{Number, Overflow};

use super::{Arity, Call, Definition, Evaluated, Frame, QueryError};

pub(super) static MULTIPLY: Definition = Definition { name: "$multiply", arity: Arity::Any, run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let mut product = Number::Int32(1);
    let mut doubles = 1.0;
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
        doubles *= number.to_f64();
        product = match product.multiply(number, Overflow::Double).expect("only refused overflow gives none")
        {
            Number::Double(_) => Number::Double(doubles),
            exact => exact,
        };
    }
    Ok(Evaluated::number(product))
}
