//! The options of `2dsphere` and `2d` indexes: which are allowed, and the form in which they are kept.
//!
//! Other kinds of index take these options too, as far as their types fit, and forget them.

use pando_document::{Document, Number, RawDocument, RawValue, Value};
use pando_query::shell_text::value_text;

use crate::ErrorCode;

/// The version of a `2dsphere` index; all versions are kept up alike.
pub(super) const SPHERE_VERSION: &str = "2dsphereIndexVersion";
/// The options, but for those of a `text` index.
const OPTIONS: [&str; 7] =
    [SPHERE_VERSION, "coarsestIndexedLevel", "finestIndexedLevel", "bits", "min", "max", "bucketSize"];
/// The version of a new index.
const VERSION: i64 = 3;
/// The levels that count for the check where a specification names only one, as MongoDB 6.0.27 answers.
const COARSEST: i64 = 2;
const FINEST: i64 = 23;
/// The bits of a new index, and the most that it can have.
const BITS: i64 = 26;
const BITS_MAX: i64 = 32;

/// The words in front of a refusal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Given,
    WithVersion,
    Nothing,
}

/// Why options are refused.
pub(super) struct GeoRefusal {
    pub code: ErrorCode,
    pub reason: String,
    pub shown: Shown,
}

fn refused<T>(code: ErrorCode, reason: impl Into<String>, shown: Shown) -> Result<T, GeoRefusal> {
    Err(GeoRefusal { code, reason: reason.into(), shown })
}

/// Whether an option is one of geometries.
pub(super) fn is_option(name: &str) -> bool {
    OPTIONS.contains(&name)
}

/// Checks the type of an option.
pub(super) fn check_type(name: &str, value: RawValue<'_>) -> Result<(), GeoRefusal> {
    let is_level = name.ends_with("IndexedLevel");
    if value.is_number() || (is_level && matches!(value, RawValue::Boolean(_))) {
        return Ok(());
    }
    let reason = match is_level {
        // The missing quotation mark is MongoDB's.
        true => {
            let value = value_text(value);
            format!("The field '{name} has value {name}: {value}, which is not convertible to bool")
        }
        false => format!("The field '{name}' must be a number, but got {}", value.element_type().alias()),
    };
    refused(ErrorCode::TypeMismatch, reason, Shown::Given)
}

/// Checks that a key pattern has one kind of index besides ordered fields.
pub(super) fn check_kinds(key: &RawDocument) -> Result<(), GeoRefusal> {
    let mut kinds: Vec<&str> = key
        .iter()
        .flatten()
        .filter_map(|(_, order)| match order {
            RawValue::String(kind) => Some(kind),
            _ => None,
        })
        .collect();
    kinds.dedup();
    match kinds.as_slice() {
        [_, _, ..] => refused(
            ErrorCode::CannotCreateIndex,
            "Can't use more than one index plugin for a single index.",
            Shown::Given,
        ),
        _ => Ok(()),
    }
}

/// The options of an index of geometries, checked and in the order in which they are listed; none for another
/// index.
pub(super) fn kept(given: &RawDocument, key: &RawDocument) -> Result<Document, GeoRefusal> {
    let places = |kind: &str| {
        key.iter()
            .flatten()
            .enumerate()
            .filter(|(_, (_, order))| matches!(order, RawValue::String(own) if *own == kind))
            .map(|(at, _)| at)
            .collect::<Vec<usize>>()
    };
    if !places("2dsphere").is_empty() {
        return sphere_options(given);
    }
    match places("2d").as_slice() {
        [] => Ok(Document::new()),
        [0] => plane_options(given),
        [0, _, ..] => refused(ErrorCode::Location(16_800), "can't have 2 geo fields", Shown::Nothing),
        _ => refused(ErrorCode::Location(16_801), "2d has to be first in index", Shown::Nothing),
    }
}

fn sphere_options(given: &RawDocument) -> Result<Document, GeoRefusal> {
    let mut kept = Document::new();
    let version = whole(given, SPHERE_VERSION)?.unwrap_or(VERSION);
    if !(1..=VERSION).contains(&version) {
        let shown = value_text(option(given, SPHERE_VERSION).unwrap_or(RawValue::Null));
        let reason = format!(
            "unsupported geo index version {{ {SPHERE_VERSION} : {SPHERE_VERSION}: {shown} }}, only versions: [1,2,3] are supported"
        );
        return refused(ErrorCode::CannotCreateIndex, reason, Shown::WithVersion);
    }
    kept.push(SPHERE_VERSION, small(version));
    let levels = [whole(given, "coarsestIndexedLevel")?, whole(given, "finestIndexedLevel")?];
    let (coarsest, finest) = (levels[0].unwrap_or(COARSEST), levels[1].unwrap_or(FINEST));
    let fault = if coarsest < 0 {
        Some((16_747, "coarsestIndexedLevel must be >= 0"))
    } else if finest > 30 {
        Some((16_748, "finestIndexedLevel must be <= 30"))
    } else if finest < coarsest {
        Some((16_749, "finestIndexedLevel must be >= coarsestIndexedLevel"))
    } else {
        None
    };
    if let Some((code, reason)) = fault {
        return refused(ErrorCode::Location(code), reason, Shown::Nothing);
    }
    for (name, level) in ["coarsestIndexedLevel", "finestIndexedLevel"].iter().zip(levels) {
        level.into_iter().for_each(|level| kept.push(*name, small(level)));
    }
    Ok(kept)
}

fn plane_options(given: &RawDocument) -> Result<Document, GeoRefusal> {
    let number = |name| option(given, name).and_then(Number::from_value).map(Number::to_f64);
    let bits = number("bits").map(|bits| bits as i64);
    if let Some(bits) = bits.filter(|bits| !(1..=BITS_MAX).contains(bits)) {
        let reason = format!("bits for hash must be > 0 and <= 32, but {bits} bits were specified");
        return refused(ErrorCode::InvalidOptions, reason, Shown::Nothing);
    }
    let (least, greatest) = (number("min"), number("max"));
    let (from, to) = (least.unwrap_or(-180.0), greatest.unwrap_or(180.0));
    if !(from.is_finite() && to.is_finite() && from < to) {
        let reason =
            format!("region for hash must be valid and have positive area, but [{from}, {to}] was specified");
        return refused(ErrorCode::InvalidOptions, reason, Shown::Nothing);
    }
    // As many cells of the finest grid as a coordinate can have go into a unit of length.
    let cells = (BITS_MAX as f64).exp2() / (to - from);
    if !cells.is_normal() {
        let shown = |bound| value_text(RawValue::Double(bound));
        let reason = format!("range [{}, {}] is too small.", shown(from), shown(to));
        return refused(ErrorCode::InvalidOptions, reason, Shown::Nothing);
    }
    // The diagonal of a cell has to be a number.
    let side = (to - from) / (bits.unwrap_or(BITS) as f64).exp2();
    if !(2.0 * side * side).is_finite() {
        let reason = "Invalid GeoHashConverter parameters";
        return refused(ErrorCode::Location(4_799_400), reason, Shown::Nothing);
    }
    let mut kept = Document::new();
    bits.into_iter().for_each(|bits| kept.push("bits", small(bits)));
    for (name, value) in [("min", least), ("max", greatest), ("bucketSize", number("bucketSize"))] {
        value.into_iter().for_each(|value| kept.push(name, Value::Double(value)));
    }
    Ok(kept)
}

fn option<'d>(given: &'d RawDocument, name: &str) -> Option<RawValue<'d>> {
    given.get(name).ok().flatten()
}

/// A whole number.
fn whole(given: &RawDocument, name: &str) -> Result<Option<i64>, GeoRefusal> {
    let Some(value) = option(given, name) else { return Ok(None) };
    if let Some(number) = value.as_i64_exact() {
        return Ok(Some(number));
    }
    let (code, reason) = match value.is_number() {
        true => (
            ErrorCode::BadValue,
            format!(
                "Expected field \"{name}\" to have a value exactly representable as a 64-bit integer, but found {name}: {}",
                value_text(value)
            ),
        ),
        false => (
            ErrorCode::TypeMismatch,
            format!(
                "Expected field \"{name}\" to have numeric type, but found {}",
                value.element_type().alias()
            ),
        ),
    };
    refused(code, reason, Shown::Nothing)
}

fn small(number: i64) -> Value {
    i32::try_from(number).map_or(Value::Int64(number), Value::Int32)
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    fn code(given: &Document) -> i32 {
        let given = given.to_raw();
        let Ok(Some(RawValue::Document(key))) = given.get("key") else { unreachable!() };
        kept(&given, key).map_or_else(|refusal| refusal.code.code(), |_| 0)
    }

    #[test]
    fn options_are_kept_in_the_order_of_the_listing() {
        let given = doc! { "key": { "l": "2dsphere" }, "finestIndexedLevel": 9, "coarsestIndexedLevel": 2.0 };
        let raw = given.to_raw();
        let key = doc! { "l": "2dsphere" }.to_raw();
        let wanted = doc! { "2dsphereIndexVersion": 3, "coarsestIndexedLevel": 2, "finestIndexedLevel": 9 };
        assert_eq!(kept(&raw, &key).ok(), Some(wanted));
        let given = doc! { "max": 5, "min": -5, "bits": 10.7 }.to_raw();
        let key = doc! { "l": "2d", "a": -1 }.to_raw();
        assert_eq!(kept(&given, &key).ok(), Some(doc! { "bits": 10, "min": (-5.0), "max": 5.0 }));
        assert_eq!(kept(&given, &doc! { "a": 1 }.to_raw()).ok(), Some(Document::new()));
    }

    #[test]
    fn options_out_of_range_have_codes_of_their_own() {
        for (name, value, wanted) in [
            ("2dsphereIndexVersion", 4, 67),
            ("coarsestIndexedLevel", -1, 16_747),
            ("finestIndexedLevel", 31, 16_748),
            ("coarsestIndexedLevel", 24, 16_749),
        ] {
            let mut given = doc! { "key": { "l": "2dsphere" } };
            given.push(name, value);
            assert_eq!(code(&given), wanted);
        }
        for (name, value, wanted) in [("bits", 0, 72), ("bits", 33, 72), ("min", 180, 72)] {
            let mut given = doc! { "key": { "l": "2d" } };
            given.push(name, value);
            assert_eq!(code(&given), wanted);
        }
        assert_eq!(code(&doc! { "key": { "a": 1, "l": "2d" } }), 16_801);
        assert_eq!(code(&doc! { "key": { "l": "2d", "m": "2d" } }), 16_800);
    }
}
