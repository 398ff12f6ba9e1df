//! Schemas asked of documents.

use pando_document::{Document, doc};

use crate::expression::ParseScope;
use crate::filter::Filter;

fn matches(schema: Document, document: Document) -> bool {
    let filter = doc! { "$jsonSchema": (pando_document::Value::Document(schema)) }.to_raw();
    let filter = Filter::parse(&filter, &ParseScope::at(0)).unwrap();
    filter.matches(&document.to_raw()).unwrap()
}

#[test]
fn a_rule_is_kept_by_values_of_other_types() {
    let schema =
        doc! { "properties": { "a": { "minimum": 5, "minLength": 2, "minItems": 1, "minProperties": 1 } } };
    for (document, wanted) in [
        (doc! { "a": 5 }, true),
        (doc! { "a": 4 }, false),
        (doc! { "a": "x" }, false),
        (doc! { "a": "éé" }, true),
        (doc! { "a": [] }, false),
        (doc! { "a": {} }, false),
        (doc! { "a": true }, true),
        (doc! {}, true),
    ] {
        assert_eq!(matches(schema.clone(), document.clone()), wanted, "{document:?}");
    }
}

#[test]
fn multiples_are_those_of_decimal_fractions() {
    let schema = |divisor: f64| doc! { "properties": { "a": { "multipleOf": divisor } } };
    assert!(matches(schema(0.1), doc! { "a": 0.3 }));
    assert!(!matches(schema(0.2), doc! { "a": 0.3 }));
    assert!(matches(schema(3.0), doc! { "a": 9 }));
    assert!(!matches(schema(3.0), doc! { "a": (f64::INFINITY) }));
}

#[test]
fn documents_are_equal_in_any_order_of_their_fields() {
    let schema = doc! { "properties": { "a": { "enum": [{ "x": 1, "y": 2 }], "uniqueItems": true } } };
    assert!(matches(schema.clone(), doc! { "a": { "y": 2, "x": 1 } }));
    let unique = doc! { "properties": { "a": { "uniqueItems": true } } };
    assert!(!matches(unique, doc! { "a": [{ "x": 1, "y": 2 }, { "y": 2.0, "x": 1 }] }));
}

#[test]
fn additional_properties_are_those_that_no_name_and_no_pattern_covers() {
    let schema = doc! {
        "properties": { "a": {} }, "patternProperties": { "^b": { "bsonType": "int" } },
        "additionalProperties": { "bsonType": "string" },
    };
    assert!(matches(schema.clone(), doc! { "a": 1.5, "b1": 1, "c": "x" }));
    assert!(!matches(schema.clone(), doc! { "a": 1, "b1": "x" }));
    assert!(!matches(schema, doc! { "c": 1 }));
}

#[test]
fn schemas_within_one_another_have_a_limit() {
    let mut schema = doc! {};
    for _ in 0..120 {
        schema = doc! { "not": (pando_document::Value::Document(schema)) };
    }
    let filter = doc! { "$jsonSchema": (pando_document::Value::Document(schema)) }.to_raw();
    assert!(Filter::parse(&filter, &ParseScope::at(0)).is_err());
}
