//! Scans of index entries that pass over runs of equal entries, forwards and backwards.

use std::sync::Arc;

use pando_catalog::{Begin, BlockingMode, Catalog, Collection, Direction, KeyRange, SharedEngine};
use pando_document::{RawDocumentBuf, doc};
use pando_environment::Environment;
use pando_memory::MemoryEngine;

use crate::things::{assert_sound, index, insert, namespace};

const DOCUMENTS: i32 = 3_000;
const VALUES: i32 = 7;

fn catalog() -> (Catalog, Arc<Collection>) {
    let engine: SharedEngine = Arc::new(MemoryEngine::new(&Environment::real()));
    let catalog = Catalog::open(engine).unwrap();
    catalog.create_collection(&namespace(), RawDocumentBuf::new(), [7; 16]).unwrap();
    let indexes = vec![
        index(doc! { "a": 1 }, "a_1", &[]),
        index(doc! { "a": -1, "_id": 1 }, "a_-1__id_1", &["unique"]),
    ];
    catalog.create_indexes(&namespace(), indexes, &pando_catalog::Operation::default()).unwrap();
    let collection = catalog.collection(namespace().database(), namespace().collection()).unwrap();
    for id in 0..DOCUMENTS {
        insert(&catalog, &doc! { "_id": id, "a": (id % VALUES) }).unwrap();
    }
    assert_eq!(assert_sound(&catalog), DOCUMENTS as u64);
    (catalog, collection)
}

#[test]
fn a_run_of_equal_entries_is_passed_as_far_as_the_batch_reaches() {
    let (catalog, collection) = catalog();
    let transaction = catalog.begin(Begin::READ).unwrap();
    let a = collection.index("a_1").unwrap();
    let mut scan = collection.scan_index(a, KeyRange::all(), Direction::Forward);
    let (mut runs, mut entries) = (0, 0);
    while let Some(entry) = scan.next(&*transaction, BlockingMode::MayBlock).unwrap() {
        let field_bytes = entry.fields.len();
        runs += 1;
        entries += 1 + scan.pass_equal(field_bytes);
    }
    assert_eq!(entries, DOCUMENTS as usize);
    assert!(runs < 40, "{runs} runs of {VALUES} values");
    // The rest of a batch, and whole batches.
    let mut scan = collection.scan_index(a, KeyRange::all(), Direction::Backward);
    scan.next(&*transaction, BlockingMode::MayBlock).unwrap().unwrap();
    let mut passed = 1 + scan.pass_rest();
    loop {
        match scan.pass_batch(&*transaction, BlockingMode::MayBlock).unwrap() {
            0 => break,
            more => passed += more,
        }
    }
    assert_eq!(passed, DOCUMENTS as usize);
}

#[test]
fn each_value_of_the_first_field_is_met_once_where_the_others_are_skipped() {
    let (catalog, collection) = catalog();
    let transaction = catalog.begin(Begin::READ).unwrap();
    for name in ["a_1", "a_-1__id_1"] {
        let index = collection.index(name).unwrap();
        let whole = || KeyRange::all();
        for direction in [Direction::Forward, Direction::Backward] {
            let mut scan = collection.scan_index(index, whole(), direction);
            // A scan that begins again keeps nothing of what it skipped.
            for _ in 0..2 {
                let mut seen = Vec::new();
                while let Some(entry) = scan.next(&*transaction, BlockingMode::MayBlock).unwrap() {
                    let first = pando_keyorder::parts_length(entry.fields, &index.directions()[..1]).unwrap();
                    seen.push(entry.fields[..first].to_vec());
                    scan.skip_fields(1);
                }
                assert_eq!(seen.len(), VALUES as usize, "{name} {direction:?}");
                assert!(match direction {
                    Direction::Forward => seen.is_sorted_by(|a, b| a < b),
                    Direction::Backward => seen.is_sorted_by(|a, b| a > b),
                });
                scan.restart(whole());
            }
        }
    }
}
