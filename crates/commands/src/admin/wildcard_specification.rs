//! The rules for wildcard indexes: the key pattern, the projection, and the options that they cannot have.
//!
//! The rules of an index of one field are those of MongoDB 6.0. It has no compound ones; theirs are those of
//! MongoDB 7.0: each field is indexed once, by its own place or by the wildcard.

use std::collections::BTreeMap;

use pando_catalog::{WILDCARD, is_wildcard};
use pando_document::{Number, RawDocument, RawValue};
use pando_query::shell_text::document_text;
use pando_query::wildcard_index::{WILDCARD_PROJECTION, WildcardPaths};

use crate::ErrorCode;

/// A refusal: its code, its reason, and the specification that its message shows.
pub(super) struct WildcardRefusal {
    pub code: ErrorCode,
    pub reason: String,
    pub shown: Shown,
}

/// The specification in front of a reason.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Given,
    WithVersion,
}

impl From<(ErrorCode, String)> for WildcardRefusal {
    fn from((code, reason): (ErrorCode, String)) -> WildcardRefusal {
        WildcardRefusal { code, reason, shown: Shown::Given }
    }
}

fn refused<T>(code: ErrorCode, reason: impl Into<String>) -> Result<T, WildcardRefusal> {
    Err((code, reason.into()).into())
}

/// Checks a specification of which the key pattern has been checked field by field.
pub(super) fn check(given: &RawDocument, key: &RawDocument) -> Result<(), WildcardRefusal> {
    let names = || key.iter().filter_map(Result::ok).map(|(name, _)| name);
    let wildcards = names().filter(|name| is_wildcard(name)).count();
    let of_text = |(_, order): (_, RawValue<'_>)| matches!(order, RawValue::String(_));
    // `$**` as a field of a text index is no wildcard in this sense.
    if wildcards == 0 || key.iter().filter_map(Result::ok).any(of_text) {
        return match given.get(WILDCARD_PROJECTION) {
            Ok(None) => Ok(()),
            _ => refused(
                ErrorCode::BadValue,
                "The field 'wildcardProjection' is only allowed in an 'wildcard' index",
            ),
        };
    }
    if matches!(given.get("v"), Ok(Some(version)) if version.as_i64_exact() == Some(1)) {
        let key = document_text(key);
        return refused(
            ErrorCode::CannotCreateIndex,
            format!(
                "bad index key pattern {key}: 'wildcard' index plugin is not allowed with index version v:1"
            ),
        );
    }
    if wildcards > 1 {
        return refused(
            ErrorCode::Location(7_246_201),
            "Index Key can contain only one wildcard index field",
        );
    }
    let wildcard = names().find(|name| is_wildcard(name)).unwrap_or(WILDCARD);
    let regular: Vec<&str> = names().filter(|name| !is_wildcard(name)).collect();
    check_projection(given, wildcard, &regular)?;
    check_options(given)
}

/// Refuses a numeric order that a wildcard alone cannot have.
pub(super) fn check_order(order: Number, fields: usize) -> Result<(), (ErrorCode, String)> {
    if fields == 1 && order.to_f64() < 0.0 {
        let reason = "A numeric value in a $** index key pattern must be positive.";
        return Err((ErrorCode::CannotCreateIndex, reason.to_owned()));
    }
    Ok(())
}

fn check_projection(given: &RawDocument, wildcard: &str, regular: &[&str]) -> Result<(), WildcardRefusal> {
    let projection = match given.get(WILDCARD_PROJECTION) {
        Ok(Some(RawValue::Document(projection))) => projection,
        Ok(Some(other)) => {
            let found = other.element_type().alias();
            return refused(
                ErrorCode::TypeMismatch,
                format!("The field 'wildcardProjection' must be a non-empty object, but got {found}"),
            );
        }
        _ => return check_without_projection(wildcard, regular),
    };
    if wildcard != WILDCARD {
        return refused(
            ErrorCode::FailedToParse,
            "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}",
        );
    }
    if projection.is_empty() {
        return refused(ErrorCode::FailedToParse, "The 'wildcardProjection' field can't be an empty object");
    }
    let paths = WildcardPaths::parse(projection)
        .map_err(|refusal| WildcardRefusal::from((refusal.code, refusal.reason)))?;
    match regular.iter().find(|field| paths.has_part_of(field)) {
        None => Ok(()),
        Some(field) if paths.is_exclusion() => refused(
            ErrorCode::Location(7_246_209),
            format!(
                "wildcardProjection paths must exclude all regular index fields, however '{field}' is not excluded."
            ),
        ),
        Some(field) => refused(
            ErrorCode::Location(7_246_208),
            format!(
                "Index Key and Wildcard Projection cannot contain overlapping fields, however '{field}' index field is overlapping with the wildcardProjection."
            ),
        ),
    }
}

fn check_without_projection(wildcard: &str, regular: &[&str]) -> Result<(), WildcardRefusal> {
    let above = wildcard.strip_suffix(WILDCARD).unwrap_or_default();
    let is_below = |field: &&&str| format!("{field}.").starts_with(above);
    match regular.iter().find(is_below) {
        None => Ok(()),
        Some(field) => refused(
            ErrorCode::Location(7_246_204),
            format!(
                "A wildcard index field should not overlap with and index key fields if wildcard projection is empty, however '{field}' is overlapping with the wildcard index field."
            ),
        ),
    }
}

/// Refuses the options that mean nothing without fixed fields.
fn check_options(given: &RawDocument) -> Result<(), WildcardRefusal> {
    let options: BTreeMap<&str, RawValue<'_>> = given.iter().filter_map(Result::ok).collect();
    let is_true = |name| options.get(name).is_some_and(|value| value.to_bool());
    let reason = if is_true("sparse") {
        "Index type 'wildcard' does not support the sparse option"
    } else if is_true("unique") {
        "Index type 'wildcard' does not support the unique option"
    } else if options.contains_key("expireAfterSeconds") {
        "Index type 'wildcard' cannot be a TTL index"
    } else {
        return Ok(());
    };
    let reason = reason.to_owned();
    Err(WildcardRefusal { code: ErrorCode::CannotCreateIndex, reason, shown: Shown::WithVersion })
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, doc};

    use super::*;

    fn code_of(given: &Document) -> Option<i32> {
        let given = given.to_raw();
        let Ok(Some(RawValue::Document(key))) = given.get("key") else { panic!("no key") };
        check(&given, key).err().map(|refusal| refusal.code.code())
    }

    #[test]
    fn each_field_of_a_compound_index_is_indexed_once() {
        for allowed in [
            doc! { "key": { "$**": 1 } },
            doc! { "key": { "a": 1, "b.$**": 1, "c": -1 } },
            doc! { "key": { "b": 1, "b.c.$**": 1 } },
            doc! { "key": { "a": 1, "$**": 1 }, "wildcardProjection": { "a": 0 } },
            doc! { "key": { "a": 1, "$**": 1 }, "wildcardProjection": { "b": 1, "_id": 1 } },
        ] {
            assert_eq!(code_of(&allowed), None, "{allowed:?}");
        }
        for (refused, code) in [
            (doc! { "key": { "a": 1, "$**": 1 } }, 7_246_204),
            (doc! { "key": { "b.x": 1, "b.$**": 1 } }, 7_246_204),
            (doc! { "key": { "a.$**": 1, "b.$**": 1 } }, 7_246_201),
            (doc! { "key": { "a": 1, "$**": 1 }, "wildcardProjection": { "a": 1 } }, 7_246_208),
            (doc! { "key": { "a": 1, "$**": 1 }, "wildcardProjection": { "b": 0 } }, 7_246_209),
            (doc! { "key": { "b.$**": 1 }, "wildcardProjection": { "b": 0 } }, 9),
            (doc! { "key": { "a": 1 }, "wildcardProjection": { "b": 0 } }, 2),
            (doc! { "key": { "$**": 1 }, "wildcardProjection": 1 }, 14),
            (doc! { "key": { "$**": 1 }, "unique": true }, 67),
            (doc! { "key": { "$**": 1 }, "v": 1 }, 67),
        ] {
            assert_eq!(code_of(&refused), Some(code), "{refused:?}");
        }
    }
}
