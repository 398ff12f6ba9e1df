//! Values as text, where an operator wants a string and takes other types as well.

use pando_document::RawValue;

use super::{Evaluated, ExpressionFault, QueryError};
use crate::date::calendar;

/// Null and missing are empty; numbers and dates are printed; other types are refused.
pub(super) fn coerced(value: &Evaluated<'_>) -> Result<String, QueryError> {
    match value.raw() {
        None | Some(RawValue::Null | RawValue::Undefined) => Ok(String::new()),
        Some(RawValue::String(text) | RawValue::Symbol(text) | RawValue::JavaScript(text)) => {
            Ok(text.to_owned())
        }
        Some(RawValue::Int32(number)) => Ok(number.to_string()),
        Some(RawValue::Int64(number)) => Ok(number.to_string()),
        Some(RawValue::Double(number)) => Ok(double_text(number)),
        Some(RawValue::Decimal128(number)) => Ok(number.to_string()),
        Some(RawValue::DateTime(millis)) => Ok(calendar::iso_text(millis)),
        Some(RawValue::Timestamp(stamp)) => Ok(format!("Timestamp({}, {})", stamp.time, stamp.increment)),
        Some(other) => Err(ExpressionFault::NotConvertibleToString
            .error(format!("can't convert from BSON type {} to String", other.element_type().alias()))),
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
