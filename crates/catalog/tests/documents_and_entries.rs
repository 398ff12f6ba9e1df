//! Documents and index entries change together: random statements, each followed by the
//! check that nothing disagrees.

use std::sync::Arc;

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, CatalogError, Direction, Durability, IndexDescription, KeyRange,
    Multikey, Namespace, Operation, SharedEngine, WriteError,
};
use pando_document::{Document, RawDocument, RawValue, Value, doc};
use pando_environment::{Environment, SeededRandom};
use pando_memory::MemoryEngine;

use crate::things::{assert_sound, index, insert, namespace};

fn engine() -> SharedEngine {
    Arc::new(MemoryEngine::new(&Environment::real()))
}

fn catalog_with(engine: &SharedEngine, indexes: Vec<IndexDescription>) -> Catalog {
    catalog_of(engine, &doc! {}, indexes)
}

fn catalog_of(engine: &SharedEngine, options: &Document, indexes: Vec<IndexDescription>) -> Catalog {
    let catalog = Catalog::open(Arc::clone(engine)).unwrap();
    catalog.create_collection(&namespace(), options.to_raw(), [7; 16]).unwrap();
    catalog.create_indexes(&namespace(), indexes, &Operation::default()).unwrap();
    catalog
}

#[test]
fn random_inserts_replacements_and_removals_keep_every_index_in_step() {
    for options in [
        doc! {},
        doc! { "layout": "heap" },
        doc! { "primaryKey": { "b": 1, "u": -1, "_id": 1 } },
        doc! { "primaryKey": { "long": 1, "_id": 1 } },
    ] {
        random_history(&options);
    }
}

fn indexes_of_history() -> Vec<IndexDescription> {
    vec![
        index(doc! { "a": 1, "b": -1 }, "copies", &["clustering"]),
        index(doc! { "u": -1 }, "unique_copies", &["clustering", "unique", "sparse"]),
        index(doc! { "a": 1 }, "a_1", &[]),
        index(doc! { "a": -1, "b": 1 }, "a_-1_b_1", &[]),
        index(doc! { "t.x": 1, "t.y": -1 }, "t", &[]),
        index(doc! { "s": 1 }, "s_1", &["sparse"]),
        index(doc! { "u": 1 }, "u_1", &["unique", "sparse"]),
    ]
}

fn random_history(options: &Document) {
    let seed = 20_261_121;
    let chance = SeededRandom::new(seed);
    let catalog = catalog_of(&engine(), options, indexes_of_history());
    let value = |chance: &SeededRandom| match chance.below(6) {
        0 => Value::Null,
        1 => Value::Int32(chance.below(5) as i32),
        2 => Value::Double(chance.below(5) as f64 / 2.0),
        3 => Value::from("text"),
        4 => Value::Array(vec![Value::Int32(1), Value::Int32(chance.below(9) as i32)]),
        _ => Value::Array(vec![]),
    };
    let document = |chance: &SeededRandom, id: i32| {
        let mut made = doc! { "_id": id };
        made.push("a", value(chance));
        made.push("b", Value::Int32(chance.below(4) as i32));
        made.push("long", Value::from("x".repeat(chance.below(3) as usize * 400)));
        made.push(
            "t",
            Value::Array(vec![
                Value::Document(doc! { "x": 1, "y": chance.below(3) as i32 }),
                Value::Int32(1),
            ]),
        );
        if chance.below(2) == 0 {
            made.push("s", value(chance));
            made.push("u", Value::Int32(chance.below(40) as i32));
        }
        made
    };
    for step in 0..600 {
        let id = chance.below(60) as i32;
        let lease =
            catalog.lease("test", "things", Caller::may_block(&Operation::default())).unwrap().unwrap();
        let mut transaction = catalog.begin_write().unwrap();
        let id_key = lease.id_key(RawValue::Int32(id));
        let key = lease.locate(&*transaction, &id_key, BlockingMode::MayBlock).unwrap().unwrap_or_default();
        let old = lease.fetch(&*transaction, &key, BlockingMode::MayBlock).unwrap();
        let new = document(&chance, id).to_raw();
        let outcome = match old.as_deref().map(|bytes| RawDocument::from_bytes(bytes).unwrap()) {
            None => lease.insert(&mut transaction, &new, BlockingMode::MayBlock),
            Some(old) if chance.below(3) == 0 => {
                lease.remove(&mut transaction, &key, old, BlockingMode::MayBlock)
            }
            Some(old) => lease.replace(&mut transaction, &key, old, &new, BlockingMode::MayBlock),
        };
        match outcome {
            Ok(()) => {
                transaction.commit(Durability::None).unwrap();
            }
            Err(WriteError::DuplicateKey { index, .. }) => {
                assert!(["u_1", "unique_copies"].contains(&&*index), "seed {seed} step {step}: {index}")
            }
            Err(other) => panic!("seed {seed} step {step}: {other}"),
        }
        drop(lease);
        assert_sound(&catalog);
    }
}

#[test]
fn an_index_over_existing_documents_has_the_entries_of_one_that_was_there_before() {
    let catalog = catalog_with(&engine(), vec![]);
    for id in 0..500 {
        insert(&catalog, &doc! { "_id": id, "a": [id % 7, id % 3], "b": id }).unwrap();
    }
    catalog
        .create_indexes(
            &namespace(),
            vec![index(doc! { "a": 1 }, "a_1", &[]), index(doc! { "b": -1 }, "b", &["unique"])],
            &Operation::default(),
        )
        .unwrap();
    assert_eq!(assert_sound(&catalog), 500);
    let described = catalog.collection("test", "things").unwrap().describe_indexes();
    assert_eq!(described[1].multikey, vec![Multikey::at(0)]);
    assert_eq!(described[2].multikey, vec![Multikey::NO]);
}

#[test]
fn a_build_that_meets_a_duplicate_leaves_neither_index_nor_tree() {
    let engine = engine();
    let catalog = catalog_with(&engine, vec![]);
    insert(&catalog, &doc! { "_id": 1, "k": 1 }).unwrap();
    insert(&catalog, &doc! { "_id": 2, "k": 1.0 }).unwrap();
    let trees = engine.list_trees().unwrap().len();
    let wanted =
        vec![index(doc! { "_id": 1, "k": 1 }, "fine", &[]), index(doc! { "k": 1 }, "k_1", &["unique"])];
    let refused = catalog.create_indexes(&namespace(), wanted, &Operation::default());
    assert!(matches!(refused, Err(CatalogError::Write(WriteError::DuplicateKey { .. }))));
    assert_eq!(engine.list_trees().unwrap().len(), trees);
    assert!(catalog.collection("test", "things").unwrap().indexes().is_empty());
}

#[test]
fn collections_and_documents_are_there_when_the_catalog_is_opened_again() {
    let engine = engine();
    let catalog = catalog_with(&engine, vec![index(doc! { "a": 1, "b": -1 }, "ab", &["sparse"])]);
    insert(&catalog, &doc! { "_id": "x".repeat(3_000), "a": [1, 2], "b": "y".repeat(5_000) }).unwrap();
    let before = catalog.collection("test", "things").unwrap();
    let again = Catalog::open(Arc::clone(&engine)).unwrap();
    let after = again.collection("test", "things").unwrap();
    assert_eq!(after.describe_indexes(), before.describe_indexes());
    assert_eq!((after.uuid(), after.namespace()), (before.uuid(), before.namespace()));
    assert_eq!(assert_sound(&again), 1);
}

#[test]
fn trees_that_no_collection_refers_to_are_dropped_when_the_catalog_is_opened() {
    let engine = engine();
    drop(catalog_with(&engine, vec![]));
    engine.create_tree("index-99", &pando_catalog::TreeOptions::default()).unwrap();
    let again = Catalog::open(Arc::clone(&engine)).unwrap();
    assert!(engine.list_trees().unwrap().iter().all(|tree| tree.name != "index-99"));
    again
        .create_indexes(&namespace(), vec![index(doc! { "a": 1 }, "a_1", &[])], &Operation::default())
        .unwrap();
}

#[test]
fn a_renamed_collection_keeps_its_documents_and_a_dropped_one_does_not_come_back() {
    let engine = engine();
    let catalog = catalog_with(&engine, vec![index(doc! { "a": 1 }, "a_1", &[])]);
    insert(&catalog, &doc! { "_id": 1, "a": 1 }).unwrap();
    let other = Namespace::new("elsewhere", "other").unwrap();
    catalog.rename_collection(&namespace(), &other, &Operation::default()).unwrap();
    assert!(catalog.collection("test", "things").is_none());
    assert_eq!(catalog.databases(), vec!["elsewhere".to_owned()]);
    let collection = catalog.collection("elsewhere", "other").unwrap();
    let transaction = catalog.begin(Begin::READ).unwrap();
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    assert!(scan.next(&*transaction, BlockingMode::MayBlock).unwrap().is_some());
    catalog.drop_collection(&other, &Operation::default(), &|_| {}).unwrap();
    assert!(Catalog::open(engine).unwrap().databases().is_empty());
}

#[test]
fn the_second_of_two_transactions_that_insert_one_unique_key_is_told_of_a_conflict() {
    let catalog = catalog_with(&engine(), vec![index(doc! { "u": 1 }, "u_1", &["unique"])]);
    let lease = catalog.lease("test", "things", Caller::may_block(&Operation::default())).unwrap().unwrap();
    let mut first = catalog.begin_write().unwrap();
    let mut second = catalog.begin_write().unwrap();
    lease.insert(&mut first, &doc! { "_id": 1, "u": 5 }.to_raw(), BlockingMode::MayBlock).unwrap();
    let refused = lease.insert(&mut second, &doc! { "_id": 2, "u": 5 }.to_raw(), BlockingMode::MayBlock);
    assert!(refused.is_err_and(|error| error.is_conflict()));
    first.commit(Durability::None).unwrap();
}

#[test]
fn the_documents_of_a_heap_stand_in_the_order_of_their_inserts_also_after_a_restart() {
    let engine = engine();
    let catalog = catalog_of(&engine, &doc! { "layout": "heap" }, vec![]);
    for id in [5, 3, 9] {
        insert(&catalog, &doc! { "_id": id }).unwrap();
    }
    let duplicate = insert(&catalog, &doc! { "_id": 3.0 });
    assert!(matches!(duplicate, Err(WriteError::DuplicateKey { index, .. }) if index == "_id_"));
    drop(catalog);
    let catalog = Catalog::open(engine).unwrap();
    insert(&catalog, &doc! { "_id": 1 }).unwrap();
    let collection = catalog.collection("test", "things").unwrap();
    let transaction = catalog.begin(Begin::READ).unwrap();
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    let mut ids = Vec::new();
    while let Some((_, document)) = scan.next(&*transaction, BlockingMode::MayBlock).unwrap() {
        let id = RawDocument::from_bytes(document).unwrap().get("_id").unwrap().unwrap();
        ids.push(id.as_i64_exact().unwrap());
    }
    assert_eq!(ids, [5, 3, 9, 1]);
    assert_eq!(assert_sound(&catalog), 4);
}

#[test]
fn an_array_in_a_primary_key_is_refused_and_a_missing_field_is_null() {
    let catalog = catalog_of(&engine(), &doc! { "primaryKey": { "a.b": 1, "_id": 1 } }, vec![]);
    insert(&catalog, &doc! { "_id": 1 }).unwrap();
    for refused in [doc! { "_id": 2, "a": { "b": [1] } }, doc! { "_id": 2, "a": [{ "b": 1 }] }] {
        let outcome = insert(&catalog, &refused);
        assert!(matches!(outcome, Err(WriteError::ArrayInPrimaryKey { path }) if path == "a.b"));
    }
    assert_eq!(assert_sound(&catalog), 1);
}

/// An older program reads such entries wrong, and knows version 1 alone.
#[test]
fn an_entry_has_version_2_where_a_layout_or_a_clustering_index_needs_it() {
    for (options, options_of_index, version) in [
        (doc! {}, vec![], 1),
        (doc! { "layout": "clustered" }, vec![], 1),
        (doc! {}, vec!["clustering"], 2),
        (doc! { "layout": "heap" }, vec![], 2),
        (doc! { "primaryKey": { "a": 1, "_id": 1 } }, vec![], 2),
    ] {
        let engine = engine();
        drop(catalog_of(&engine, &options, vec![index(doc! { "n": 1 }, "n_1", &options_of_index)]));
        let tree = engine.list_trees().unwrap().into_iter().find(|tree| tree.name == "catalog").unwrap();
        let transaction = engine.begin(Begin::READ).unwrap();
        let key = pando_catalog::catalog_entry::key_of("test.things");
        let entry = transaction.get(tree.id, &key, BlockingMode::MayBlock).unwrap().unwrap();
        let entry = RawDocument::from_bytes(&entry).unwrap();
        assert_eq!(entry.get("v").unwrap().unwrap().as_i64_exact(), Some(version), "{options:?}");
        assert!(Catalog::open(engine).is_ok());
    }
}

/// The entry of the first in the index on `_id` has the primary key of the second.
#[test]
fn a_second_document_with_the_whole_primary_key_of_another_is_a_duplicate() {
    let catalog = catalog_of(&engine(), &doc! { "primaryKey": { "a": 1, "_id": 1 } }, vec![]);
    insert(&catalog, &doc! { "_id": 1, "a": 5, "n": 1 }).unwrap();
    let duplicate = insert(&catalog, &doc! { "_id": 1, "a": 5, "n": 2 });
    assert!(matches!(duplicate, Err(WriteError::DuplicateKey { index, .. }) if index == "_id_"));
    assert_eq!(assert_sound(&catalog), 1);
}
