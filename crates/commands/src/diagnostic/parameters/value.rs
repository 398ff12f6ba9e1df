//! The values of parameters: numbers as MongoDB coerces them, flags, and sizes as people write them.

use pando_document::{Number, RawValue};

use crate::arguments::whole;
use crate::{CommandError, ErrorCode};

/// The least and the greatest number of 64 bits, as a number with a fraction.
const RANGE_64: std::ops::Range<f64> = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;

/// A whole number of a type. A fraction is cut off, and true is 1, as in MongoDB.
pub(super) fn whole_number<T: TryFrom<i64>>(name: &str, value: RawValue<'_>) -> Result<T, CommandError> {
    let refused = |reason: &str| bad_value(format!("Failed validating {name}: {reason}"));
    let number = match value {
        RawValue::Boolean(flag) => i64::from(flag),
        number if number.is_number() && is_of_64_bits(number) => whole(number),
        number if number.is_number() => return Err(refused("Out of bounds coercing to integral value")),
        _ => return Err(refused("Unable to coerce value to integral type")),
    };
    T::try_from(number).map_err(|_| refused("Out of bounds coercing to integral value"))
}

/// Whether the whole part of a number is one of 64 bits.
fn is_of_64_bits(number: RawValue<'_>) -> bool {
    number.as_i64_exact().is_some()
        || Number::from_value(number).is_some_and(|number| RANGE_64.contains(&number.to_f64()))
}

/// A number of seconds from `least`.
pub(super) fn seconds_from(least: i32, name: &str, value: RawValue<'_>) -> Result<u64, CommandError> {
    match whole_number::<i32>(name, value)? {
        seconds if seconds >= least => Ok(u64::from(seconds.unsigned_abs())),
        seconds => Err(bad_value(format!(
            "Invalid value for parameter {name}: {seconds} is not greater than or equal to {least}"
        ))),
    }
}

/// A number of seconds above `bound`.
pub(super) fn seconds_above(bound: i32, name: &str, value: RawValue<'_>) -> Result<u64, CommandError> {
    match whole_number::<i32>(name, value)? {
        seconds if seconds > bound => Ok(u64::from(seconds.unsigned_abs())),
        seconds => Err(bad_value(format!(
            "Invalid value for parameter {name}: {seconds} is not greater than {bound}"
        ))),
    }
}

pub(super) fn flag(name: &str, value: RawValue<'_>) -> Result<bool, CommandError> {
    value.as_bool().ok_or_else(|| bad_value(format!("{name} must be true or false")))
}

fn bad_value(sentence: String) -> CommandError {
    CommandError::failed(ErrorCode::BadValue, sentence)
}

/// Text, or a whole number as text.
pub(in crate::diagnostic) fn text_of(value: RawValue<'_>) -> Option<String> {
    match value {
        RawValue::String(text) => Some(text.to_owned()),
        RawValue::Double(double) => Some(Number::Double(double).to_i64_exact()?.to_string()),
        number => number.as_i64_exact().map(|number| number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: RawValue<'_>) -> Result<i32, String> {
        whole_number("x", value).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_are_coerced_as_in_mongodb() {
        assert_eq!(number(RawValue::Double(-2.7)), Ok(-2));
        assert_eq!(number(RawValue::Boolean(true)), Ok(1));
        for value in [RawValue::Int64(1 << 40), RawValue::Double(1e300), RawValue::Double(-1e19)] {
            assert!(number(value).unwrap_err().contains("Out of bounds"), "{value:?}");
            assert!(seconds_from(0, "x", value).is_err());
        }
        assert!(number(RawValue::String("1")).unwrap_err().contains("Unable to coerce"));
        assert_eq!(whole_number::<i64>("x", RawValue::Double(1e18)).ok(), Some(1_000_000_000_000_000_000));
        assert!(seconds_above(0, "x", RawValue::Int32(0)).is_err());
        assert_eq!(seconds_from(0, "x", RawValue::Int32(0)).ok(), Some(0));
    }
}
