//! The keys of documents, by example. Expectations are MongoDB 6.0's.

use pando_document::{Document, Value, doc};
use pando_keyorder::Direction;

use super::*;
use crate::index_description::FieldKind;

fn fields(paths: &[&str]) -> Vec<IndexField> {
    paths
        .iter()
        .map(|path| IndexField {
            path: (*path).to_owned(),
            direction: Direction::Ascending,
            kind: FieldKind::Value,
        })
        .collect()
}

/// The key bytes of tuples of values, so that a test names the values that it expects.
fn expect(paths: &[&str], document: Document, wanted: &[Vec<Value>]) {
    let raw = document.to_raw();
    let derived = derive(&fields(paths), Sparseness::Dense, &TextOrder::SIMPLE, &raw).unwrap();
    let mut keys: Vec<Vec<u8>> = wanted
        .iter()
        .map(|tuple| {
            let mut key = Vec::new();
            for value in tuple {
                let holder = doc! { "v": value.clone() }.to_raw();
                let value = holder.get("v").unwrap().unwrap();
                pando_keyorder::encode(value, Direction::Ascending, &mut key, &mut TypeBits::new());
            }
            key
        })
        .collect();
    keys.sort();
    let have: Vec<Vec<u8>> = derived.keys.into_iter().map(|key| key.fields).collect();
    assert_eq!(have, keys, "{document:?} in {paths:?}");
}

#[test]
fn a_missing_field_counts_as_null() {
    expect(&["x"], doc! { "y": 1 }, &[vec![Value::Null]]);
    expect(&["x.y"], doc! { "x": 5 }, &[vec![Value::Null]]);
}

#[test]
fn an_array_gives_one_key_for_each_different_element() {
    expect(&["x"], doc! { "x": [1, 2, 1] }, &[vec![Value::Int32(1)], vec![Value::Int32(2)]]);
}

#[test]
fn an_empty_array_sorts_before_null() {
    let raw = doc! { "x": Value::Array(vec![]) }.to_raw();
    let empty = derive(&fields(&["x"]), Sparseness::Dense, &TextOrder::SIMPLE, &raw).unwrap().keys;
    let raw = doc! { "x": Value::Null }.to_raw();
    let null = derive(&fields(&["x"]), Sparseness::Dense, &TextOrder::SIMPLE, &raw).unwrap().keys;
    assert!(empty[0].fields < null[0].fields);
    expect(&["x.y"], doc! { "x": Value::Array(vec![]) }, &[vec![Value::Null]]);
}

#[test]
fn an_array_within_an_array_is_one_value() {
    let inner = Value::Array(vec![Value::Int32(1)]);
    expect(&["x"], doc! { "x": Value::Array(vec![inner.clone()]) }, &[vec![inner]]);
}

#[test]
fn two_paths_through_one_array_go_through_it_together() {
    expect(
        &["a.b", "a.c", "d"],
        doc! { "a": [ { "b": 1, "c": 2 }, { "b": 3 } ], "d": 9 },
        &[
            vec![Value::Int32(1), Value::Int32(2), Value::Int32(9)],
            vec![Value::Int32(3), Value::Null, Value::Int32(9)],
        ],
    );
}

#[test]
fn two_different_arrays_are_refused() {
    let raw = doc! { "a": [1], "b": [2] }.to_raw();
    let refused = derive(&fields(&["a", "b"]), Sparseness::Dense, &TextOrder::SIMPLE, &raw);
    assert!(matches!(refused, Err(WriteError::ParallelArrays { .. })));
}

#[test]
fn a_position_in_a_path_takes_that_element_only() {
    expect(&["a.1"], doc! { "a": [7, 8, 9] }, &[vec![Value::Int32(8)]]);
    expect(&["a.0.b"], doc! { "a": [ { "b": 4 }, { "b": 5 } ] }, &[vec![Value::Int32(4)]]);
}

#[test]
fn a_sparse_index_leaves_out_documents_with_none_of_its_fields() {
    let raw = doc! { "z": 1 }.to_raw();
    assert!(
        derive(&fields(&["x", "y"]), Sparseness::Sparse, &TextOrder::SIMPLE, &raw).unwrap().keys.is_empty()
    );
    let raw = doc! { "y": 1 }.to_raw();
    assert_eq!(
        derive(&fields(&["x", "y"]), Sparseness::Sparse, &TextOrder::SIMPLE, &raw).unwrap().keys.len(),
        1
    );
}

#[test]
fn an_index_into_an_array_gives_that_element_as_it_is() {
    let pair = Value::Array(vec![Value::Int32(3), Value::Int32(5)]);
    expect(&["a.0"], doc! { "a": Value::Array(vec![pair.clone()]) }, &[vec![pair.clone()]]);
    expect(&["a.0.0"], doc! { "a": Value::Array(vec![pair.clone()]) }, &[vec![Value::Int32(3)]]);
    expect(&["a.0.b"], doc! { "a": [doc! { "b": pair }] }, &[vec![Value::Int32(3)], vec![Value::Int32(5)]]);
}

#[test]
fn an_index_into_an_array_stands_beside_each_element_of_the_same_array() {
    let inner = Value::Array(vec![Value::Int32(3)]);
    let document = doc! { "a": [inner.clone(), doc! { "b": 1 }] };
    expect(&["a.0", "a.b"], document, &[vec![inner.clone(), Value::Null], vec![inner, Value::Int32(1)]]);
}

#[test]
fn a_number_that_is_an_index_and_a_field_is_refused() {
    let raw = doc! { "a": [doc! { "0": 1 }] }.to_raw();
    let refused = derive(&fields(&["a.0"]), Sparseness::Dense, &TextOrder::SIMPLE, &raw);
    assert!(matches!(refused, Err(WriteError::AmbiguousField(_))));
}

/// The array paths of each field, as MongoDB shows them in `multiKeyPaths`.
fn array_paths(paths: &[&str], document: Document) -> Vec<Vec<String>> {
    let derived = derive(&fields(paths), Sparseness::Dense, &TextOrder::SIMPLE, &document.to_raw()).unwrap();
    let multikey =
        if derived.multikey.is_empty() { vec![Multikey::NO; paths.len()] } else { derived.multikey };
    let of_path = |(path, flags): (&&str, Multikey)| flags.array_paths(path).map(str::to_owned).collect();
    paths.iter().zip(multikey).map(of_path).collect()
}

#[test]
fn only_arrays_that_give_several_keys_make_an_index_multikey_at_their_component() {
    let inner = |value: i32| doc! { "b": value };
    for (paths, document, wanted) in [
        (&["a.b"][..], doc! { "a": [inner(1)] }, &[&["a"][..]][..]),
        (&["a.b"], doc! { "a": doc! { "b": [1] } }, &[&["a.b"]]),
        (&["a.b"], doc! { "a": [doc! { "b": [1] }] }, &[&["a", "a.b"]]),
        (&["a.b.c"], doc! { "a": doc! { "b": [doc! { "c": 1 }] } }, &[&["a.b"]]),
        (&["a.b.c"], doc! { "a": [doc! { "b": doc! { "c": [1, 2] } }] }, &[&["a", "a.b.c"]]),
        (&["a.b", "a.c"], doc! { "a": [inner(1)] }, &[&["a"], &["a"]]),
        (&["a.b", "a.c"], doc! { "a": doc! { "b": [1] } }, &[&["a.b"], &[]]),
        (&["a.b", "a.b.c"], doc! { "a": doc! { "b": [doc! { "c": 1 }] } }, &[&["a.b"], &["a.b"]]),
        (&["a.0"], doc! { "a": [1, 2] }, &[&[]]),
        (&["a.0"], doc! { "a": [[1, 2]] }, &[&[]]),
        (&["a.0.b"], doc! { "a": [inner(1)] }, &[&[]]),
        (&["a.0.b"], doc! { "a": [[inner(1)]] }, &[&["a.0"]]),
        (&["a.0.b"], doc! { "a": doc! { "0": [inner(1)] } }, &[&["a.0"]]),
        (&["a.b"], doc! { "a": Value::Array(vec![]) }, &[&["a"]]),
        (&["a.b"], doc! { "a": doc! { "b": Value::Array(vec![]) } }, &[&["a.b"]]),
        (&["a"], doc! { "a": [[1]] }, &[&["a"]]),
    ] {
        let found = array_paths(paths, document.clone());
        assert_eq!(found, wanted, "{document:?} in {paths:?}");
    }
}
