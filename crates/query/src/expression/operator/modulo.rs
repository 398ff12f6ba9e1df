//! `$mod`: the remainder of a division toward zero.

use pando_document::Number;

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError};

pub(super) static MOD: Definition = Definition { name: "$mod", arity: Arity::Exactly(2), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (left, right) = (call.argument(0, frame)?, call.argument(1, frame)?);
    match (left.as_number(), right.as_number()) {
        (Some(a), Some(b)) => match a.modulo(b) {
            Some(rest) => Ok(Evaluated::number(rest)),
            None if matches!((a, b), (Number::Decimal128(_), _) | (_, Number::Decimal128(_))) => {
                Err(ExpressionFault::DecimalModByZero.error("can't $mod by zero"))
            }
            None => Err(ExpressionFault::ModByZero.error("can't $mod by zero")),
        },
        _ if left.is_nullish() || right.is_nullish() => Ok(Evaluated::NULL),
        _ => Err(ExpressionFault::ModNotNumeric.error(format!(
            "$mod only supports numeric types, not {} and {}",
            left.type_name(),
            right.type_name()
        ))),
    }
}
