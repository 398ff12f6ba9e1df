//! Equality and divisibility as schemas mean them.

use pando_document::{Document, DoubleDigits, Number, RawArray, RawValue, Value, compare};

use crate::QueryError;

/// A value with the fields of all documents in the order of their names: two documents that differ in the
/// order of their fields are equal for a schema.
pub(super) fn normal_form(value: RawValue<'_>) -> Value {
    normalised(value.to_owned())
}

fn normalised(value: Value) -> Value {
    match value {
        Value::Document(document) => {
            let mut fields: Vec<(String, Value)> =
                document.iter().map(|(name, value)| (name.to_owned(), normalised(value.clone()))).collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Document(fields.into_iter().collect::<Document>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(normalised).collect()),
        other => other,
    }
}

/// The first item that is equal to one before it.
pub(super) fn first_duplicate(items: &RawArray) -> Result<Option<RawValue<'_>>, QueryError> {
    let mut seen = Vec::new();
    for (at, item) in items.iter().enumerate() {
        seen.push((normal_form(item?), at));
    }
    seen.sort_by(|(a, first), (b, second)| compare(a, b).then(first.cmp(second)));
    let repeated = seen.windows(2).filter(|pair| compare(&pair[0].0, &pair[1].0).is_eq());
    match repeated.map(|pair| pair[1].1).min() {
        Some(at) => Ok(items.iter().nth(at).transpose()?),
        None => Ok(None),
    }
}

/// Whether a number is a multiple of another. Doubles count with the digits that they hold for sure, so that
/// 0.3 is a multiple of 0.1.
pub(super) fn is_multiple(value: RawValue<'_>, divisor: &Value) -> bool {
    let (Some(number), Some(divisor)) = (Number::from_value(value), Number::from_value(divisor)) else {
        return false;
    };
    if let (Some(number), Some(divisor)) = (number.to_i64_exact(), divisor.to_i64_exact()) {
        return number.checked_rem(divisor).is_none_or(|rest| rest == 0);
    }
    let decimal = |number: Number| Number::Decimal128(number.to_decimal(DoubleDigits::Fifteen));
    decimal(number).modulo(decimal(divisor)).is_some_and(Number::is_zero)
}
