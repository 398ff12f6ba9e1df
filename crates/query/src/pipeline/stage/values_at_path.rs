//! The values that a join looks for: those at a path of a document, through arrays.
//!
//! # Rules (observed on MongoDB 6.0)
//! - At the end of the path an array stands for its elements. Arrays within it are values.
//! - On the way a name of digits is a place in an array, and no name of a field in its documents.
//! - Through an array any other name leads into the documents in it; other elements are passed over.

use pando_document::{RawDocument, RawValue};

use crate::error::QueryError;
use crate::expression::{Evaluated, FieldPath, array_of};

/// Calls `take` with each value.
pub(super) fn for_each_value<'v>(
    value: RawValue<'v>,
    names: &[String],
    take: &mut dyn FnMut(RawValue<'v>) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    let [name, below @ ..] = names else {
        return match value {
            RawValue::Array(array) => array.iter().try_for_each(|element| take(element?)),
            single => take(single),
        };
    };
    match value {
        RawValue::Document(document) => match document.get(name)? {
            Some(field) => for_each_value(field, below, take),
            None => Ok(()),
        },
        RawValue::Array(array) => match place_of(name) {
            Some(place) => match array.iter().nth(place) {
                Some(element) => for_each_value(element?, below, take),
                None => Ok(()),
            },
            None => array.iter().try_for_each(|element| match element? {
                nested @ RawValue::Document(_) => for_each_value(nested, names, take),
                _ => Ok(()),
            }),
        },
        _ => Ok(()),
    }
}

/// The place in an array that a name stands for.
fn place_of(name: &str) -> Option<usize> {
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { name.parse().ok() } else { None }
}

/// The values as one: an array of them, or the only one; missing where there is none.
///
/// # Errors
/// An undefined value is among them: nothing is equal to it.
pub(super) fn joined_values<'v>(
    root: &'v RawDocument,
    path: &FieldPath,
) -> Result<Evaluated<'v>, QueryError> {
    if let [name] = path.names() {
        let value = root.get(name)?.map_or(Evaluated::Missing, Evaluated::Raw);
        refuse_undefined(&value)?;
        return Ok(value);
    }
    let mut values = Vec::new();
    for_each_value(RawValue::Document(root), path.names(), &mut |value| {
        values.push(value);
        Ok(())
    })?;
    let values = match values.as_slice() {
        [] => Evaluated::Missing,
        [only] if only.as_array().is_none() => Evaluated::Raw(*only),
        several => array_of(|writer| {
            several.iter().for_each(|value| writer.push(*value));
            Ok(())
        })?,
    };
    refuse_undefined(&values)?;
    Ok(values)
}

fn refuse_undefined(value: &Evaluated<'_>) -> Result<(), QueryError> {
    match value.raw() {
        Some(RawValue::Undefined) => Err(QueryError::bad_value("cannot compare to undefined")),
        Some(RawValue::Array(array)) => array.iter().try_for_each(|element| match element? {
            RawValue::Undefined => {
                Err(QueryError::bad_value("InMatchExpression equality cannot be undefined"))
            }
            _ => Ok(()),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, Value, doc};

    use super::*;

    fn values(document: &Document, path: &str) -> String {
        let root = document.to_raw();
        let found = joined_values(&root, &FieldPath::parse(path).unwrap()).unwrap();
        format!("{:?}", found.to_value())
    }

    /// The answers are the server's.
    #[test]
    fn a_number_is_a_place_in_an_array_and_never_a_field_of_its_documents() {
        let documents = doc! { "a": [{ "0": "z", "b": [7] }, 8, [{ "b": 1 }]] };
        assert_eq!(values(&documents, "a.1"), "Some(Int32(8))");
        assert_eq!(values(&documents, "a.01"), "Some(Int32(8))");
        assert_eq!(values(&documents, "a.5"), "None");
        assert_eq!(values(&documents, "a.+1"), "None");
        assert_eq!(values(&documents, "a.2.b"), "Some(Int32(1))");
        assert_eq!(values(&doc! { "a": { "0": 9 } }, "a.0"), "Some(Int32(9))");
        assert_eq!(values(&doc! { "a": [[1, 2], [3]] }, "a.0"), "Some(Array([Int32(1), Int32(2)]))");
    }

    #[test]
    fn arrays_at_the_end_stand_for_their_elements() {
        assert_eq!(
            values(&doc! { "a": [{ "b": 5 }, { "b": [7, [8]] }, 4] }, "a.b"),
            "Some(Array([Int32(5), Int32(7), Array([Int32(8)])]))"
        );
        assert_eq!(values(&doc! { "a": [{ "b": [[7]] }] }, "a.b"), "Some(Array([Array([Int32(7)])]))");
        assert_eq!(values(&doc! { "a": [{ "b": [] }] }, "a.b"), "None");
        assert_eq!(values(&doc! { "a": [[{ "b": 1 }]] }, "a.b"), "None");
    }

    #[test]
    fn an_undefined_value_is_refused() {
        for value in [Value::Undefined, Value::Array(vec![Value::Int32(1), Value::Undefined])] {
            let root = doc! { "a": (value) }.to_raw();
            assert!(joined_values(&root, &FieldPath::parse("a").unwrap()).is_err());
        }
    }
}
