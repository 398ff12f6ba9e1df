//! Sort keys order documents as MongoDB does; the sorter keeps order, limit and memory.

use std::path::Path;

use pando_catalog::{QueryMemory, ScratchSpace};
use pando_document::{Document, Value, doc};
use pando_environment::Environment;

use super::*;
use crate::memory::{DiskUse, StageMemory};
use crate::{ErrorCode, QueryError};

fn no_check() -> Result<(), QueryError> {
    Ok(())
}

fn in_memory(limit: Option<u64>) -> Sorter {
    Sorter::new(limit, &StageMemory::unlimited(DiskUse::Forbidden))
}

/// Primary keys and documents, in order.
fn all(sorter: &mut Sorter) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(next) = sorter.next(&mut no_check).unwrap() {
        all.push((next.primary_key.to_vec(), next.document.to_vec()));
    }
    all
}

fn pattern(document: Document) -> SortPattern {
    SortPattern::parse(&document.to_raw()).unwrap()
}

/// The `_id`s of the documents in order.
fn order(sort: Document, documents: &[Document]) -> Vec<i32> {
    let pattern = pattern(sort);
    let mut sorter = in_memory(None);
    for document in documents {
        let raw = document.to_raw();
        let mut key = Vec::new();
        pattern.append_key(&raw, &mut key).unwrap();
        sorter.push(&key, b"", raw.as_bytes(), &mut no_check).unwrap();
    }
    all(&mut sorter)
        .iter()
        .map(|(_, document)| {
            let document = pando_document::RawDocument::from_bytes(document).unwrap();
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
    let mut sorter = in_memory(Some(3));
    for (place, key) in [5u8, 1, 4, 1, 3, 1, 2].into_iter().enumerate() {
        sorter.push(&[key], &[u8::try_from(place).unwrap()], b"", &mut no_check).unwrap();
    }
    let places: Vec<u8> = all(&mut sorter).iter().map(|(key, _)| key[0]).collect();
    assert_eq!(places, [1, 3, 5]);
}

#[test]
fn too_much_for_memory_is_an_error_unless_only_few_are_wanted() {
    let document = vec![0; 1000];
    let mut every = in_memory(None).with_memory(10_000);
    let push = |sorter: &mut Sorter, key: u8| sorter.push(&[key], b"", &document, &mut no_check);
    let error = (0..100).find_map(|key| push(&mut every, key).err()).unwrap();
    assert_eq!(error.code(), Some(ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed));
    let mut few = in_memory(Some(2)).with_memory(10_000);
    assert!((0..100).all(|key| push(&mut few, key).is_ok()));
}

#[test]
fn with_and_without_a_limit_the_order_is_the_same_whatever_the_memory() {
    let simulation = Environment::simulated(1);
    let scratch = ScratchSpace::open(&simulation.environment, Path::new("/scratch")).unwrap();
    for budget in [0, 10_000, 100_000, 10 << 20] {
        let memory = QueryMemory::with_scratch(budget, &scratch);
        let stage = StageMemory { account: memory.account(), disk_use: DiskUse::Allowed };
        let sorted = |limit: Option<u64>| {
            let mut sorter = Sorter::new(limit, &stage);
            for number in 0..2_000u32 {
                let key = (number.wrapping_mul(0x9E37_79B9) >> 24).to_be_bytes();
                let document = vec![7; number as usize % 90];
                sorter.push(&key, &number.to_be_bytes(), &document, &mut no_check).unwrap();
            }
            let all = all(&mut sorter);
            assert_eq!(stage.account.bytes(), 0, "a sorter at its end may wait in a cursor");
            all
        };
        let whole = sorted(None);
        assert_eq!(whole.len(), 2_000);
        let key_of = |primary: &[u8]| {
            let number = u32::from_be_bytes(primary.try_into().unwrap());
            (number.wrapping_mul(0x9E37_79B9) >> 24, number)
        };
        assert!(whole.is_sorted_by_key(|(primary, _)| key_of(primary)));
        for limit in [0, 1, 77, 1_999, 2_000, 5_000] {
            let expected = &whole[..whole.len().min(limit as usize)];
            assert_eq!(sorted(Some(limit)), expected, "{budget} bytes, limit {limit}");
        }
        assert_eq!(memory.figures().spills > 0, budget < 10 << 20, "{budget} bytes");
        assert_eq!((memory.figures().held_bytes, scratch.figures().files), (0, 0));
    }
}

#[test]
fn without_disk_use_a_sort_ends_where_the_memory_of_queries_is_used_up() {
    let simulation = Environment::simulated(1);
    let scratch = ScratchSpace::open(&simulation.environment, Path::new("/scratch")).unwrap();
    let memory = QueryMemory::with_scratch(100_000, &scratch);
    let stage = StageMemory { account: memory.account(), disk_use: DiskUse::Forbidden };
    for limit in [None, Some(10_000)] {
        let mut sorter = Sorter::new(limit, &stage);
        let refused = (0..1_000u32)
            .find_map(|number| sorter.push(&number.to_be_bytes(), b"", &[7; 1_000], &mut no_check).err());
        let error = refused.unwrap();
        assert_eq!(error.code(), Some(ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed));
        assert!(error.message().contains("the memory of all queries is used up"), "{error}");
    }
    assert_eq!((memory.figures().held_bytes, memory.figures().spills), (0, 0));
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
