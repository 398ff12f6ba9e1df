//! `$subtract`: the difference of numbers, of a date and milliseconds, or the milliseconds between two dates.

use pando_document::{Number, Overflow, RawValue};

use super::{Arity, Call, Definition, ErrorCode, Evaluated, Frame, QueryError, add};

pub(super) static SUBTRACT: Definition = Definition { name: "$subtract", arity: Arity::Exactly(2), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (left, right) = (call.argument(0, frame)?, call.argument(1, frame)?);
    if left.is_nullish() || right.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    if let (Some(a), Some(b)) = (left.as_number(), right.as_number()) {
        let difference = a.subtract(b, Overflow::Double).expect("only refused overflow gives none");
        return Ok(Evaluated::number(difference));
    }
    match (left.raw(), right.raw(), right.as_number()) {
        (Some(RawValue::DateTime(a)), Some(RawValue::DateTime(b)), _) => match a.checked_sub(b) {
            Some(millis) => Ok(Evaluated::Raw(RawValue::Int64(millis))),
            None => Err(QueryError::new(ErrorCode::Overflow, "date overflow in $subtract")),
        },
        (Some(RawValue::DateTime(millis)), _, Some(Number::Int64(amount))) => millis
            .checked_sub(amount)
            .map(|earlier| Evaluated::Raw(RawValue::DateTime(earlier)))
            .ok_or_else(|| QueryError::new(ErrorCode::Overflow, "date overflow")),
        (Some(RawValue::DateTime(millis)), _, Some(amount)) => {
            let negated =
                Number::Int32(0).subtract(amount, Overflow::Double).expect("overflow gives a double");
            Ok(Evaluated::Raw(RawValue::DateTime(add::shift_date(millis, negated)?)))
        }
        _ => Err(QueryError::type_mismatch(format!(
            "can't $subtract {} from {}",
            right.type_name(),
            left.type_name()
        ))),
    }
}
