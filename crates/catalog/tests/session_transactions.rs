//! Transactions of sessions beside changes of the collections that they read and write: they commit whole
//! with all index entries and counters, or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, CatalogError, Durability, Multikey, Operation, SessionTransaction,
    SharedEngine, WriteError,
};
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, doc};
use pando_environment::SeededRandom;

use crate::counted::{
    self, DATABASE, NAMES, assert_sound, drop_counters, engines, index, namespace, some_index, some_options,
    write_one,
};
use crate::hooked_engine::HookedEngine;

const BLOCK: BlockingMode = BlockingMode::MayBlock;

fn with_collections(engine: &SharedEngine) -> Catalog {
    let catalog = Catalog::open(Arc::clone(engine)).unwrap();
    for (at, name) in NAMES.iter().enumerate() {
        catalog.create_collection(&namespace(name), some_options(at), [at as u8; 16]).unwrap();
    }
    catalog
}

fn insert(
    catalog: &Catalog,
    transaction: &mut SessionTransaction,
    name: &str,
    document: &Document,
) -> Result<(), CatalogError> {
    let operation = Operation::default();
    let lease = transaction.lease(catalog, &namespace(name), Caller::may_block(&operation))?.unwrap();
    Ok(lease.insert(transaction.writer(), &document.to_raw(), BLOCK)?)
}

fn insert_alone(catalog: &Catalog, name: &str, document: &Document) {
    let mut transaction = catalog.begin_session_transaction().unwrap();
    insert(catalog, &mut transaction, name, document).unwrap();
    commit(catalog, transaction).unwrap();
}

fn commit(catalog: &Catalog, transaction: SessionTransaction) -> Result<(), CatalogError> {
    let operation = Operation::default();
    let leases = transaction.commit_leases(catalog, Caller::may_block(&operation))?;
    transaction.commit(catalog, leases, Durability::None).map(|_| ())
}

fn is_conflict<T>(outcome: &Result<T, CatalogError>) -> bool {
    match outcome {
        Err(CatalogError::Storage(error)) => error.is_conflict(),
        Err(CatalogError::Write(WriteError::Storage(error))) => error.is_conflict(),
        _ => false,
    }
}

fn read(catalog: &Catalog, transaction: &SessionTransaction, name: &str, id: i32) -> Option<Document> {
    let collection = transaction.collection(catalog, DATABASE, name).unwrap()?;
    let key = collection.id_key(RawValue::Int32(id));
    let found = collection.fetch_by_id(transaction.reader(), &key, BLOCK).unwrap()?;
    Some(Document::from_raw(RawDocument::from_bytes(&found).unwrap()).unwrap())
}

fn build(catalog: &Catalog, name: &str, options: &[&str]) {
    let description = index(doc! { "a": 1 }, "a_1", options);
    catalog.create_indexes(&namespace(name), vec![description], &Operation::default()).unwrap();
}

#[test]
fn statements_of_one_transaction_see_its_snapshot_and_its_own_writes() {
    for (_, engine, _folder) in engines() {
        let catalog = with_collections(&engine);
        insert_alone(&catalog, "one", &doc! { "_id": 1, "a": 1 });
        let mut transaction = catalog.begin_session_transaction().unwrap();
        insert(&catalog, &mut transaction, "one", &doc! { "_id": 2, "a": 2 }).unwrap();
        insert(&catalog, &mut transaction, "two", &doc! { "_id": 1 }).unwrap();
        insert_alone(&catalog, "one", &doc! { "_id": 3 });
        assert!(read(&catalog, &transaction, "one", 2).is_some());
        assert!(read(&catalog, &transaction, "one", 3).is_none(), "it was committed later");
        let other = catalog.begin_session_transaction().unwrap();
        assert!(read(&catalog, &other, "one", 2).is_none() && read(&catalog, &other, "two", 1).is_none());
        commit(&catalog, transaction).unwrap();
        assert!(read(&catalog, &other, "two", 1).is_none());
        let later = catalog.begin_session_transaction().unwrap();
        assert!(read(&catalog, &later, "one", 2).is_some() && read(&catalog, &later, "two", 1).is_some());
        assert_sound(&catalog);
    }
}

#[test]
fn an_index_that_was_built_since_a_write_ends_the_transaction_with_a_conflict() {
    for (_, engine, _folder) in engines() {
        for options in [&[][..], &["unique"]] {
            let catalog = with_collections(&engine);
            insert_alone(&catalog, "one", &doc! { "_id": 1, "a": 1 });
            let mut wrote_before = catalog.begin_session_transaction().unwrap();
            insert(&catalog, &mut wrote_before, "one", &doc! { "_id": 2, "a": 1 }).unwrap();
            let mut writes_after = catalog.begin_session_transaction().unwrap();
            let mut elsewhere = catalog.begin_session_transaction().unwrap();
            insert(&catalog, &mut elsewhere, "two", &doc! { "_id": 2, "a": 1 }).unwrap();
            build(&catalog, "one", options);
            let again = insert(&catalog, &mut wrote_before, "one", &doc! { "_id": 3, "a": 3 });
            assert!(is_conflict(&again), "{again:?}");
            let late = insert(&catalog, &mut writes_after, "one", &doc! { "_id": 4, "a": 4 });
            assert!(is_conflict(&late), "{late:?}");
            assert!(is_conflict(&commit(&catalog, wrote_before)));
            commit(&catalog, elsewhere).unwrap();
            // Begun again, it goes through.
            let mut repeated = catalog.begin_session_transaction().unwrap();
            insert(&catalog, &mut repeated, "one", &doc! { "_id": 4, "a": 4 }).unwrap();
            commit(&catalog, repeated).unwrap();
            assert_sound(&catalog);
            for name in NAMES {
                catalog.drop_collection(&namespace(name), &Operation::default(), &|_| {}).unwrap();
            }
        }
    }
}

#[test]
fn a_transaction_commits_during_a_build_and_its_entries_are_in_the_index() {
    let engine = HookedEngine::shared();
    let catalog = Arc::new(with_collections(&engine.as_engine()));
    for id in 0..1_000 {
        insert_alone(&catalog, "one", &doc! { "_id": id, "a": id });
    }
    // One began before the announcement and writes after it; one wrote before it; one outlives the build.
    let mut early = catalog.begin_session_transaction().unwrap();
    let mut wrote = catalog.begin_session_transaction().unwrap();
    insert(&catalog, &mut wrote, "one", &doc! { "_id": 2_000, "a": 2_000 }).unwrap();
    let outlives = Arc::new(parking_lot::Mutex::new(None));
    let (inside, kept) = (Arc::clone(&catalog), Arc::clone(&outlives));
    engine.during_the_next_build(move || {
        insert(&inside, &mut early, "one", &doc! { "_id": 3_000, "a": [1, 2, 3_000] }).unwrap();
        commit(&inside, early).unwrap();
        assert!(is_conflict(&commit(&inside, wrote)), "the build does not know its write");
        let mut late = inside.begin_session_transaction().unwrap();
        insert(&inside, &mut late, "one", &doc! { "_id": 4_000, "a": 4_000 }).unwrap();
        *kept.lock() = Some(late);
    });
    build(&catalog, "one", &[]);
    let late = outlives.lock().take().unwrap();
    assert!(is_conflict(&commit(&catalog, late)), "its change went to a tree that is gone");
    assert_sound(&catalog);
    let collection = catalog.collection(DATABASE, "one").unwrap();
    let counts = catalog.counts(&collection, &Operation::default()).unwrap();
    assert_eq!((counts.documents, counts.index_entries[0].1), (1_001, 1_003));
}

#[test]
fn a_created_collection_is_seen_by_others_from_the_commit_on() {
    for (_, engine, _folder) in engines() {
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        let trees = engine.list_trees().unwrap().len();
        let new = namespace("new");
        let mut transaction = catalog.begin_session_transaction().unwrap();
        transaction.create_collection(&catalog, &new, RawDocumentBuf::new(), [1; 16]).unwrap();
        let again = transaction.create_collection(&catalog, &new, RawDocumentBuf::new(), [2; 16]);
        assert!(matches!(again, Err(CatalogError::CollectionExists { .. })));
        let description = index(doc! { "a": 1 }, "a_1", &["unique"]);
        assert!(transaction.create_indexes(&catalog, &new, vec![description.clone()]).unwrap());
        insert(&catalog, &mut transaction, "new", &doc! { "_id": 1, "a": [1, 2] }).unwrap();
        let taken = insert(&catalog, &mut transaction, "new", &doc! { "_id": 2, "a": 2 });
        assert!(matches!(taken, Err(CatalogError::Write(WriteError::DuplicateKey { .. }))), "{taken:?}");
        let late = transaction.create_indexes(&catalog, &new, vec![description]);
        assert!(matches!(late, Err(CatalogError::CollectionNotEmpty { .. })), "{late:?}");
        assert!(read(&catalog, &transaction, "new", 1).is_some());
        assert!(catalog.collection(DATABASE, "new").is_none() && catalog.databases().is_empty());

        // A second one creates the same collection, and is too late.
        let mut second = catalog.begin_session_transaction().unwrap();
        second.create_collection(&catalog, &new, RawDocumentBuf::new(), [3; 16]).unwrap();
        insert(&catalog, &mut second, "new", &doc! { "_id": 7 }).unwrap();
        let reader = catalog.begin_session_transaction().unwrap();
        commit(&catalog, transaction).unwrap();
        assert!(is_conflict(&commit(&catalog, second)));
        assert!(
            reader.collection(&catalog, DATABASE, "new").unwrap().is_none(),
            "its snapshot did not see it"
        );

        // A third one is rolled back, and leaves no tree.
        let mut third = catalog.begin_session_transaction().unwrap();
        third.create_collection(&catalog, &namespace("gone"), RawDocumentBuf::new(), [4; 16]).unwrap();
        insert(&catalog, &mut third, "gone", &doc! { "_id": 1 }).unwrap();
        drop(third);
        assert_eq!(engine.list_trees().unwrap().len(), trees + 2);
        assert_sound(&catalog);
        drop(catalog);

        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        assert_sound(&catalog);
        let described = catalog.collection(DATABASE, "new").unwrap().describe_indexes();
        assert_eq!(described.len(), 2);
        assert!(described[1].multikey[0] != Multikey::NO, "the flag that the transaction has raised");
        assert!(catalog.collection(DATABASE, "gone").is_none());
    }
}

#[test]
fn a_snapshot_that_sees_a_write_finds_the_collection_that_its_transaction_created() {
    let engine = HookedEngine::shared();
    let catalog = Arc::new(with_collections(&engine.as_engine()));
    let found = Arc::new(AtomicBool::new(false));
    let (beside, noted) = (Arc::clone(&catalog), Arc::clone(&found));
    engine.behind_the_next_commit(move || {
        let reader = beside.begin_session_transaction().unwrap();
        assert!(read(&beside, &reader, "one", 1).is_some(), "the commit is visible");
        noted.store(read(&beside, &reader, "new", 1).is_some(), Ordering::Release);
    });
    let mut transaction = catalog.begin_session_transaction().unwrap();
    transaction.create_collection(&catalog, &namespace("new"), RawDocumentBuf::new(), [1; 16]).unwrap();
    insert(&catalog, &mut transaction, "new", &doc! { "_id": 1 }).unwrap();
    insert(&catalog, &mut transaction, "one", &doc! { "_id": 1 }).unwrap();
    commit(&catalog, transaction).unwrap();
    assert!(found.load(Ordering::Acquire));
    assert_sound(&catalog);
}

#[test]
fn a_dropped_or_replaced_collection_takes_no_commit() {
    for (_, engine, _folder) in engines() {
        let catalog = with_collections(&engine);
        insert_alone(&catalog, "one", &doc! { "_id": 1 });
        let mut transaction = catalog.begin_session_transaction().unwrap();
        insert(&catalog, &mut transaction, "one", &doc! { "_id": 2 }).unwrap();
        let mut stranger = catalog.begin_session_transaction().unwrap();
        catalog.drop_collection(&namespace("one"), &Operation::default(), &|_| {}).unwrap();
        catalog.create_collection(&namespace("one"), RawDocumentBuf::new(), [9; 16]).unwrap();
        let written = insert(&catalog, &mut stranger, "one", &doc! { "_id": 3 });
        assert!(matches!(written, Err(CatalogError::CollectionChanged { .. })), "{written:?}");
        assert!(is_conflict(&commit(&catalog, transaction)));
        assert_sound(&catalog);
    }
}

#[test]
fn a_collection_that_is_dropped_or_renamed_ends_the_transactions_that_saw_it_at_their_next_write() {
    for (_, engine, _folder) in engines() {
        let catalog = with_collections(&engine);
        insert_alone(&catalog, "one", &doc! { "_id": 1 });
        insert_alone(&catalog, "two", &doc! { "_id": 1 });
        let (mut transaction, operation) =
            (catalog.begin_session_transaction().unwrap(), Operation::default());
        let caller = Caller::may_block(&operation);
        catalog.drop_collection(&namespace("one"), &operation, &|_| {}).unwrap();
        let moved = namespace("moved");
        catalog.rename_collection(&namespace("two"), &moved, &operation).unwrap();
        for name in ["one", "two"] {
            assert!(read(&catalog, &transaction, name, 1).is_some(), "its snapshot has it");
            let leased = transaction.lease(&catalog, &namespace(name), caller);
            assert!(is_conflict(&leased), "{name}");
        }
        // One that begins now finds no collection of these names.
        let mut later = catalog.begin_session_transaction().unwrap();
        assert!(later.lease(&catalog, &namespace("two"), caller).unwrap().is_none());
        assert_sound(&catalog);
    }
}

#[test]
fn a_first_count_beside_a_transaction_counts_its_writes_once() {
    for (_, engine, _folder) in engines() {
        let catalog = with_collections(&engine);
        insert_alone(&catalog, "one", &doc! { "_id": 1 });
        drop(catalog);
        drop_counters(&engine);
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        let mut transaction = catalog.begin_session_transaction().unwrap();
        insert(&catalog, &mut transaction, "one", &doc! { "_id": 2 }).unwrap();
        let one = catalog.collection(DATABASE, "one").unwrap();
        assert_eq!(catalog.counts(&one, &Operation::default()).unwrap().documents, 1);
        assert!(is_conflict(&commit(&catalog, transaction)), "its write was not counted");
        let mut transaction = catalog.begin_session_transaction().unwrap();
        insert(&catalog, &mut transaction, "one", &doc! { "_id": 2 }).unwrap();
        commit(&catalog, transaction).unwrap();
        let two = catalog.collection(DATABASE, "two").unwrap();
        catalog.counts(&two, &Operation::default()).unwrap();
        assert_sound(&catalog);
    }
}

#[test]
fn records_of_sessions_are_read_as_a_collection_and_survive() {
    for (_, engine, _folder) in engines() {
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        let record = |at: i32| doc! { "_id": { "id": at }, "txnNum": 7_i64 }.to_raw();
        let mut transaction = catalog.begin_write().unwrap();
        for at in 0..3 {
            transaction.put_session_record(&record(at)).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
        drop(catalog);
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        let mut transaction = catalog.begin_write().unwrap();
        transaction.delete_session_record(record(1).get("_id").unwrap().unwrap()).unwrap();
        transaction.commit(Durability::None).unwrap();
        let records = catalog.session_records();
        assert_eq!(records.full_name(), "config.transactions");
        let reader = catalog.begin(Begin::READ).unwrap();
        let of = |at: i32| records.id_key(record(at).get("_id").unwrap().unwrap());
        assert_eq!(
            records.fetch_by_id(&*reader, &of(0), BLOCK).unwrap().as_deref(),
            Some(record(0).as_bytes())
        );
        assert!(records.fetch_by_id(&*reader, &of(1), BLOCK).unwrap().is_none());
        assert_eq!(catalog.counts(records, &Operation::default()).unwrap().documents, 2);
        assert!(catalog.databases().is_empty());
    }
}

/// A few statements over both collections with pauses between, then the commit. Whether it committed.
fn run_transaction(catalog: &Catalog, chance: &SeededRandom) -> bool {
    let operation = Operation::default();
    let mut transaction = catalog.begin_session_transaction().unwrap();
    for _ in 0..1 + chance.below(5) {
        let name = namespace(NAMES[chance.below(2) as usize]);
        let id = chance.below(40) as i32;
        let lease = match transaction.lease(catalog, &name, Caller::may_block(&operation)) {
            Ok(lease) => lease.unwrap(),
            outcome => {
                assert!(is_conflict(&outcome.map(|_| ())));
                return false;
            }
        };
        if write_one(&lease, transaction.writer(), chance, id).is_err() {
            return false;
        }
        drop(lease);
        if chance.below(3) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(chance.below(4)));
        }
    }
    if chance.below(6) == 0 {
        return false;
    }
    let outcome = commit(catalog, transaction);
    assert!(outcome.is_ok() || is_conflict(&outcome), "{outcome:?}");
    outcome.is_ok()
}

#[test]
fn transactions_beside_builds_and_drops_of_indexes_leave_every_entry_and_counter_right() {
    for (name, engine, _folder) in engines() {
        let catalog = with_collections(&engine);
        let (ended, commits) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (catalog, ended, commits) = (&catalog, &ended, &commits);
                scope.spawn(move || {
                    let chance = SeededRandom::new(thread);
                    while !ended.load(Ordering::Relaxed) {
                        commits.fetch_add(u64::from(run_transaction(catalog, &chance)), Ordering::Relaxed);
                    }
                });
            }
            let (chance, mut built) = (SeededRandom::new(77), 0);
            let rounds = if name == "memory" { 120 } else { 60 };
            for _ in 0..rounds {
                let target = namespace(NAMES[chance.below(2) as usize]);
                let description = some_index(&chance);
                let collection = catalog.collection(DATABASE, target.collection()).unwrap();
                let outcome = match collection.index(&description.name) {
                    Some(_) => catalog.drop_index(&target, &description.name, &Operation::default()),
                    None => catalog.create_indexes(&target, vec![description], &Operation::default()),
                };
                // A unique index may meet duplicates.
                built += u32::from(outcome.is_ok());
                std::thread::sleep(std::time::Duration::from_millis(chance.below(5)));
            }
            ended.store(true, Ordering::Relaxed);
            assert!(built > rounds / 4, "{name}: {built} builds and drops");
        });
        assert!(commits.load(Ordering::Relaxed) > 50, "{name}: {commits:?} commits");
        assert_sound(&catalog);
        let reader = catalog.begin(Begin::READ).unwrap();
        counted::assert_counted(&catalog, &*reader);
        drop(reader);
        drop(catalog);
        assert_sound(&Catalog::open(Arc::clone(&engine)).unwrap());
    }
}
