//! Changes of the catalog whose outcome nobody knows: no tree that the catalog may name is dropped,
//! statements write by the description that the catalog has, and the store opens again.

use std::sync::Arc;

use pando_catalog::{
    BlockingMode, Caller, Catalog, CatalogError, Durability, ErrorKind, IndexDescription, Operation,
};
use pando_document::{RawDocumentBuf, Value, doc};

use crate::hooked_engine::{HookedEngine, Refusal};
use crate::things::{assert_sound, index, insert, namespace};

/// The two outcomes of a commit without an answer.
const OUTCOMES: [Refusal; 2] = [Refusal::AnswerLost, Refusal::RequestLost];

/// A store with the collection of the tests, and so many documents in it.
fn filled(documents: i32) -> (Arc<HookedEngine>, Catalog) {
    let engine = HookedEngine::shared();
    let catalog = Catalog::open(engine.as_engine()).unwrap();
    catalog.create_collection(&namespace(), RawDocumentBuf::new(), [7; 16]).unwrap();
    for id in 0..documents {
        insert(&catalog, &doc! { "_id": id, "a": id % 7 }).unwrap();
    }
    (engine, catalog)
}

fn assert_undetermined(engine: &HookedEngine, outcome: Result<(), CatalogError>) {
    assert!(!engine.refuses(), "a commit was lost");
    match outcome {
        Err(CatalogError::Storage(error)) => assert_eq!(error.kind(), ErrorKind::Undetermined),
        other => panic!("{other:?}"),
    }
}

fn is_there(catalog: &Catalog) -> bool {
    let operation = Operation::default();
    catalog.lease("test", "things", Caller::may_block(&operation)).unwrap().is_some()
}

#[test]
fn a_collection_that_a_transaction_may_have_created_is_not_created_over_again() {
    for lost in OUTCOMES {
        let engine = HookedEngine::shared();
        let catalog = Catalog::open(engine.as_engine()).unwrap();
        let operation = Operation::default();
        let caller = Caller::may_block(&operation);
        engine.lose_the_next_change_of_the_catalog(lost);
        let mut transaction = catalog.begin_session_transaction().unwrap();
        transaction.create_collection(&catalog, &namespace(), RawDocumentBuf::new(), [7; 16]).unwrap();
        let lease = transaction.lease(&catalog, &namespace(), caller).unwrap().unwrap();
        let document = doc! { "_id": 1 }.to_raw();
        lease.insert(transaction.writer(), &document, BlockingMode::MayBlock).unwrap();
        let leases = transaction.commit_leases(&catalog, caller).unwrap();
        let outcome = transaction.commit(&catalog, leases, Durability::None).map(drop);
        assert_undetermined(&engine, outcome);
        let has_happened = lost == Refusal::AnswerLost;
        let made = catalog.create_collection(&namespace(), RawDocumentBuf::new(), [8; 16]);
        let is_taken = matches!(made, Err(CatalogError::CollectionExists { .. }));
        assert_eq!(is_taken, has_happened, "{lost:?}");
        insert(&catalog, &doc! { "_id": 2 }).unwrap();
        for catalog in [&catalog, &Catalog::open(engine.as_engine()).unwrap()] {
            assert_eq!(assert_sound(catalog), if has_happened { 2 } else { 1 }, "{lost:?}");
        }
        assert_eq!(engine.tree_names().len(), 1, "the start has dropped the other tree");
    }
}

#[test]
fn writers_keep_an_index_that_may_have_been_published() {
    for (lost, documents) in OUTCOMES.into_iter().flat_map(|lost| [(lost, 0), (lost, 300)]) {
        let (engine, catalog) = filled(documents);
        engine.lose_the_next_change_of_the_catalog(lost);
        let description = index(doc! { "a": 1 }, "a_1", &[]);
        let outcome = catalog.create_indexes(&namespace(), vec![description], &Operation::default());
        assert_undetermined(&engine, outcome);
        let array = Value::Array(vec![Value::Int32(1), Value::Int32(2)]);
        insert(&catalog, &doc! { "_id": 1_000, "a": array }).unwrap();
        for catalog in [&catalog, &Catalog::open(engine.as_engine()).unwrap()] {
            let indexes = catalog.collection("test", "things").unwrap().indexes().len();
            assert_eq!(indexes, usize::from(lost == Refusal::AnswerLost), "{lost:?}");
            assert_eq!(assert_sound(catalog), documents as u64 + 1, "{lost:?}");
        }
    }
}

#[test]
fn a_load_that_may_have_taken_the_place_of_a_collection_keeps_its_trees_and_so_does_the_collection() {
    for lost in OUTCOMES {
        let (engine, catalog) = filled(2);
        let (operation, seen) = (Operation::default(), catalog.collection("test", "things").unwrap());
        let mut load = catalog.begin_replacement(&namespace(), Some(&seen), [9; 16]).unwrap();
        for id in 10..15 {
            load.insert(&doc! { "_id": id }.to_raw(), &operation).unwrap();
        }
        let loaded = load.finish(&catalog, &operation).unwrap();
        engine.lose_the_next_change_of_the_catalog(lost);
        let outcome = catalog.publish_replacement(loaded, Some(&seen), &operation, &|_| {});
        assert_undetermined(&engine, outcome.map(drop));
        insert(&catalog, &doc! { "_id": 20 }).unwrap();
        for catalog in [&catalog, &Catalog::open(engine.as_engine()).unwrap()] {
            let documents = if lost == Refusal::AnswerLost { 6 } else { 3 };
            assert_eq!(assert_sound(catalog), documents, "{lost:?}");
        }
        assert_eq!(engine.tree_names().len(), 1);
    }
}

#[test]
fn a_collection_that_may_have_been_dropped_takes_documents_only_if_it_is_there() {
    for lost in OUTCOMES {
        let (engine, catalog) = filled(2);
        engine.lose_the_next_change_of_the_catalog(lost);
        let outcome = catalog.drop_collection(&namespace(), &Operation::default(), &|_| {});
        assert_undetermined(&engine, outcome.map(drop));
        for catalog in [&catalog, &Catalog::open(engine.as_engine()).unwrap()] {
            assert_eq!(is_there(catalog), lost == Refusal::RequestLost, "{lost:?}");
        }
    }
}

#[test]
fn a_build_under_way_goes_on_where_the_outcome_of_another_change_is_unknown() {
    let (engine, catalog) = filled(300);
    let catalog = Arc::new(catalog);
    let (inside, losing) = (Arc::clone(&catalog), Arc::clone(&engine));
    engine.during_the_next_build(move || {
        losing.lose_the_next_change_of_the_catalog(Refusal::AnswerLost);
        let outcome = inside.change_options::<CatalogError>(&namespace(), &Operation::default(), |_| {
            Ok(doc! { "validationLevel": "off" }.to_raw())
        });
        assert_undetermined(&losing, outcome);
        insert(&inside, &doc! { "_id": 1_000, "a": 3 }).unwrap();
    });
    let description: IndexDescription = index(doc! { "a": 1 }, "a_1", &[]);
    catalog.create_indexes(&namespace(), vec![description], &Operation::default()).unwrap();
    for catalog in [&catalog, &Arc::new(Catalog::open(engine.as_engine()).unwrap())] {
        let collection = catalog.collection("test", "things").unwrap();
        assert_eq!((collection.indexes().len(), collection.options().iter().count()), (1, 1));
        assert_eq!(assert_sound(catalog), 301);
    }
}
