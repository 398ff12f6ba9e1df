//! Indexes that are built while statements go on: afterwards they are what an index built alone would be, or
//! not there at all.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pando_catalog::index_kind::OrdinaryIndexes;
use pando_catalog::{
    Begin, BlockingMode, BuildEnd, Caller, Catalog, CatalogError, Durability, Index, IndexDescription,
    Interruption, Multikey, Namespace, Operation, QueryMemory, ScratchSpace, Uniqueness, WriteError,
};
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, Value, doc};
use pando_environment::{Environment, SeededRandom};

use crate::hooked_engine::HookedEngine;
use crate::things::{self, index, insert, namespace};

/// A collection of so many documents, `{_id: n, a: n % 97, u: n}`.
fn filled(documents: i32) -> (Arc<HookedEngine>, Arc<Catalog>) {
    let engine = HookedEngine::shared();
    let catalog = Catalog::open(engine.as_engine()).unwrap();
    (engine, filled_in(catalog, documents))
}

/// The same documents in a catalog that is empty.
fn filled_in(catalog: Catalog, documents: i32) -> Arc<Catalog> {
    let catalog = Arc::new(catalog);
    catalog.create_collection(&namespace(), RawDocumentBuf::new(), [7; 16]).unwrap();
    for id in 0..documents {
        insert(&catalog, &doc! { "_id": id, "a": id % 97, "u": id }).unwrap();
    }
    catalog
}

/// Replaces the document of this `_id`, or removes it; inserts it where it is not there.
fn change(catalog: &Catalog, id: i32, new: Option<&Document>) -> Result<(), WriteError> {
    let lease = catalog.lease("test", "things", Caller::may_block(&Operation::default())).unwrap().unwrap();
    let mut transaction = catalog.begin_write().unwrap();
    let key = lease.locate(&*transaction, &lease.id_key(RawValue::Int32(id)), BlockingMode::MayBlock)?;
    let key = key.unwrap_or_default();
    let old = lease.fetch(&*transaction, &key, BlockingMode::MayBlock)?;
    let new = new.map(Document::to_raw);
    match (old.as_deref().map(|bytes| RawDocument::from_bytes(bytes).unwrap()), &new) {
        (None, None) => {}
        (None, Some(new)) => lease.insert(&mut transaction, new, BlockingMode::MayBlock)?,
        (Some(old), None) => lease.remove(&mut transaction, &key, old, BlockingMode::MayBlock)?,
        (Some(old), Some(new)) => lease.replace(&mut transaction, &key, old, new, BlockingMode::MayBlock)?,
    }
    transaction.commit(Durability::None)?;
    Ok(())
}

fn assert_sound(catalog: &Catalog, indexes: usize) -> u64 {
    assert_eq!(catalog.collection("test", "things").unwrap().indexes().len(), indexes);
    things::assert_sound(catalog)
}

fn several_indexes() -> Vec<IndexDescription> {
    vec![
        index(doc! { "a": 1 }, "a_1", &[]),
        index(doc! { "a": -1, "b": 1 }, "a_-1_b_1", &[]),
        index(doc! { "s": 1 }, "s_1", &["sparse"]),
        index(doc! { "u": 1 }, "u_1", &["unique"]),
    ]
}

/// Indexes whose entries hold the documents.
fn clustering_indexes() -> Vec<IndexDescription> {
    vec![
        index(doc! { "a": 1 }, "a_1", &["clustering"]),
        index(doc! { "s": 1 }, "s_1", &["sparse", "clustering"]),
        index(doc! { "u": 1 }, "u_1", &["unique", "clustering"]),
        index(doc! { "b": 1 }, "b_1", &[]),
    ]
}

/// A document whose `u` nobody else has, but which may take that of an earlier version of itself.
fn random_document(chance: &SeededRandom, id: i32) -> Document {
    let mut document = doc! { "_id": id, "u": id + 1_000_000 * chance.below(3) as i32 };
    match chance.below(5) {
        0 => document.push("a", Value::Array(vec![Value::Int32(1), Value::Int32(chance.below(9) as i32)])),
        1 => document.push("a", Value::from("x".repeat(2_000))),
        2 => document.push("a", Value::Double(chance.below(9) as f64)),
        _ => document.push("a", Value::Int32(chance.below(97) as i32)),
    }
    if chance.below(2) == 0 {
        document.push("s", Value::Int32(chance.below(50) as i32));
    }
    document
}

#[test]
fn writes_during_a_build_are_in_the_index_that_it_makes() {
    for indexes in [several_indexes(), clustering_indexes()] {
        writes_during_a_build_are_in(indexes);
    }
}

fn writes_during_a_build_are_in(indexes: Vec<IndexDescription>) {
    let (engine, catalog) = filled(3_000);
    let inside = Arc::clone(&catalog);
    engine.during_the_next_build(move || {
        let chance = SeededRandom::new(1);
        // More than fits into the last round, in which writers wait.
        for _ in 0..4_000 {
            let id = chance.below(4_000) as i32;
            let new = (chance.below(4) > 0).then(|| random_document(&chance, id));
            change(&inside, id, new.as_ref()).unwrap();
        }
    });
    let trees = engine.tree_names().len();
    catalog.create_indexes(&namespace(), indexes, &Operation::default()).unwrap();
    assert!(assert_sound(&catalog, 4) > 1_000);
    assert_eq!(engine.tree_names().len(), trees + 4, "nothing is left but the indexes");
    assert_eq!(catalog.collection("test", "things").unwrap().names_being_built().count(), 0);
}

#[test]
fn threads_that_write_all_the_time_and_small_memory_make_no_difference() {
    let engine = HookedEngine::shared();
    let simulation = Environment::simulated(1);
    let scratch = ScratchSpace::open(&simulation.environment, Path::new("/scratch")).unwrap();
    // Dozens of runs for each index.
    let memory = QueryMemory::new(&engine.as_engine(), 64 << 10, Some(Arc::clone(&scratch)));
    let catalog = Catalog::open_with(engine.as_engine(), memory.clone(), Arc::new(OrdinaryIndexes)).unwrap();
    let catalog = filled_in(catalog, 2_000);
    let (ended, writes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (catalog, ended, writes) = (&catalog, &ended, &writes);
            scope.spawn(move || {
                let chance = SeededRandom::new(thread);
                while !ended.load(Ordering::Relaxed) {
                    // Each thread has its own documents, so that there are no conflicts.
                    let id = chance.below(800) as i32 * 3 + thread as i32;
                    let new = (chance.below(4) > 0).then(|| random_document(&chance, id));
                    change(catalog, id, new.as_ref()).unwrap();
                    writes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while writes.load(Ordering::Relaxed) < 100 {
            std::thread::yield_now();
        }
        let before = writes.load(Ordering::Relaxed);
        let built = catalog.create_indexes(&namespace(), several_indexes(), &Operation::default());
        let during = writes.load(Ordering::Relaxed) - before;
        ended.store(true, Ordering::Relaxed);
        built.unwrap();
        assert!(during > 100, "writers went on during the build: {during} writes");
    });
    assert_sound(&catalog, 4);
    assert_eq!(engine.tree_names().len(), 5);
    let figures = memory.figures();
    assert!(figures.spills > 16 && figures.peak_bytes <= 64 << 10, "{figures:?}");
    assert_eq!(
        (engine.lent_bytes(), figures.held_bytes, scratch.figures().files),
        (0, 0, 0),
        "all was given back"
    );
}

#[test]
fn a_duplicate_that_comes_during_the_build_ends_it_and_writers_never_hear_of_it() {
    let (engine, catalog) = filled(500);
    let inside = Arc::clone(&catalog);
    engine.during_the_next_build(move || insert(&inside, &doc! { "_id": 1_000, "u": 17 }).unwrap());
    let trees = engine.tree_names();
    let wanted = vec![index(doc! { "a": 1 }, "a_1", &[]), index(doc! { "u": 1 }, "u_1", &["unique"])];
    let refused = catalog.create_indexes(&namespace(), wanted.clone(), &Operation::default());
    match refused {
        Err(CatalogError::Write(WriteError::DuplicateKey { index, key, .. })) => {
            assert_eq!((index.as_str(), key), ("u_1", doc! { "u": 17 }.to_raw()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(engine.tree_names(), trees, "nothing is left");
    assert_eq!(assert_sound(&catalog, 0), 501);
    // With the duplicate gone it can be built, and from then on it is kept.
    change(&catalog, 1_000, None).unwrap();
    catalog.create_indexes(&namespace(), wanted, &Operation::default()).unwrap();
    let refused = insert(&catalog, &doc! { "_id": 1_000, "u": 17 });
    assert!(matches!(refused, Err(WriteError::DuplicateKey { .. })));
    assert_eq!(assert_sound(&catalog, 2), 500);
}

#[test]
fn a_unique_key_that_goes_from_one_document_to_another_during_the_build_is_no_duplicate() {
    let (engine, catalog) = filled(100);
    let inside = Arc::clone(&catalog);
    engine.during_the_next_build(move || {
        // 1 and 2 change places, 3 gives its key to a new document, 4 goes away and comes back, 5 is there
        // twice for a moment.
        for (id, u) in [(1, -1), (2, 1), (1, 2), (3, -3)] {
            change(&inside, id, Some(&doc! { "_id": id, "u": u })).unwrap();
        }
        insert(&inside, &doc! { "_id": 203, "u": 3 }).unwrap();
        change(&inside, 4, None).unwrap();
        insert(&inside, &doc! { "_id": 4, "u": 4.0 }).unwrap();
        insert(&inside, &doc! { "_id": 205, "u": 5 }).unwrap();
        change(&inside, 205, None).unwrap();
    });
    catalog
        .create_indexes(&namespace(), vec![index(doc! { "u": 1 }, "u_1", &["unique"])], &Operation::default())
        .unwrap();
    assert_eq!(assert_sound(&catalog, 1), 101);
}

#[test]
fn a_collection_dropped_during_the_build_ends_it() {
    let (engine, catalog) = filled(500);
    let inside = Arc::clone(&catalog);
    engine.during_the_next_build(move || {
        inside.drop_collection(&namespace(), &Operation::default(), &|_| {}).unwrap();
        // Another of its name has nothing to do with the build.
        inside.create_collection(&namespace(), RawDocumentBuf::new(), [8; 16]).unwrap();
        insert(&inside, &doc! { "_id": 1, "a": 1 }).unwrap();
    });
    let ended = catalog.create_indexes(&namespace(), several_indexes(), &Operation::default());
    let reason = BuildEnd::CollectionDropped;
    assert!(matches!(ended, Err(CatalogError::IndexBuildEnded { reason: found }) if found == reason));
    assert_eq!(engine.tree_names().len(), 1, "the new collection");
    assert_eq!(assert_sound(&catalog, 0), 1);
}

#[test]
fn an_interrupted_build_leaves_nothing_and_another_begins_at_once() {
    let (engine, catalog) = filled(500);
    let operation = Arc::new(Operation::default());
    let inside = Arc::clone(&operation);
    engine.during_the_next_build(move || inside.interrupt(Interruption::Killed));
    let ended = catalog.create_indexes(&namespace(), several_indexes(), &operation);
    assert!(matches!(ended, Err(CatalogError::Interrupted(Interruption::Killed))), "{ended:?}");
    assert_eq!(engine.tree_names().len(), 1);
    assert_eq!(assert_sound(&catalog, 0), 500);
    operation.begin();
    catalog.create_indexes(&namespace(), several_indexes(), &operation).unwrap();
    assert!(assert_sound(&catalog, 4) >= 500);
}

#[test]
fn a_wait_for_a_collection_that_another_statement_holds_can_be_interrupted() {
    let (_engine, catalog) = filled(1);
    let operation = Operation::default();
    let lease = catalog.lease("test", "things", Caller::may_block(&operation)).unwrap();
    let mut asked = 0;
    let dropped = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let operation = Operation::default();
            let asked = std::sync::atomic::AtomicU64::new(0);
            let dropped = catalog.drop_collection(&namespace(), &operation, &|_| {
                if asked.fetch_add(1, Ordering::Relaxed) == 2 {
                    operation.interrupt(Interruption::TimeLimit);
                }
            });
            (dropped.map(|_| ()), asked.into_inner())
        });
        let (dropped, count) = waiting.join().unwrap();
        asked += count;
        dropped
    });
    assert!(matches!(dropped, Err(CatalogError::Interrupted(Interruption::TimeLimit))), "{dropped:?}");
    assert_eq!(asked, 3, "it asks the statements to end before each wait");
    drop(lease);
    catalog.drop_collection(&namespace(), &operation, &|_| {}).unwrap();
}

#[test]
fn an_index_dropped_during_the_build_ends_it_and_what_is_built_with_it() {
    let (engine, catalog) = filled(500);
    let inside = Arc::clone(&catalog);
    engine.during_the_next_build(move || {
        inside.drop_index(&namespace(), "s_1", &Operation::default()).unwrap();
        insert(&inside, &doc! { "_id": 1_000, "a": 1, "u": 1 }).unwrap();
    });
    let ended = catalog.create_indexes(&namespace(), several_indexes(), &Operation::default());
    let reason = BuildEnd::IndexDropped;
    assert!(matches!(ended, Err(CatalogError::IndexBuildEnded { reason: found }) if found == reason));
    assert_eq!(engine.tree_names().len(), 1);
    assert_eq!(assert_sound(&catalog, 0), 501);
}

/// An index on `u` in which no further documents share a key.
fn prepared() -> IndexDescription {
    let specification = doc! { "v": 2, "key": { "u": 1 }, "name": "u_1", "prepareUnique": true };
    IndexDescription::from_specification(&specification.to_raw()).unwrap()
}

fn convert(catalog: &Catalog) -> Result<(), CatalogError> {
    let operation = Operation::default();
    let turn = catalog.index_build_turn(&namespace(), &operation)?;
    let collection = catalog.collection("test", "things").unwrap();
    let unique = doc! { "v": 2, "key": { "u": 1 }, "name": "u_1", "unique": true };
    let unique = IndexDescription::from_specification(&unique.to_raw()).unwrap();
    turn.replace(collection.index("u_1").unwrap(), unique)
}

#[test]
fn a_prepared_index_becomes_unique_while_others_write() {
    let (engine, catalog) = filled(500);
    catalog.create_indexes(&namespace(), vec![prepared()], &Operation::default()).unwrap();
    let shared = insert(&catalog, &doc! { "_id": 900, "u": 7 });
    assert!(matches!(shared, Err(WriteError::DuplicateKey { .. })), "{shared:?}");
    let inside = Arc::clone(&catalog);
    engine.during_the_next_build(move || {
        insert(&inside, &doc! { "_id": 1_000, "u": 1_000 }).unwrap();
        let shared = change(&inside, 1_000, Some(&doc! { "_id": 1_000, "u": 8 }));
        assert!(matches!(shared, Err(WriteError::DuplicateKey { .. })), "{shared:?}");
        change(&inside, 3, None).unwrap();
        change(&inside, 1_000, Some(&doc! { "_id": 1_000, "u": 3 })).unwrap();
    });
    convert(&catalog).unwrap();
    assert_eq!(assert_sound(&catalog, 1), 500);
    let collection = catalog.collection("test", "things").unwrap();
    assert_eq!(collection.index("u_1").unwrap().uniqueness(), Uniqueness::Unique);
    assert!(insert(&catalog, &doc! { "_id": 2_000, "u": 3 }).is_err());
    insert(&catalog, &doc! { "_id": 2_000, "u": 2_000 }).unwrap();
    assert_sound(&Catalog::open(engine.as_engine()).unwrap(), 1);
}

#[test]
fn a_prepared_index_that_is_dropped_or_changed_does_not_become_unique() {
    for changes in [0, 1] {
        let (engine, catalog) = filled(500);
        catalog.create_indexes(&namespace(), vec![prepared()], &Operation::default()).unwrap();
        let inside = Arc::clone(&catalog);
        engine.during_the_next_build(move || {
            let operation = Operation::default();
            if changes == 0 {
                inside.drop_index(&namespace(), "u_1", &operation).unwrap();
                return;
            }
            let plain = doc! { "v": 2, "key": { "u": 1 }, "name": "u_1" };
            let plain = |_: &Index| Ok::<_, CatalogError>(plain.to_raw());
            inside.change_index_specification(&namespace(), "u_1", &operation, plain).unwrap();
        });
        let ended = convert(&catalog);
        assert!(matches!(ended, Err(CatalogError::IndexBuildEnded { .. })), "{ended:?}");
        assert_eq!(assert_sound(&catalog, changes), 500);
    }
}

#[test]
fn a_conversion_whose_commit_fails_leaves_the_prepared_index() {
    let (engine, catalog) = filled(500);
    catalog.create_indexes(&namespace(), vec![prepared()], &Operation::default()).unwrap();
    let trees = engine.tree_names();
    engine.refuse_the_next_change_of_the_catalog();
    let failed = convert(&catalog);
    assert!(matches!(failed, Err(CatalogError::Storage(_))), "{failed:?}");
    assert!(!engine.refuses(), "a commit was refused");
    // The catalog names the tree of the old index: that is the one which stays.
    assert_eq!(engine.tree_names(), trees);
    for catalog in [&catalog, &Arc::new(Catalog::open(engine.as_engine()).unwrap())] {
        assert_eq!(assert_sound(catalog, 1), 500);
        let collection = catalog.collection(namespace().database(), namespace().collection()).unwrap();
        assert_eq!(collection.index("u_1").unwrap().uniqueness(), Uniqueness::Prepared);
        assert!(insert(catalog, &doc! { "_id": 2_000, "u": 3 }).is_err());
    }
    convert(&catalog).unwrap();
    assert_eq!(assert_sound(&Catalog::open(engine.as_engine()).unwrap(), 1), 500);
}

/// Each change is made of what the one before has left, also where threads begin at once.
#[test]
fn changes_at_once_lose_none() {
    const EACH: i32 = 200;
    let (_engine, catalog) = filled(3);
    catalog.create_indexes(&namespace(), vec![prepared()], &Operation::default()).unwrap();
    let count = |document: &RawDocument| match document.get("count").unwrap() {
        Some(RawValue::Int32(count)) => count,
        _ => 0,
    };
    let changer = |catalog: &Catalog| {
        for _ in 0..EACH {
            let operation = Operation::default();
            let changed = catalog.change_options(&namespace(), &operation, |collection| {
                let mut options = Document::from_raw(collection.options()).unwrap();
                options.insert("count", Value::Int32(count(collection.options()) + 1));
                Ok::<_, CatalogError>(options.to_raw())
            });
            changed.unwrap();
            let changed = catalog.change_index_specification(&namespace(), "u_1", &operation, |index| {
                let mut specification = Document::from_raw(index.specification()).unwrap();
                specification.insert("count", Value::Int32(count(index.specification()) + 1));
                Ok::<_, CatalogError>(specification.to_raw())
            });
            changed.unwrap();
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| changer(&catalog));
        }
    });
    let collection = catalog.collection(namespace().database(), namespace().collection()).unwrap();
    assert_eq!(count(collection.options()), 3 * EACH);
    assert_eq!(count(collection.index("u_1").unwrap().specification()), 3 * EACH);
}

#[test]
fn a_crash_during_the_conversion_leaves_the_prepared_index() {
    let (engine, catalog) = filled(500);
    catalog.create_indexes(&namespace(), vec![prepared()], &Operation::default()).unwrap();
    let again = engine.as_engine();
    engine.during_the_next_build(move || {
        let opened = Catalog::open(Arc::clone(&again)).unwrap();
        let collection = opened.collection("test", "things").unwrap();
        assert_eq!(collection.index("u_1").unwrap().uniqueness(), Uniqueness::Prepared);
        assert_eq!(assert_sound(&opened, 1), 500);
        convert(&opened).unwrap();
        assert_eq!(assert_sound(&opened, 1), 500);
    });
    assert!(convert(&catalog).is_err(), "its trees went with the crash");
}

#[test]
fn two_writers_of_one_key_of_a_prepared_index_conflict() {
    let (_engine, catalog) = filled(5);
    catalog.create_indexes(&namespace(), vec![prepared()], &Operation::default()).unwrap();
    let lease = catalog.lease("test", "things", Caller::may_block(&Operation::default())).unwrap().unwrap();
    let (mut one, mut other) = (catalog.begin_write().unwrap(), catalog.begin_write().unwrap());
    let document = |id: i32| doc! { "_id": id, "u": 77 }.to_raw();
    lease.insert(&mut one, &document(100), BlockingMode::MayBlock).unwrap();
    let lost = lease.insert(&mut other, &document(101), BlockingMode::MayBlock);
    let is_conflict = matches!(&lost, Err(WriteError::Storage(error)) if error.kind() == pando_catalog::ErrorKind::Conflict);
    assert!(is_conflict, "{lost:?}");
    one.commit(Durability::None).unwrap();
    drop((other, lease));
    assert_eq!(assert_sound(&catalog, 1), 6);
}

#[test]
fn a_crash_during_the_build_leaves_no_half_index() {
    let (engine, catalog) = filled(500);
    let (inside, again) = (Arc::clone(&catalog), engine.as_engine());
    engine.during_the_next_build(move || {
        insert(&inside, &doc! { "_id": 1_000, "a": 1, "u": 1 }).unwrap();
        // The trees that the next start finds.
        let opened = Catalog::open(Arc::clone(&again)).unwrap();
        assert_eq!(assert_sound(&opened, 0), 501);
        assert_eq!(again.list_trees().unwrap().len(), 4, "three trees of the catalog, and the collection");
        opened
            .create_indexes(&namespace(), vec![index(doc! { "a": 1 }, "a_1", &[])], &Operation::default())
            .unwrap();
        assert_sound(&opened, 1);
    });
    assert!(
        catalog.create_indexes(&namespace(), several_indexes(), &Operation::default()).is_err(),
        "its trees are gone"
    );
}

#[test]
fn arrays_that_come_during_the_build_are_known_of_the_index() {
    let (engine, catalog) = filled(200);
    let inside = Arc::clone(&catalog);
    engine.during_the_next_build(move || {
        change(&inside, 7, Some(&doc! { "_id": 7, "a": [1, 2], "b": 1 })).unwrap();
    });
    let wanted = vec![index(doc! { "a": 1, "b": 1 }, "ab", &[]), index(doc! { "b": 1 }, "b_1", &[])];
    catalog.create_indexes(&namespace(), wanted, &Operation::default()).unwrap();
    for catalog in [&catalog, &Arc::new(Catalog::open(engine.as_engine()).unwrap())] {
        let described = catalog.collection("test", "things").unwrap().describe_indexes();
        assert_eq!(described[1].multikey, [Multikey::at(0), Multikey::NO]);
        assert_eq!(described[2].multikey, [Multikey::NO]);
        assert_sound(catalog, 2);
    }
}

#[test]
fn readers_know_nothing_of_an_index_before_it_is_finished() {
    let (engine, catalog) = filled(200);
    let inside = Arc::clone(&catalog);
    let early = catalog.begin(Begin::READ).unwrap();
    engine.during_the_next_build(move || {
        let collection = inside.collection("test", "things").unwrap();
        assert_eq!(collection.describe_indexes().len(), 1);
        assert_eq!(collection.names_being_built().collect::<Vec<_>>(), ["a_1"]);
        let refused = inside.rename_collection(
            &namespace(),
            &Namespace::new("test", "other").unwrap(),
            &Operation::default(),
        );
        assert!(matches!(refused, Err(CatalogError::IndexBuildRunning { .. })));
    });
    catalog
        .create_indexes(&namespace(), vec![index(doc! { "a": 1 }, "a_1", &[])], &Operation::default())
        .unwrap();
    let collection = catalog.collection("test", "things").unwrap();
    assert_eq!(collection.describe_indexes().len(), 2);
    assert_eq!(
        collection.describe_indexes_at(early.snapshot()).len(),
        1,
        "it has no entries for an old reader"
    );
    let late = catalog.begin(Begin::READ).unwrap();
    assert_eq!(collection.describe_indexes_at(late.snapshot()).len(), 2);
}

#[test]
fn a_document_that_no_index_can_hold_ends_the_build_but_may_go_away_meanwhile() {
    let (engine, catalog) = filled(10);
    insert(&catalog, &doc! { "_id": 100, "p": [1], "q": [2] }).unwrap();
    let wanted = vec![index(doc! { "p": 1, "q": 1 }, "pq", &[])];
    let trees = engine.tree_names();
    let refused = catalog.create_indexes(&namespace(), wanted.clone(), &Operation::default());
    assert!(matches!(refused, Err(CatalogError::Write(WriteError::ParallelArrays { .. }))));
    assert_eq!(engine.tree_names(), trees);
    change(&catalog, 100, None).unwrap();
    let inside = Arc::clone(&catalog);
    engine.during_the_next_build(move || {
        let refused = insert(&inside, &doc! { "_id": 101, "p": [1], "q": [2] });
        assert!(matches!(refused, Err(WriteError::ParallelArrays { .. })));
    });
    catalog.create_indexes(&namespace(), wanted, &Operation::default()).unwrap();
    assert_eq!(assert_sound(&catalog, 1), 10);
}

#[test]
fn one_build_of_a_collection_waits_for_another() {
    let (engine, catalog) = filled(200);
    let inside = Arc::clone(&catalog);
    let (sender, receiver) = std::sync::mpsc::channel();
    engine.during_the_next_build(move || {
        let second = std::thread::spawn(move || {
            inside
                .create_indexes(&namespace(), vec![index(doc! { "b": 1 }, "b_1", &[])], &Operation::default())
                .unwrap();
            inside.collection("test", "things").unwrap().indexes().len()
        });
        sender.send(second).unwrap();
    });
    catalog
        .create_indexes(&namespace(), vec![index(doc! { "a": 1 }, "a_1", &[])], &Operation::default())
        .unwrap();
    assert_eq!(receiver.recv().unwrap().join().unwrap(), 2, "the second began when the first had ended");
    assert_sound(&catalog, 2);
}
