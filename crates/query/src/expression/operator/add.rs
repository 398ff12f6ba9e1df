//! `$add`: the sum of numbers, and of at most one date.

use pando_document::{Number, Overflow, RawValue, Rounding};

use super::{Arity, Call, Definition, ErrorCode, Evaluated, ExpressionFault, Frame, QueryError, truncated};

pub(super) static ADD: Definition = Definition { name: "$add", arity: Arity::Any, run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let mut sum = Number::Int32(0);
    let mut date = None;
    for index in 0..call.len() {
        let value = call.argument(index, frame)?;
        if let Some(number) = value.as_number() {
            sum = sum.add(number, Overflow::Double).expect("only refused overflow gives none");
        } else if let Some(RawValue::DateTime(millis)) = value.raw() {
            if date.replace(millis).is_some() {
                return Err(
                    ExpressionFault::TwoDatesInAdd.error("only one date allowed in an $add expression")
                );
            }
        } else if value.is_nullish() {
            return Ok(Evaluated::NULL);
        } else {
            return Err(QueryError::type_mismatch(format!(
                "$add only supports numeric or date types, not {}",
                value.type_name()
            )));
        }
    }
    match date {
        None => Ok(Evaluated::number(sum)),
        Some(millis) => Ok(Evaluated::Raw(RawValue::DateTime(shift_date(millis, sum)?))),
    }
}

/// A date and a number of milliseconds, rounded to a whole one: half a one away from zero, of a decimal to an
/// even one.
pub(super) fn shift_date(millis: i64, amount: Number) -> Result<i64, QueryError> {
    let whole = match amount {
        Number::Double(amount) => RawValue::Double(amount.round()).as_i64_exact(),
        Number::Decimal128(amount) => amount.with_exponent(0, Rounding::HalfEven).to_i64_exact(),
        other => truncated(other),
    };
    whole
        .and_then(|whole| millis.checked_add(whole))
        .ok_or_else(|| QueryError::new(ErrorCode::Overflow, "date overflow"))
}
