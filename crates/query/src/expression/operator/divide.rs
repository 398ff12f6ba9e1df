//! `$divide`: the quotient of two numbers, always a double or a decimal.

use super::{Arity, Call, Definition, Evaluated, Frame, QueryError};

pub(super) static DIVIDE: Definition = Definition { name: "$divide", arity: Arity::Exactly(2), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (left, right) = (call.argument(0, frame)?, call.argument(1, frame)?);
    match (left.as_number(), right.as_number()) {
        (Some(a), Some(b)) => match a.divide(b) {
            Some(quotient) => Ok(Evaluated::number(quotient)),
            None => Err(QueryError::bad_value("can't $divide by zero")),
        },
        _ if left.is_nullish() || right.is_nullish() => Ok(Evaluated::NULL),
        _ => Err(QueryError::type_mismatch(format!(
            "$divide only supports numeric types, not {} and {}",
            left.type_name(),
            right.type_name()
        ))),
    }
}
