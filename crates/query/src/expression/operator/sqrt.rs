//! `$sqrt`: the square root, a double or a decimal.

use pando_document::Number;

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, not_numeric};

pub(super) static SQRT: Definition = Definition { name: "$sqrt", arity: Arity::Exactly(1), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let number = value.as_number().ok_or_else(|| not_numeric(call, &value))?;
    if number.to_f64() < 0.0 {
        return Err(
            ExpressionFault::NegativeRoot.error("$sqrt's argument must be greater than or equal to 0")
        );
    }
    Ok(Evaluated::number(match number {
        Number::Decimal128(number) => Number::Decimal128(number.square_root()),
        other => Number::Double(other.to_f64().sqrt()),
    }))
}
