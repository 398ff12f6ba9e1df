//! Tests of the keys of wildcard indexes.

use pando_catalog::index_kind::IndexFactory;
use pando_document::{Document, Value, doc};

use super::*;
use crate::partial_index::IndexKinds;

fn list(values: Vec<Value>) -> Value {
    Value::Array(values)
}

/// The values of each part of each key.
fn keys_of(specification: &Document, document: &Document) -> Vec<Vec<Value>> {
    let methods = IndexKinds.define(&specification.to_raw()).unwrap().methods;
    let keys = methods.keys_of(&document.to_raw()).unwrap().keys;
    let directions = methods.generator.directions();
    keys.iter().map(|key| pando_keyorder::decode(&key.fields, &key.type_bits, directions).unwrap()).collect()
}

fn of_all(document: &Document) -> Vec<(String, Value)> {
    let specification = doc! { "v": 2, "key": { "$**": 1 }, "name": "w" };
    let pair = |parts: Vec<Value>| match <[Value; 2]>::try_from(parts) {
        Ok([Value::String(path), value]) => (path, value),
        other => panic!("no path and value: {other:?}"),
    };
    keys_of(&specification, document).into_iter().map(pair).collect()
}

fn keys(pairs: &[(&str, Value)]) -> Vec<(String, Value)> {
    pairs.iter().map(|(path, value)| ((*path).to_owned(), value.clone())).collect()
}

#[test]
fn documents_and_arrays_are_followed_to_their_leaves() {
    let document = doc! {
        "_id": 1, "a": (list(vec![doc! { "b": 1 }.into(), Value::Int32(5), list(vec![Value::Int32(7)])])),
        "c": { "d": { "e": "x" }, "n": (Value::Null) }
    };
    let wanted = keys(&[
        ("a", Value::Int32(5)),
        ("a", list(vec![Value::Int32(7)])),
        ("a.b", Value::Int32(1)),
        ("c.d.e", "x".into()),
        ("c.n", Value::Null),
    ]);
    assert_eq!(of_all(&document), wanted);
}

#[test]
fn an_empty_value_has_a_key_of_its_own() {
    let document =
        doc! { "a": {}, "b": (list(vec![])), "c": { "x.y": 1 }, "d": (list(vec![doc! {}.into()])), "e.f": 1 };
    let empty = || Value::from(doc! {});
    let wanted = keys(&[("a", empty()), ("b", Value::Undefined), ("c", empty()), ("d", empty())]);
    assert_eq!(of_all(&document), wanted);
    assert_eq!(of_all(&doc! { "_id": { "a": 1 } }), keys(&[]));
}

#[test]
fn a_projection_leaves_out_scalars_on_the_way_only_if_it_includes() {
    let document = doc! { "a": (list(vec![Value::Int32(5), doc! { "b": 1, "c": 2 }.into()])), "z": 1 };
    let of = |projection: Document| {
        let specification =
            doc! { "v": 2, "key": { "$**": 1 }, "name": "w", "wildcardProjection": (projection) };
        keys_of(&specification, &document).len()
    };
    assert_eq!(of(doc! { "a.b": 1 }), 1);
    assert_eq!(of(doc! { "a.b": 0 }), 3);
    assert_eq!(of(doc! { "a": { "b": 0, "c": 0 } }), 3, "the element without its fields has a key");
}

#[test]
fn a_compound_index_has_every_document() {
    let specification = doc! {
        "v": 2, "key": { "r": 1, "a.$**": -1, "s": -1 }, "name": "w"
    };
    let parts = |document: Document| keys_of(&specification, &document);
    assert_eq!(
        parts(doc! { "r": 1, "a": { "x": 7 } }),
        vec![vec![Value::Int32(1), "a.x".into(), Value::Int32(7), Value::Null]]
    );
    assert_eq!(parts(doc! { "s": "t" }), vec![vec![Value::Null, Value::MinKey, Value::MinKey, "t".into()]]);
    let methods = IndexKinds.define(&specification.to_raw()).unwrap().methods;
    let refused = methods.keys_of(&doc! { "r": (list(vec![])) }.to_raw());
    assert!(matches!(refused, Err(WriteError::ArrayBesideWildcard { path }) if path == "r"));
}

#[test]
fn arrays_are_known_by_their_paths() {
    let methods =
        IndexKinds.define(&doc! { "v": 2, "key": { "$**": 1 }, "name": "w" }.to_raw()).unwrap().methods;
    let multikey = |document: Document| methods.keys_of(&document.to_raw()).unwrap().multikey;
    assert_eq!(multikey(doc! { "a": { "b": 1 } }), []);
    let met = multikey(doc! { "a": { "b": (list(vec![])) } });
    assert_eq!(met, [Multikey::of_array_path("a.b")]);
}

#[test]
fn long_paths_do_not_multiply() {
    let long = "p".repeat(100_000);
    let mut inner = Document::new();
    (0..1_000).for_each(|at| inner.push(format!("f{at}"), at));
    let mut document = Document::new();
    document.push(long, Value::Document(inner));
    let keys = of_all(&document);
    assert_eq!((keys.len(), keys[0].0.len()), (1, PATH_BYTES_MAX));
}
