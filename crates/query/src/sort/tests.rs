//! Sort keys order documents as MongoDB does; the sorter keeps order, limit and memory.

use pando_catalog::Bytes;
use pando_document::{Document, Value, doc};

use super::*;
use crate::ErrorCode;

fn pattern(document: Document) -> SortPattern {
    SortPattern::parse(&document.to_raw()).unwrap()
}

/// The `_id`s of the documents in order.
fn order(sort: Document, documents: &[Document]) -> Vec<i32> {
    let pattern = pattern(sort);
    let mut sorter = Sorter::new(None, DiskUse::Forbidden);
    for document in documents {
        let raw = document.to_raw();
        let mut key = Vec::new();
        pattern.append_key(&raw, &mut key).unwrap();
        sorter.push(&key, b"", Bytes::from(raw.into_vec())).unwrap();
    }
    std::iter::from_fn(|| sorter.pop())
        .map(|(_, document)| {
            let document = pando_document::RawDocument::from_bytes(&document).unwrap();
            i32::try_from(document.get("_id").unwrap().unwrap().as_i64_exact().unwrap()).unwrap()
        })
        .collect()
}

/// The fixture of docs whose order was measured on MongoDB 6.0.
fn fixture() -> Vec<Document> {
    vec![
        doc! { "_id": 1, "x": 1 },
        doc! { "_id": 2, "x": [] },
        doc! { "_id": 3, "x": (Value::Null) },
        doc! { "_id": 4 },
        doc! { "_id": 5, "x": [1, 5] },
        doc! { "_id": 6, "x": [[1]] },
        doc! { "_id": 7, "x": [(Value::Null)] },
        doc! { "_id": 8, "x": (f64::NAN) },
        doc! { "_id": 9, "x": { "y": 1 } },
        doc! { "_id": 10, "x": [{ "y": (Value::Null) }] },
        doc! { "_id": 11, "x": [{ "z": 1 }] },
    ]
}

#[test]
fn arrays_sort_by_their_least_element_and_descending_by_their_greatest() {
    assert_eq!(order(doc! { "x": 1 }, &fixture()), [2, 3, 4, 7, 8, 1, 5, 10, 9, 11, 6]);
    assert_eq!(order(doc! { "x": -1 }, &fixture()), [6, 11, 9, 10, 5, 1, 8, 3, 4, 7, 2]);
}

#[test]
fn paths_through_one_array_go_through_it_together() {
    let documents = [
        doc! { "_id": 1, "a": [{ "b": 1, "c": 9 }, { "b": 2, "c": 0 }] },
        doc! { "_id": 2, "a": [{ "b": 1, "c": 5 }] },
    ];
    assert_eq!(order(doc! { "a.b": 1, "a.c": 1 }, &documents), [2, 1]);
    assert_eq!(order(doc! { "a.c": 1 }, &documents), [1, 2]);
}

#[test]
fn two_arrays_in_one_pattern_are_refused() {
    let document = doc! { "a": [1], "b": [2] }.to_raw();
    let error = pattern(doc! { "a": 1, "b": 1 }).append_key(&document, &mut Vec::new()).unwrap_err();
    assert_eq!(error.message(), "cannot sort with keys that are parallel arrays");
}

#[test]
fn a_sorter_with_a_limit_gives_the_least_in_order_and_keeps_the_earlier_of_equals() {
    let mut sorter = Sorter::new(Some(3), DiskUse::Forbidden);
    for (place, key) in [5u8, 1, 4, 1, 3, 1, 2].into_iter().enumerate() {
        sorter.push(&[key], &[u8::try_from(place).unwrap()], Bytes::new()).unwrap();
    }
    let places: Vec<u8> = std::iter::from_fn(|| sorter.pop()).map(|(key, _)| key[0]).collect();
    assert_eq!(places, [1, 3, 5]);
}

#[test]
fn too_much_for_memory_is_an_error_unless_only_few_are_wanted() {
    let document = Bytes::from(vec![0; 1000]);
    let mut all = Sorter::new(None, DiskUse::Forbidden).with_memory(10_000);
    let error = (0..100u8).find_map(|key| all.push(&[key], b"", document.clone()).err()).unwrap();
    assert_eq!(error.code(), Some(ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed));
    let mut few = Sorter::new(Some(2), DiskUse::Forbidden).with_memory(10_000);
    assert!((0..100u8).all(|key| few.push(&[key], b"", document.clone()).is_ok()));
}

#[test]
fn malformed_patterns_are_refused_in_the_words_of_mongodb() {
    let message = |document: Document| Sort::parse(&document.to_raw()).unwrap_err().message().to_owned();
    let direction = "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
    assert_eq!(message(doc! { "a": 2 }), direction);
    assert_eq!(message(doc! { "a": (f64::NAN) }), direction);
    assert_eq!(message(doc! { "a": "asc" }), "Illegal key in $sort specification: a: \"asc\"");
    assert_eq!(message(doc! { "a.": 1 }), "FieldPath must not end with a '.'.");
    assert_eq!(
        message(doc! { "$natural": 1, "a": 1 }),
        "Cannot include '$natural' in compound sort: { $natural: 1, a: 1 }"
    );
    assert_eq!(
        message(doc! { "a": { "x": 1 } }),
        "$meta is the only expression supported by $sort right now"
    );
    assert!(Sort::parse(&doc! { "a": (-1.5) }.to_raw()).is_ok());
    assert!(matches!(Sort::parse(&doc! {}.to_raw()), Ok(Sort::Unordered)));
}

#[test]
fn a_pattern_of_id_alone_takes_arrays_whole() {
    let ids = [
        Value::Array(vec![]),
        Value::Null,
        Value::Int32(1),
        Value::Array(vec![Value::Int32(0)]),
        Value::from("a"),
    ];
    let key_of = |sort: Document, id: &Value| {
        let mut key = Vec::new();
        let document = doc! { "_id": id.clone(), "at": 1 };
        pattern(sort).append_key(&document.to_raw(), &mut key).unwrap();
        key
    };
    let order = |sort: &Document| {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|at| key_of(sort.clone(), &ids[*at]));
        order
    };
    assert_eq!(order(&doc! { "_id": 1 }), [1, 2, 4, 0, 3]);
    assert_eq!(order(&doc! { "_id": -1 }), [3, 0, 4, 2, 1]);
    // Beside another path they are gone through.
    assert_eq!(order(&doc! { "_id": 1, "at": 1 }), [0, 1, 3, 2, 4]);
}
