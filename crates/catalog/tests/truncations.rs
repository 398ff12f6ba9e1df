//! Truncations: all documents and entries go in one commit, the counters are exact, and older snapshots keep
//! what they see.

use std::sync::Arc;

use pando_catalog::{
    Begin, BlockingMode, Catalog, Durability, ErrorKind, Operation, SharedEngine, WriteTransaction,
};
use pando_document::doc;
use pando_environment::{Environment, SeededRandom};

use crate::counted::{
    self, DATABASE, NAMES, assert_counted, assert_sound, engines, index, lease, namespace, some_document,
    some_options, write_some,
};

const MODE: BlockingMode = BlockingMode::MayBlock;

/// betree with range deletes of this many entries and more.
fn betree(range_delete_entries: u64) -> (SharedEngine, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = counted::small_options();
    options.range_delete_entries = range_delete_entries;
    (pando_betree::Betree::open(&Environment::real(), folder.path(), options).unwrap(), folder)
}

/// Collections of every layout, with indexes of every kind.
fn filled(engine: &SharedEngine, documents: i32) -> Catalog {
    let catalog = Catalog::open(Arc::clone(engine)).unwrap();
    let chance = SeededRandom::new(3);
    for (at, name) in NAMES.iter().enumerate() {
        catalog.create_collection(&namespace(name), some_options(at + 1), [at as u8; 16]).unwrap();
        let indexes = vec![
            index(doc! { "a": 1 }, "a_1", &[]),
            index(doc! { "s": 1 }, "s_1", &["sparse"]),
            index(doc! { "b": -1 }, "b_-1", &["clustering"]),
        ];
        catalog.create_indexes(&namespace(name), indexes, &Operation::default()).unwrap();
        let lease = lease(&catalog, name).unwrap();
        let mut transaction = catalog.begin_write().unwrap();
        for id in 0..documents {
            lease.insert(&mut transaction, &some_document(&chance, id), MODE).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
    }
    catalog
}

fn truncated(catalog: &Catalog, name: &str) -> (WriteTransaction, Option<u64>) {
    let mut transaction = catalog.begin_write().unwrap();
    let number = lease(catalog, name).unwrap().truncate(&mut transaction, MODE).unwrap();
    (transaction, number)
}

#[test]
fn all_documents_go_and_an_older_snapshot_keeps_them() {
    for entries in [1, 1_000] {
        let (engine, _folder) = betree(entries);
        let catalog = filled(&engine, 300);
        let before = catalog.begin(Begin::READ).unwrap();
        for name in NAMES {
            let (transaction, number) = truncated(&catalog, name);
            assert_eq!(number, Some(300));
            transaction.commit(Durability::None).unwrap();
        }
        assert_eq!(assert_counted(&catalog, &*before), 600);
        assert_eq!(assert_sound(&catalog), 0);
        drop(before);
        let chance = SeededRandom::new(8);
        for _ in 0..50 {
            write_some(&catalog, &chance, 0..40);
            assert_sound(&catalog);
        }
        let documents = assert_sound(&catalog);
        drop(catalog);
        assert_eq!(assert_sound(&Catalog::open(engine).unwrap()), documents);
    }
}

#[test]
fn random_histories_with_truncations_keep_the_counters() {
    let (engine, _folder) = betree(1);
    let catalog = filled(&engine, 20);
    let chance = SeededRandom::new(5);
    for step in 0..200 {
        if step % 7 == 0 {
            let (transaction, number) = truncated(&catalog, NAMES[step / 7 % 2]);
            assert!(number.is_some());
            match step % 3 {
                0 => transaction.rollback(),
                _ => _ = transaction.commit(Durability::None).unwrap(),
            }
        } else {
            write_some(&catalog, &chance, 0..40);
        }
        assert_sound(&catalog);
    }
}

#[test]
fn a_truncation_conflicts_with_writers_and_leaves_all_documents_then() {
    let (engine, _folder) = betree(1);
    let catalog = filled(&engine, 100);
    let chance = SeededRandom::new(5);
    let one = lease(&catalog, "one").unwrap();
    let insert = |writer: &mut WriteTransaction, id| one.insert(writer, &some_document(&chance, id), MODE);

    // A writer that is under way.
    let mut writer = catalog.begin_write().unwrap();
    insert(&mut writer, 200).unwrap();
    let mut eraser = catalog.begin_write().unwrap();
    let refused = one.truncate(&mut eraser, MODE).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    eraser.rollback();
    // One that commits after the snapshot of the truncation.
    let mut eraser = catalog.begin_write().unwrap();
    writer.commit(Durability::None).unwrap();
    assert_eq!(one.truncate(&mut eraser, MODE).unwrap_err().kind(), ErrorKind::Conflict);
    eraser.rollback();
    assert_eq!(assert_sound(&catalog), 201);
    // One that writes while the truncation is under way, and one whose snapshot is from before.
    let mut early = catalog.begin_write().unwrap();
    let (eraser, _) = truncated(&catalog, "one");
    let mut writer = catalog.begin_write().unwrap();
    assert!(insert(&mut writer, 300).unwrap_err().is_conflict());
    writer.rollback();
    eraser.commit(Durability::None).unwrap();
    assert!(insert(&mut early, 300).unwrap_err().is_conflict());
    early.rollback();
    assert_eq!(assert_sound(&catalog), 100);
}

#[test]
fn an_engine_that_would_delete_one_by_one_is_left_to_the_caller() {
    for (name, engine, _folder) in engines() {
        let catalog = filled(&engine, 5);
        let (transaction, number) = truncated(&catalog, "one");
        assert_eq!(number.is_some(), name == "betree", "{name}");
        transaction.rollback();
        assert_eq!(assert_sound(&catalog), 10);
    }
}

#[test]
fn a_capped_collection_is_left_to_the_caller() {
    let (engine, _folder) = betree(1);
    let catalog = Catalog::open(engine).unwrap();
    let options = doc! { "capped": true, "size": 4096 };
    catalog.create_collection(&namespace("capped"), options.to_raw(), [1; 16]).unwrap();
    let (transaction, number) = truncated(&catalog, "capped");
    assert_eq!(number, None);
    transaction.rollback();
    assert!(catalog.collection(DATABASE, "capped").is_some());
}
