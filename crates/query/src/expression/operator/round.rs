//! `$round` and `$trunc`: a number to a given place, half to even or toward zero.
//!
//! The place counts digits behind the point; negative, before it. A double is rounded by its exact value, so
//! 2.675 to two places is 2.67.

use pando_document::{Decimal128, DoubleDigits, Number, RawValue, Rounding};

use super::text::refuse_beyond_long;
use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, narrowed};
use crate::shell_text;

pub(super) static ROUND: Definition =
    Definition { name: "$round", arity: Arity::Between(1, 2), run: run_round };
pub(super) static TRUNC: Definition =
    Definition { name: "$trunc", arity: Arity::Between(1, 2), run: run_trunc };

fn run_round<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, Rounding::HalfEven)
}

fn run_trunc<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, Rounding::TowardZero)
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>, rounding: Rounding) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    let place = call.argument(1, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(number) = value.as_number() else {
        return Err(ExpressionFault::RoundNotNumeric.error(format!(
            "{} only supports numeric types, not {}",
            call.name(),
            value.type_name()
        )));
    };
    let place = match call.has(1) {
        true if place.is_nullish() => return Ok(Evaluated::NULL),
        true => parse_place(call, &place)?,
        false => 0,
    };
    let rounded = match number {
        Number::Double(number) => Number::Double(double_to_place(number, place, rounding)),
        Number::Decimal128(number) => Number::Decimal128(to_place(number, place, rounding)),
        integer if place >= 0 => integer,
        integer => integer_to_place(call, integer, place, rounding)?,
    };
    Ok(Evaluated::number(rounded))
}

fn parse_place(call: &Call, place: &Evaluated<'_>) -> Result<i32, QueryError> {
    let Some(number) = place.as_number() else {
        return Err(ExpressionFault::NotConvertibleToLong
            .error(format!("can't convert from BSON type {} to long", place.type_name())));
    };
    refuse_beyond_long(number)?;
    let whole = number.to_i64_exact().and_then(|whole| i32::try_from(whole).ok());
    let Some(whole) = whole else {
        return Err(ExpressionFault::PrecisionNotInteger
            .error(format!("precision argument to  {} must be a integral value", call.name())));
    };
    match whole {
        -20..=100 => Ok(whole),
        _ => Err(ExpressionFault::PrecisionOutOfRange.error(format!(
            "cannot apply {} with precision value {whole} value must be in [-20, 100]",
            call.name()
        ))),
    }
}

/// A decimal that ends at the place: digits behind it are rounded, zeros are added up to it as far as 34
/// digits reach.
pub(super) fn to_place(number: Decimal128, place: i32, rounding: Rounding) -> Decimal128 {
    number.with_exponent(-place, rounding)
}

fn double_to_place(number: f64, place: i32, rounding: Rounding) -> f64 {
    match (place, rounding) {
        _ if !number.is_finite() => number,
        (0, Rounding::HalfEven) => number.round_ties_even(),
        (0, _) => number.trunc(),
        (place, rounding) => {
            let decimal = Decimal128::from_f64(number, DoubleDigits::ThirtyFour);
            Number::Decimal128(to_place(decimal, place, rounding)).to_f64()
        }
    }
}

fn integer_to_place(
    call: &Call,
    number: Number,
    place: i32,
    rounding: Rounding,
) -> Result<Number, QueryError> {
    let whole = number.to_i64_exact().expect("this number is an integer");
    // Twenty digits at most, which 128 bits hold.
    let unit = 10i128.pow(place.unsigned_abs());
    let (quotient, rest) = (i128::from(whole) / unit, i128::from(whole) % unit);
    let twice = 2 * rest.abs();
    let is_up = rounding == Rounding::HalfEven && (twice > unit || (twice == unit && quotient % 2 != 0));
    let rounded = (quotient + if is_up { i128::from(whole.signum()) } else { 0 }) * unit;
    match (i64::try_from(rounded), number) {
        (Ok(rounded), Number::Int32(_)) => Ok(narrowed(rounded)),
        (Ok(rounded), _) => Ok(Number::Int64(rounded)),
        (Err(_), _) => Err(ExpressionFault::RoundOverflow.error(format!(
            "invalid conversion from Decimal128 result in {} resulting from arguments: [{}, {place}]",
            call.name(),
            shell_text::value_text(RawValue::Int64(whole))
        ))),
    }
}
