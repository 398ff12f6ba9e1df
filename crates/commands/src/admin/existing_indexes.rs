//! The comparison of a wanted index with the existing ones: it exists already, conflicts with one, or is new.
//!
//! Two indexes may have the same key if one of them is unique and the other is not, one sparse and the other
//! not, or if their partial filters, wildcard projections or collations differ: these options make the
//! *signature* of an index, together with its key. Each signature has one index. A request for it with the
//! same name and options finds that it exists. Whether an index is hidden, and how it was built, makes no
//! difference.

use pando_document::{RawDocument, RawDocumentBuf, RawValue};

use pando_query::partial_index::{self, PARTIAL_FILTER};
use pando_query::text_index::specification::is_text;
use pando_query::wildcard_index::{WILDCARD_PROJECTION, WildcardPaths};

use super::geo_specification::SPHERE_VERSION;
use super::index_key_pattern;
use super::index_specification::COLLATION;
use super::specification_text::shown;
use crate::{CommandError, ErrorCode};

/// Fields of a specification that are no options of its index, or make its signature.
const NO_OPTIONS: [&str; 10] = [
    "v",
    "key",
    "name",
    "unique",
    "sparse",
    "hidden",
    "background",
    PARTIAL_FILTER,
    WILDCARD_PROJECTION,
    COLLATION,
];

/// Whether an index like `wanted` is among `have`. An error if one of these conflicts with it. All are
/// normalised.
pub(super) fn is_among(have: &[RawDocumentBuf], wanted: &RawDocument) -> Result<bool, CommandError> {
    let (wanted_key, wanted_name) = key_and_name(wanted);
    // The index on `_id` exists under any name.
    if index_key_pattern::is_of_id(wanted_key) {
        return Ok(true);
    }
    if let Some(existing) = have.iter().find(|existing| key_and_name(existing).1 == wanted_name) {
        return match (same_signature(existing, wanted), same_options(existing, wanted)) {
            (true, true) => Ok(true),
            (true, false) => Err(conflict(
                ErrorCode::IndexOptionsConflict,
                "An equivalent index already exists with the same name but different options.",
                wanted,
                existing,
            )),
            (false, _) => Err(conflict(
                ErrorCode::IndexKeySpecsConflict,
                "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation.",
                wanted,
                existing,
            )),
        };
    }
    match have.iter().find(|existing| same_signature(existing, wanted)) {
        None => match have.iter().find(|existing| is_text(key_and_name(existing).0)) {
            Some(existing) if is_text(wanted_key) => {
                let name = key_and_name(existing).1;
                Err(CommandError::failed(
                    ErrorCode::CannotCreateIndex,
                    format!(
                        "only one text index per collection allowed, found existing text index \"{name}\""
                    ),
                ))
            }
            _ => Ok(false),
        },
        Some(existing) if same_options(existing, wanted) => {
            let name = key_and_name(existing).1;
            Err(CommandError::failed(
                ErrorCode::IndexOptionsConflict,
                format!("Index already exists with a different name: {name}"),
            ))
        }
        Some(existing) => Err(conflict(
            ErrorCode::IndexOptionsConflict,
            "An equivalent index already exists with a different name and options.",
            wanted,
            existing,
        )),
    }
}

/// The key pattern and the name of a normalised specification.
pub(super) fn key_and_name(specification: &RawDocument) -> (&RawDocument, &str) {
    match (specification.get("key"), specification.get("name")) {
        (Ok(Some(RawValue::Document(key))), Ok(Some(RawValue::String(name)))) => (key, name),
        _ => unreachable!("specifications are normalised before they are compared"),
    }
}

fn same_signature(a: &RawDocument, b: &RawDocument) -> bool {
    index_key_pattern::same(key_and_name(a).0, key_and_name(b).0)
        && flag(a, "unique") == flag(b, "unique")
        && flag(a, "sparse") == flag(b, "sparse")
        && same_documents(a, b)
        && same_fields(a, b)
        && collation_of(a) == collation_of(b)
}

/// Whether both have the same fields of their wildcards, if they have such.
fn same_fields(a: &RawDocument, b: &RawDocument) -> bool {
    match (a.get(WILDCARD_PROJECTION), b.get(WILDCARD_PROJECTION)) {
        (Ok(None), Ok(None)) => true,
        _ => WildcardPaths::of_specification(a) == WildcardPaths::of_specification(b),
    }
}

/// The completed collation; `None` of the simple one.
fn collation_of(specification: &RawDocument) -> Option<&RawDocument> {
    match specification.get(COLLATION) {
        Ok(Some(RawValue::Document(collation))) => Some(collation),
        _ => None,
    }
}

/// Whether both have all documents, or those of the same filter.
fn same_documents(a: &RawDocument, b: &RawDocument) -> bool {
    match (a.get(PARTIAL_FILTER), b.get(PARTIAL_FILTER)) {
        (Ok(None), Ok(None)) => true,
        (Ok(Some(RawValue::Document(a))), Ok(Some(RawValue::Document(b)))) => partial_index::same(a, b),
        _ => false,
    }
}

/// Whether the remaining options are the same, in whatever order.
fn same_options(a: &RawDocument, b: &RawDocument) -> bool {
    let options = |specification: &RawDocument| -> Vec<(String, pando_document::Value)> {
        let mut options: Vec<_> = specification
            .iter()
            .filter_map(|field| field.ok())
            .filter(|(name, _)| !NO_OPTIONS.contains(name) && *name != SPHERE_VERSION)
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        options.sort_by(|left, right| left.0.cmp(&right.0));
        options
    };
    options(a) == options(b)
}

fn flag(specification: &RawDocument, name: &str) -> bool {
    matches!(specification.get(name), Ok(Some(value)) if value.to_bool())
}

fn conflict(code: ErrorCode, sentence: &str, wanted: &RawDocument, existing: &RawDocument) -> CommandError {
    let (wanted, existing) = (shown(wanted), shown(existing));
    CommandError::failed(code, format!("{sentence} Requested index: {wanted}, existing index: {existing}"))
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    fn code_of(outcome: Result<bool, CommandError>) -> i32 {
        match outcome {
            Err(CommandError::Failed(failure)) => failure.code.code(),
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn an_index_is_there_whatever_its_visibility_and_its_numbers_types() {
        let have = [doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" }.to_raw()];
        let same = doc! { "v": 1, "key": { "a": 1.0 }, "name": "a_1", "hidden": true }.to_raw();
        assert!(is_among(&have, &same).unwrap());
        let id = doc! { "v": 2, "key": { "_id": 1 }, "name": "mine" }.to_raw();
        assert!(is_among(&have, &id).unwrap());
    }

    #[test]
    fn a_name_or_a_signature_is_taken_once() {
        let have = [doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" }.to_raw()];
        let renamed = doc! { "v": 2, "key": { "a": 1 }, "name": "b" }.to_raw();
        assert_eq!(code_of(is_among(&have, &renamed)), 85);
        let other_key = doc! { "v": 2, "key": { "z": 1 }, "name": "a_1" }.to_raw();
        assert_eq!(code_of(is_among(&have, &other_key)), 86);
        let unique = doc! { "v": 2, "key": { "a": 1 }, "name": "a_1", "unique": true }.to_raw();
        assert_eq!(code_of(is_among(&have, &unique)), 86);
        let beside = doc! { "v": 2, "key": { "a": 1 }, "name": "u", "unique": true }.to_raw();
        assert!(!is_among(&have, &beside).unwrap());
    }
}
