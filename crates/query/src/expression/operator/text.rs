//! Values as text, where an operator wants a string and takes other types as well.

use pando_document::{DOCUMENT_BYTES_MAX, Number, RawValue};

use super::{Evaluated, ExpressionFault, QueryError};
use crate::date::calendar::{self, Moment};
use crate::shell_text::short_double_text;

/// Refuses a computed string of 16 MB or more.
pub(super) fn check_text_bytes(bytes: usize) -> Result<(), QueryError> {
    match bytes < DOCUMENT_BYTES_MAX {
        true => Ok(()),
        false => Err(ExpressionFault::TextTooLong.error("Tried to create string longer than 16MB")),
    }
}

/// Null and missing are empty; numbers and dates are printed; other types are refused.
pub(super) fn coerced(value: &Evaluated<'_>) -> Result<String, QueryError> {
    match value.raw() {
        None | Some(RawValue::Null | RawValue::Undefined) => Ok(String::new()),
        Some(RawValue::String(text) | RawValue::Symbol(text) | RawValue::JavaScript(text)) => {
            Ok(text.to_owned())
        }
        Some(RawValue::Int32(number)) => Ok(number.to_string()),
        Some(RawValue::Int64(number)) => Ok(number.to_string()),
        Some(RawValue::Double(number)) => Ok(short_double_text(number)),
        Some(RawValue::Decimal128(number)) => Ok(number.to_string()),
        Some(RawValue::DateTime(millis)) => date_text(millis)
            .map_err(|error| error.prefixed("failed while coercing date to string :: caused by :: ")),
        Some(RawValue::Timestamp(stamp)) => {
            Ok(format!("{}:{}", calendar::short_text(i64::from(stamp.time)), stamp.increment))
        }
        Some(other) => Err(ExpressionFault::NotConvertibleToString
            .error(format!("can't convert from BSON type {} to String", other.element_type().alias()))),
    }
}

/// A date, whose year has four digits.
pub(super) fn date_text(millis: i64) -> Result<String, QueryError> {
    check_year(Moment::from_millis(millis).year)?;
    Ok(calendar::iso_text(millis))
}

/// Refuses a year that has not four digits.
pub(super) fn check_year(year: i64) -> Result<(), QueryError> {
    if (0..=9999).contains(&year) {
        return Ok(());
    }
    Err(ExpressionFault::DateOutOfRange.error(format!(
        "Could not convert date to string: date component was outside the supported range of 0-9999: {year}"
    )))
}

/// Refuses a double that is no int64 even without its fraction, where MongoDB converts it.
pub(super) fn refuse_beyond_long(number: Number) -> Result<(), QueryError> {
    /// Two to the power of 63.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    match number {
        Number::Double(double) if !(-BEYOND..BEYOND).contains(&double) => Err(ExpressionFault::BeyondLong
            .error(format!("Can't coerce out of range value {} to long", short_double_text(double)))),
        _ => Ok(()),
    }
}

/// A double with the fewest digits that name it, in the shape of C's `%g` with up to 17 digits.
pub(super) fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').expect("this format always writes an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent of a double is a small integer");
    if number == 0.0 || (-5..16).contains(&exponent) && exponent >= -4 {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
