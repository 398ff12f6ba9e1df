//! A loaded collection takes the place of another one, whole or not at all.

use std::sync::Arc;

use pando_catalog::{
    Begin, BlockingMode, Catalog, CatalogError, Collection, Direction, Durability, KeyRange, Operation,
};
use pando_document::{RawDocumentBuf, doc};

use crate::counted::{DATABASE, NAMES, engines, namespace};

const NAME: &str = NAMES[0];

fn insert(catalog: &Catalog, collection: &Collection, ids: std::ops::Range<i32>) {
    let mut transaction = catalog.begin_write().unwrap();
    for id in ids {
        let document = doc! { "_id": id, "a": (-id) }.to_raw();
        collection.insert(&mut transaction, &document, BlockingMode::MayBlock).unwrap();
    }
    transaction.commit(Durability::Logged).unwrap();
}

fn count(catalog: &Catalog) -> usize {
    let Some(collection) = catalog.collection(DATABASE, NAME) else { return 0 };
    let reader = catalog.begin(Begin::READ).unwrap();
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    let mut found = 0;
    while scan.next(&*reader, BlockingMode::MayBlock).unwrap().is_some() {
        found += 1;
    }
    let counted = catalog.counts(&collection, &Operation::default()).unwrap();
    assert_eq!(counted.documents, found as u64);
    found
}

fn replace(
    catalog: &Catalog,
    seen: Option<&Arc<Collection>>,
    ids: std::ops::Range<i32>,
) -> Result<(), CatalogError> {
    let operation = Operation::default();
    let mut load = catalog.begin_replacement(&namespace(NAME), seen.map(|seen| &**seen), [7; 16])?;
    for id in ids {
        load.insert(&doc! { "_id": id, "a": id }.to_raw(), &operation).unwrap();
    }
    let loaded = load.finish(catalog, &operation)?;
    catalog.publish_replacement(loaded, seen, &operation, &|_| {}).map(|_| ())
}

#[test]
fn a_replacement_has_the_documents_of_the_load_and_the_indexes_of_the_old_one() {
    for (_, engine, _folder) in engines() {
        let catalog = Catalog::open(engine).unwrap();
        let old = catalog.create_collection(&namespace(NAME), RawDocumentBuf::new(), [1; 16]).unwrap();
        insert(&catalog, &old, 0..30);
        let seen = catalog.collection(DATABASE, NAME).unwrap();
        replace(&catalog, Some(&seen), 100..110).unwrap();
        let new = catalog.collection(DATABASE, NAME).unwrap();
        assert_ne!(new.uuid(), seen.uuid());
        assert_eq!(count(&catalog), 10);
        insert(&catalog, &new, 0..5);
        assert_eq!(count(&catalog), 15);
        // And once more, into a name that nobody has.
        catalog.drop_collection(&namespace(NAME), &Operation::default(), &|_| {}).unwrap();
        replace(&catalog, None, 0..3).unwrap();
        assert_eq!(count(&catalog), 3);
    }
}

#[test]
fn a_collection_that_has_changed_meanwhile_is_not_replaced() {
    for (_, engine, _folder) in engines() {
        let catalog = Catalog::open(engine).unwrap();
        let changed = |outcome| matches!(outcome, Err(CatalogError::CollectionChanged { .. }));
        let old = catalog.create_collection(&namespace(NAME), RawDocumentBuf::new(), [1; 16]).unwrap();
        insert(&catalog, &old, 0..30);
        // Created meanwhile.
        assert!(changed(replace(&catalog, None, 0..3)));
        assert_eq!(count(&catalog), 30);
        // Dropped meanwhile.
        let seen = catalog.collection(DATABASE, NAME).unwrap();
        catalog.drop_collection(&namespace(NAME), &Operation::default(), &|_| {}).unwrap();
        assert!(changed(replace(&catalog, Some(&seen), 0..3)));
        assert_eq!(count(&catalog), 0);
    }
}

#[test]
fn a_load_with_duplicates_leaves_the_old_collection() {
    for (_, engine, _folder) in engines() {
        let catalog = Catalog::open(engine).unwrap();
        let old = catalog.create_collection(&namespace(NAME), RawDocumentBuf::new(), [1; 16]).unwrap();
        insert(&catalog, &old, 0..30);
        let operation = Operation::default();
        let mut load = catalog.begin_replacement(&namespace(NAME), Some(&old), [7; 16]).unwrap();
        for _ in 0..2 {
            load.insert(&doc! { "_id": 1 }.to_raw(), &operation).unwrap();
        }
        assert!(matches!(load.finish(&catalog, &operation), Err(CatalogError::Write(_))));
        assert_eq!(count(&catalog), 30);
    }
}
