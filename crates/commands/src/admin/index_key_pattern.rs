//! The key pattern of an index: which fields, in which directions.

use pando_catalog::{WILDCARD, is_wildcard};
use pando_document::{Number, RawDocument, RawValue};
use pando_query::path::is_reference_name;
use pando_query::text_index::specification::TEXT;

use super::wildcard_specification;
use crate::ErrorCode;

/// Kinds of index of geometries.
const GEOMETRIES: [&str; 2] = ["2d", "2dsphere"];
/// All kinds of index that MongoDB names.
const KINDS: [&str; 4] = ["text", "2d", "2dsphere", "hashed"];
/// The direction of a field of which an index has the hash.
const HASHED: &str = "hashed";
/// Most fields of one index.
pub(super) const FIELDS_MAX: usize = 32;

/// Checks that a key pattern names fields and directions. An error is a code and a reason.
pub(super) fn check(key: &RawDocument) -> Result<(), (ErrorCode, String)> {
    let refused = |reason: &str| Err((ErrorCode::CannotCreateIndex, reason.to_owned()));
    if key.is_empty() {
        return refused("Index keys cannot be empty.");
    }
    for field in key.iter() {
        let (path, direction) = field.map_err(|error| (ErrorCode::InvalidBson, error.to_string()))?;
        match (is_wildcard(path), direction) {
            (true, RawValue::String(kind)) if !kind.is_empty() && !KINDS.contains(&kind) => {
                return refused(&format!("Unknown index plugin '{kind}'"));
            }
            (true, RawValue::String(TEXT)) if path == WILDCARD => {}
            (true, RawValue::String(_)) | (false, _) => check_path(path)?,
            (true, _) => match path.strip_suffix(WILDCARD).and_then(|above| above.strip_suffix('.')) {
                Some("") => return refused("Index keys cannot contain an empty field."),
                Some(above) => check_path(above)?,
                None => {}
            },
        }
        match direction {
            RawValue::String("") => {
                return refused("Values in the index key pattern cannot be empty strings");
            }
            RawValue::String(kind @ (HASHED | TEXT)) => {
                let is_other =
                    |order: RawValue<'_>| matches!(order, RawValue::String(other) if other != kind);
                if key.iter().any(|field| field.is_ok_and(|(_, order)| is_other(order))) {
                    return refused("Can't use more than one index plugin for a single index.");
                }
            }
            RawValue::String(kind) if GEOMETRIES.contains(&kind) => {}
            RawValue::String("geoHaystack") => {
                return refused("GeoHaystack indexes cannot be created in version 5.0 and above");
            }
            RawValue::String(kind) => return refused(&format!("Unknown index plugin '{kind}'")),
            value => match Number::from_value(value) {
                Some(number) if number.is_nan() => {
                    return refused("Values in the index key pattern cannot be NaN.");
                }
                Some(number) if number.is_zero() => {
                    return refused("Values in the index key pattern cannot be 0.");
                }
                Some(number) if is_wildcard(path) => {
                    wildcard_specification::check_order(number, key.iter().count())?;
                }
                Some(_) => {}
                None => {
                    let found = value.element_type().alias();
                    return refused(&format!(
                        "Values in v:2 index key pattern cannot be of type {found}. Only numbers > 0, numbers < 0, and strings are allowed."
                    ));
                }
            },
        }
    }
    Ok(())
}

/// The number of fields of which an index has the hash.
pub(super) fn hashed_fields(key: &RawDocument) -> usize {
    key.iter().filter(|field| matches!(field, Ok((_, RawValue::String(HASHED))))).count()
}

fn check_path(path: &str) -> Result<(), (ErrorCode, String)> {
    let refused = |reason: &str| Err((ErrorCode::CannotCreateIndex, reason.to_owned()));
    if path.is_empty() {
        return refused("Index keys cannot be an empty field.");
    }
    if path.split('.').any(str::is_empty) {
        return refused("Index keys cannot contain an empty field.");
    }
    let is_illegal =
        |(at, part): (usize, &str)| part.starts_with('$') && (at == 0 || !is_reference_name(part));
    if path.split('.').enumerate().any(is_illegal) {
        return refused("Index key contains an illegal field name: field name starts with '$'.");
    }
    Ok(())
}

/// Whether it is the pattern of the index on `_id`, or meant to be.
pub(super) fn is_of_id(key: &RawDocument) -> bool {
    let mut fields = key.iter();
    let (first, second) = (fields.next(), fields.next());
    match (first, second) {
        (Some(Ok(("_id", direction))), None) => {
            Number::from_value(direction).is_some_and(|number| number.to_f64().trunc().abs() == 1.0)
        }
        _ => false,
    }
}

/// Whether two key patterns name the same fields with the same numbers, whatever the types of these.
pub(super) fn same(a: &RawDocument, b: &RawDocument) -> bool {
    let mut left = a.iter();
    let mut right = b.iter();
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some(Ok((name_a, value_a))), Some(Ok((name_b, value_b)))) => {
                if name_a != name_b || !same_direction(value_a, value_b) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

fn same_direction(a: RawValue<'_>, b: RawValue<'_>) -> bool {
    match (Number::from_value(a), Number::from_value(b)) {
        (Some(a), Some(b)) => a.to_f64() == b.to_f64(),
        _ => matches!((a, b), (RawValue::String(a), RawValue::String(b)) if a == b),
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    #[test]
    fn directions_are_equal_as_numbers_and_not_as_signs() {
        let key = doc! { "a": 1 }.to_raw();
        assert!(same(&key, &doc! { "a": 1.0 }.to_raw()));
        assert!(!same(&key, &doc! { "a": 2 }.to_raw()));
        assert!(!same(&key, &doc! { "a": 1, "b": 1 }.to_raw()));
    }

    #[test]
    fn only_one_and_minus_one_mean_the_index_on_the_id() {
        assert!(is_of_id(&doc! { "_id": 1 }.to_raw()));
        assert!(is_of_id(&doc! { "_id": -1.0 }.to_raw()));
        assert!(!is_of_id(&doc! { "_id": 2 }.to_raw()));
        assert!(!is_of_id(&doc! { "_id": 1, "a": 1 }.to_raw()));
    }
}
