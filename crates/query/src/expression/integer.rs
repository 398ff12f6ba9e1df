//! Numbers of any type as integers.

use pando_document::{Number, RawValue, Rounding};

/// The integer that is left without a fraction; `None` where it does not fit, or where there is none.
pub(crate) fn truncated(number: Number) -> Option<i64> {
    match number {
        Number::Int32(number) => Some(i64::from(number)),
        Number::Int64(number) => Some(number),
        Number::Double(number) => RawValue::Double(number.trunc()).as_i64_exact(),
        Number::Decimal128(number) => number.with_exponent(0, Rounding::TowardZero).to_i64_exact(),
    }
}

/// An int32 if it fits, else an int64.
pub(crate) fn narrowed(number: i64) -> Number {
    i32::try_from(number).map_or(Number::Int64(number), Number::Int32)
}
