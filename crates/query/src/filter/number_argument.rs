//! Whole numbers as arguments of operators: `$size`, `$bitsAllSet`, `$mod`.

use pando_document::{Decimal128, DecimalParts, RawValue};

use crate::shell_text::value_text;

/// The fault of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberFault {
    NotNumber,
    Nan,
    NotWhole,
    NotLong,
    NotInt,
    Negative,
}

impl NumberFault {
    /// The fault in MongoDB's words; `name` is the operator or the place in an array.
    pub fn text(self, name: &str, argument: RawValue<'_>) -> String {
        let shown = format!("{name}: {}", value_text(argument));
        match self {
            NumberFault::NotNumber => format!("Expected a number in: {shown}"),
            NumberFault::Nan => format!("Expected an integer, but found NaN in: {shown}"),
            NumberFault::NotWhole => format!("Expected an integer: {shown}"),
            NumberFault::NotLong => format!("Cannot represent as a 64-bit integer: {shown}"),
            NumberFault::NotInt => format!("Cannot represent {shown} in an int"),
            NumberFault::Negative => format!("Expected a non-negative number in: {shown}"),
        }
    }
}

/// The whole number that a value of any number type is.
pub(super) fn integer(value: RawValue<'_>) -> Result<i64, NumberFault> {
    if let Some(number) = value.as_i64_exact() {
        return Ok(number);
    }
    match value {
        RawValue::Double(number) if number.is_nan() => Err(NumberFault::Nan),
        RawValue::Double(number) if number.fract() == 0.0 || number.is_infinite() => {
            Err(NumberFault::NotLong)
        }
        RawValue::Double(_) => Err(NumberFault::NotWhole),
        RawValue::Decimal128(number) if number.is_nan() => Err(NumberFault::Nan),
        // MongoDB says the same of a fraction.
        RawValue::Decimal128(_) => Err(NumberFault::NotLong),
        _ => Err(NumberFault::NotNumber),
    }
}

/// Why a number has no whole part that fits 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoercionFault {
    NotNumber,
    NotFinite,
    OutOfBounds,
}

/// The whole part of a number, cut towards zero.
pub(super) fn truncated(value: RawValue<'_>) -> Result<i64, CoercionFault> {
    match value {
        RawValue::Int32(number) => Ok(i64::from(number)),
        RawValue::Int64(number) => Ok(number),
        RawValue::Double(number) => truncated_double(number),
        RawValue::Decimal128(number) => truncated_decimal(number),
        _ => Err(CoercionFault::NotNumber),
    }
}

fn truncated_double(number: f64) -> Result<i64, CoercionFault> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if !number.is_finite() {
        return Err(CoercionFault::NotFinite);
    }
    let whole = number.trunc();
    if (-LIMIT..LIMIT).contains(&whole) { Ok(whole as i64) } else { Err(CoercionFault::OutOfBounds) }
}

fn truncated_decimal(number: Decimal128) -> Result<i64, CoercionFault> {
    let DecimalParts::Finite { negative, coefficient, exponent } = number.parts() else {
        return Err(CoercionFault::NotFinite);
    };
    let power = 10u128.checked_pow(exponent.unsigned_abs());
    let magnitude = match (exponent < 0, power) {
        (true, Some(power)) => coefficient / power,
        // More digits are cut than a coefficient has.
        (true, None) => 0,
        (false, _) if coefficient == 0 => 0,
        (false, power) => {
            power.and_then(|power| coefficient.checked_mul(power)).ok_or(CoercionFault::OutOfBounds)?
        }
    };
    let magnitude = i128::try_from(magnitude).map_err(|_| CoercionFault::OutOfBounds)?;
    i64::try_from(if negative { -magnitude } else { magnitude }).map_err(|_| CoercionFault::OutOfBounds)
}
