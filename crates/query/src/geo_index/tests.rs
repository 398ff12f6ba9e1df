//! Tests of the keys of documents.

use pando_catalog::index_kind::{IndexFactory, IndexMethods};
use pando_document::{Document, Value, doc};

use super::*;
use crate::partial_index::IndexKinds;

fn index(key: Document) -> IndexMethods {
    IndexKinds.define(&doc! { "v": 2, "key": (key), "name": "g" }.to_raw()).unwrap().methods
}

fn keys(methods: &IndexMethods, document: Document) -> usize {
    methods.keys_of(&document.to_raw()).unwrap().keys.len()
}

fn fault(methods: &IndexMethods, document: Document) -> GeometryFault {
    match methods.keys_of(&document.to_raw()) {
        Err(WriteError::Geometry { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

fn point(x: f64, y: f64) -> Value {
    Value::Document(doc! { "type": "Point", "coordinates": [x, y] })
}

#[test]
fn documents_without_geometry_have_no_keys() {
    let sphere = index(doc! { "l": "2dsphere", "a": 1 });
    for document in [doc! { "a": 1 }, doc! { "l": (Value::Null), "a": 1 }, doc! { "l": {} }, doc! { "l": [] }]
    {
        assert_eq!(keys(&sphere, document), 0);
    }
    let plane = index(doc! { "l": "2d" });
    for document in
        [doc! { "a": 1 }, doc! { "l": 5 }, doc! { "l": "x" }, doc! { "l": [] }, doc! { "l": [[]] }]
    {
        assert_eq!(keys(&plane, document), 0);
    }
    assert_eq!(keys(&index(doc! { "l": "2dsphere", "m": "2dsphere" }), doc! { "m": (point(1.0, 2.0)) }), 1);
}

#[test]
fn keys_are_the_combinations_of_the_parts() {
    let sphere = index(doc! { "a": 1, "l.k": "2dsphere" });
    let of = |k: Value| Value::Document(doc! { "k": k });
    let document = doc! { "a": [1, 2, 2], "l": (Value::Array(vec![of(point(1.0, 2.0)), of(point(50.0, 2.0)), of(Value::Document(doc! { "x": 1, "y": 2 }))])) };
    let generated = sphere.keys_of(&document.to_raw()).unwrap();
    assert_eq!(generated.keys.len(), 4, "two values, and two places of which one comes twice");
    assert!(generated.keys.is_sorted() && generated.multikey.iter().all(|flag| flag.has_arrays()));
    let plane = index(doc! { "l": "2d", "a": 1 });
    assert_eq!(keys(&plane, doc! { "l": [[1, 2], [3, 4]], "a": [] }), 2);
    assert_eq!(keys(&plane, doc! { "l": { "x": 1, "y": 2 } }), 1);
}

#[test]
fn a_document_that_has_too_many_keys_is_refused() {
    let numbers = |count: i32| Value::Array((0..count).map(Value::Int32).collect());
    let pairs =
        Value::Array((0..2_000).map(|at| Value::Array(vec![(at % 180).into(), (at % 90).into()])).collect());
    let plane = index(doc! { "l": "2d", "a": 1 });
    let document = doc! { "l": (pairs), "a": (numbers(2_000)) }.to_raw();
    assert!(matches!(plane.keys_of(&document), Err(WriteError::KeysTooLarge { .. })));
}

#[test]
fn values_that_are_no_geometry_are_refused() {
    let sphere = index(doc! { "l": "2dsphere" });
    for value in [Value::Int32(5), Value::from("x"), Value::Array(vec![Value::Int32(1)]), point(1.0, 200.0)] {
        assert_eq!(fault(&sphere, doc! { "l": (value) }), GeometryFault::NotOnSphere);
    }
    assert_eq!(fault(&sphere, doc! { "l": [[1, 2], [3, 4]] }), GeometryFault::NotOnSphere);
    let plane = index(doc! { "l": "2d" });
    assert_eq!(fault(&plane, doc! { "l": [1] }), GeometryFault::OneCoordinate);
    assert_eq!(fault(&plane, doc! { "l": [1, "a"] }), GeometryFault::NoPair);
    assert_eq!(fault(&plane, doc! { "l": ["a", 1] }), GeometryFault::NoListOfPairs);
    assert_eq!(fault(&plane, doc! { "l": [200, 1] }), GeometryFault::OutOfBounds);
}

#[test]
fn options_out_of_range_make_no_index() {
    for option in [("finestIndexedLevel", 31), ("coarsestIndexedLevel", 25)] {
        let mut specification = doc! { "v": 2, "key": { "l": "2dsphere" }, "name": "g" };
        specification.push(option.0, option.1);
        assert!(IndexKinds.define(&specification.to_raw()).is_err());
    }
    let specification = doc! { "v": 2, "key": { "l": "2d" }, "name": "g", "bits": 40 };
    assert!(IndexKinds.define(&specification.to_raw()).is_err());
}
