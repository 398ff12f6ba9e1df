//! Bulk loads: a loaded collection is what single inserts would have made, is seen from its commit on, and
//! leaves nothing behind where it ends otherwise.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pando_betree::Betree;
use pando_catalog::index_kind::OrdinaryIndexes;
use pando_catalog::{
    Begin, BlockingMode, BulkLoad, Caller, Catalog, CatalogError, Collection, Direction, Durability,
    IndexDescription, Interruption, KeyRange, Operation, QueryMemory, ScratchSpace, SharedEngine,
    Transaction, WriteError,
};
use pando_document::{Document, RawDocumentBuf, RawValue, Value, doc};
use pando_environment::{Environment, Random, SeededRandom};

use crate::counted::{
    DATABASE, NAMES, assert_sound, engines, index, namespace, small_options, some_document,
};
use crate::hooked_engine::HookedEngine;

const BLOCK: BlockingMode = BlockingMode::MayBlock;
const NAME: &str = NAMES[0];

fn indexes() -> Vec<IndexDescription> {
    vec![
        index(doc! { "a": 1 }, "a_1", &[]),
        index(doc! { "s": 1, "b": -1 }, "s_1_b_-1", &["sparse"]),
        index(doc! { "_id": -1, "b": 1 }, "unique", &["unique"]),
    ]
}

fn begin(catalog: &Catalog, indexes: Vec<IndexDescription>) -> Result<BulkLoad, CatalogError> {
    catalog.begin_load(&namespace(NAME), RawDocumentBuf::new(), [9; 16], indexes)
}

fn filled(catalog: &Catalog, documents: &[RawDocumentBuf]) -> BulkLoad {
    let mut load = begin(catalog, indexes()).unwrap();
    for document in documents {
        load.insert(document, &Operation::default()).unwrap();
    }
    load
}

/// So many documents in a random order of their `_id`, some of which are too long for a key.
fn random_documents(seed: u64, number: i32) -> Vec<RawDocumentBuf> {
    let chance = SeededRandom::new(seed);
    let mut documents: Vec<_> = (0..number).map(|id| some_document(&chance, id)).collect();
    documents.push(doc! { "_id": "x".repeat(3_000), "a": "y".repeat(3_000), "s": 1 }.to_raw());
    for at in (1..documents.len()).rev() {
        documents.swap(at, chance.below(at as u64 + 1) as usize);
    }
    documents
}

fn publish(catalog: &Catalog, load: BulkLoad) -> Result<(), CatalogError> {
    let operation = Operation::default();
    let loaded = load.finish(catalog, &operation)?;
    catalog.publish_load(loaded, Caller::may_block(&operation), Durability::Logged).map(|_| ())
}

fn scanned(collection: &Collection, reader: &dyn Transaction) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    while let Some((_, document)) = scan.next(reader, BLOCK).unwrap() {
        found.push(document.to_vec());
    }
    found
}

/// Documents that a reader finds by the scan, by one of the indexes, and by `_id`.
fn seen(collection: &Arc<Collection>, reader: &dyn Transaction) -> [usize; 3] {
    let (mut by_index, mut by_id) = (0, 0);
    let mut scan =
        collection.scan_index(collection.index("unique").unwrap(), KeyRange::all(), Direction::Backward);
    while scan.next(reader, BLOCK).unwrap().is_some() {
        by_index += 1;
    }
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    let mut by_scan = 0;
    loop {
        match scan.pass_batch(reader, BLOCK).unwrap() {
            0 => break,
            passed => by_scan += passed,
        }
    }
    for id in 0..30 {
        let key = collection.id_key(RawValue::Int32(id));
        by_id += usize::from(collection.fetch_by_id(reader, &key, BLOCK).unwrap().is_some());
    }
    [by_scan, by_index, by_id]
}

fn entries(collection: &Arc<Collection>, reader: &dyn Transaction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    for index in collection.indexes() {
        let mut scan = collection.scan_index(index, KeyRange::all(), Direction::Forward);
        while let Some(entry) = scan.next(reader, BLOCK).unwrap() {
            found.push((entry.fields.to_vec(), entry.primary_key.to_vec()));
        }
    }
    found
}

fn trees(engine: &SharedEngine) -> usize {
    let is_of_catalog = |name: &str| matches!(name, "catalog" | "counters" | "sessions");
    engine.list_trees().unwrap().iter().filter(|tree| !is_of_catalog(&tree.name)).count()
}

#[test]
fn a_loaded_collection_is_what_single_inserts_make() {
    for (name, engine, _folder) in engines() {
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        let documents = random_documents(5, 300);
        publish(&catalog, filled(&catalog, &documents)).unwrap();
        let other = namespace(NAMES[1]);
        catalog.create_collection(&other, RawDocumentBuf::new(), [1; 16]).unwrap();
        catalog.create_indexes(&other, indexes(), &Operation::default()).unwrap();
        let lease =
            catalog.lease(DATABASE, NAMES[1], Caller::may_block(&Operation::default())).unwrap().unwrap();
        let mut transaction = catalog.begin_write().unwrap();
        for document in &documents {
            lease.insert(&mut transaction, document, BLOCK).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
        drop(lease);
        let compare = |catalog: &Catalog| {
            assert_eq!(assert_sound(catalog), 2 * documents.len() as u64, "{name}");
            let reader = catalog.begin(Begin::READ).unwrap();
            let of = |name| catalog.collection(DATABASE, name).unwrap();
            let (loaded, inserted) = (of(NAMES[0]), of(NAMES[1]));
            assert_eq!(scanned(&loaded, &*reader), scanned(&inserted, &*reader), "{name}");
            assert_eq!(entries(&loaded, &*reader), entries(&inserted, &*reader), "{name}");
            let described = |collection: &Collection| {
                let all = collection.describe_indexes();
                all.into_iter().map(|one| (one.name, one.multikey, one.truncated)).collect::<Vec<_>>()
            };
            assert_eq!(described(&loaded), described(&inserted), "{name}");
        };
        compare(&catalog);
        drop(catalog);
        let catalog = Catalog::open(engine).unwrap();
        compare(&catalog);
        catalog.drop_collection(&namespace(NAME), &Operation::default(), &|_| {}).unwrap();
    }
}

#[test]
fn a_snapshot_sees_all_of_it_or_none() {
    for (name, engine, _folder) in engines() {
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        let before = catalog.begin(Begin::READ).unwrap();
        let load = filled(&catalog, &random_documents(1, 20));
        assert!(catalog.collection(DATABASE, NAME).is_none());
        let loaded = load.finish(&catalog, &Operation::default()).unwrap();
        assert!(catalog.collection(DATABASE, NAME).is_none());
        let full = catalog.begin(Begin::READ).unwrap();
        let operation = Operation::default();
        catalog.publish_load(loaded, Caller::may_block(&operation), Durability::None).unwrap();
        let collection = catalog.collection(DATABASE, NAME).unwrap();
        for early in [before, full] {
            assert_eq!(seen(&collection, &*early), [0, 0, 0], "{name}");
            assert_eq!(collection.document_count(&*early, BLOCK).unwrap(), None, "{name}");
        }
        let late = catalog.begin(Begin::READ).unwrap();
        assert_eq!(seen(&collection, &*late), [21, 21, 20], "{name}");
    }
}

#[test]
fn a_snapshot_between_the_commit_and_its_note_sees_all_of_it() {
    let engine = HookedEngine::shared();
    let catalog = Arc::new(Catalog::open(engine.as_engine()).unwrap());
    let loaded = filled(&catalog, &random_documents(1, 20)).finish(&catalog, &Operation::default()).unwrap();
    let (inside, was_called) = (Arc::clone(&catalog), Arc::new(AtomicBool::new(false)));
    let called = Arc::clone(&was_called);
    engine.behind_the_next_commit(move || {
        let collection = inside.collection(DATABASE, NAME).unwrap();
        let reader = inside.begin(Begin::READ).unwrap();
        assert_eq!(seen(&collection, &*reader), [21, 21, 20]);
        called.store(true, Ordering::Relaxed);
    });
    let operation = Operation::default();
    catalog.publish_load(loaded, Caller::may_block(&operation), Durability::None).unwrap();
    assert!(was_called.load(Ordering::Relaxed));
    assert_sound(&catalog);
}

#[test]
fn a_transaction_publishes_it_with_its_other_writes_or_not_at_all() {
    for (name, engine, _folder) in engines() {
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        catalog.create_collection(&namespace(NAMES[1]), RawDocumentBuf::new(), [1; 16]).unwrap();
        let operation = Operation::default();
        let caller = Caller::may_block(&operation);
        for commits in [false, true] {
            let mut transaction = catalog.begin_session_transaction().unwrap();
            let lease = transaction.lease(&catalog, &namespace(NAMES[1]), caller).unwrap().unwrap();
            lease.insert(transaction.writer(), &doc! { "_id": 1 }.to_raw(), BLOCK).unwrap();
            drop(lease);
            let loaded = filled(&catalog, &random_documents(1, 20)).finish(&catalog, &operation).unwrap();
            transaction.adopt(&catalog, loaded).unwrap();
            let refused = transaction.collection(&catalog, DATABASE, NAME);
            assert!(matches!(refused, Err(CatalogError::LoadUncommitted { .. })), "{refused:?}");
            let refused = transaction.lease(&catalog, &namespace(NAME), caller).map(|_| ());
            assert!(matches!(refused, Err(CatalogError::LoadUncommitted { .. })), "{refused:?}");
            let again = filled(&catalog, &[]).finish(&catalog, &operation).unwrap();
            assert!(transaction.adopt(&catalog, again).is_err(), "the name is taken");
            assert!(catalog.collection(DATABASE, NAME).is_none());
            if commits {
                let leases = transaction.commit_leases(&catalog, caller).unwrap();
                transaction.commit(&catalog, leases, Durability::None).unwrap();
            } else {
                drop(transaction);
                assert_eq!(trees(&engine), 1, "{name}: nothing is left");
            }
        }
        assert_eq!(assert_sound(&catalog), 22, "{name}");
        assert_eq!(trees(&engine), 1 + 4, "{name}");
    }
}

#[test]
fn a_duplicate_ends_the_load_and_leaves_nothing() {
    for (name, engine, _folder) in engines() {
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        let mut by_id = filled(&catalog, &random_documents(1, 20));
        by_id.insert(&doc! { "_id": 7.0 }.to_raw(), &Operation::default()).unwrap();
        let told = publish(&catalog, by_id);
        assert!(
            matches!(&told, Err(CatalogError::Write(WriteError::DuplicateKey { index, key, .. }))
                if index == "_id_" && key.get("_id").unwrap().unwrap().is_number()),
            "{name}: {told:?}"
        );
        let mut by_index = begin(&catalog, vec![index(doc! { "u": 1 }, "u_1", &["unique"])]).unwrap();
        for (id, u) in [(1, 5), (2, 6), (3, 5)] {
            by_index.insert(&doc! { "_id": id, "u": u }.to_raw(), &Operation::default()).unwrap();
        }
        let told = publish(&catalog, by_index);
        assert!(
            matches!(&told, Err(CatalogError::Write(WriteError::DuplicateKey { index, .. })) if index == "u_1"),
            "{name}: {told:?}"
        );
        assert!(catalog.collection(DATABASE, NAME).is_none());
        assert_eq!(trees(&engine), 0, "{name}");
        assert_sound(&catalog);
    }
}

#[test]
fn a_document_that_an_index_cannot_hold_is_refused_alone() {
    let engine = HookedEngine::shared();
    let catalog = Catalog::open(engine.as_engine()).unwrap();
    let mut load = begin(&catalog, vec![index(doc! { "a": 1, "b": 1 }, "ab", &[])]).unwrap();
    let array = || Value::Array(vec![Value::Int32(1), Value::Int32(2)]);
    let mut parallel = doc! { "_id": 1 };
    parallel.push("a", array());
    parallel.push("b", array());
    let refused = load.insert(&parallel.to_raw(), &Operation::default());
    assert!(matches!(refused, Err(WriteError::ParallelArrays { .. })) && !load.is_broken());
    assert!(matches!(load.insert(&doc! {}.to_raw(), &Operation::default()), Err(WriteError::NoId)));
    let mut one = doc! { "_id": 1 };
    one.push("a", array());
    load.insert(&one.to_raw(), &Operation::default()).unwrap();
    assert_eq!(load.len(), 1);
    publish(&catalog, load).unwrap();
    assert_eq!(assert_sound(&catalog), 1);
}

#[test]
fn the_first_to_take_the_name_wins() {
    let engine = HookedEngine::shared();
    let catalog = Catalog::open(engine.as_engine()).unwrap();
    let (one, other) = (filled(&catalog, &random_documents(1, 5)), filled(&catalog, &random_documents(2, 9)));
    let late = filled(&catalog, &random_documents(3, 9)).finish(&catalog, &Operation::default()).unwrap();
    publish(&catalog, one).unwrap();
    let exists = |outcome| matches!(outcome, Err(CatalogError::CollectionExists { .. }));
    assert!(exists(publish(&catalog, other)));
    let operation = Operation::default();
    assert!(exists(catalog.publish_load(late, Caller::may_block(&operation), Durability::None).map(|_| ())));
    assert!(exists(begin(&catalog, Vec::new()).map(|_| ())));
    assert_eq!(assert_sound(&catalog), 6);
    assert_eq!(engine.tree_names().len(), 4);
    let in_system = Document::new().to_raw();
    let wrong = pando_catalog::Namespace::new(DATABASE, "system.x").unwrap();
    assert!(catalog.begin_load(&wrong, in_system, [1; 16], Vec::new()).is_err());
}

#[test]
fn little_memory_makes_no_difference_and_is_given_back() {
    let engine = HookedEngine::shared();
    let simulation = Environment::simulated(1);
    let scratch = ScratchSpace::open(&simulation.environment, Path::new("/scratch")).unwrap();
    let memory = QueryMemory::new(&engine.as_engine(), 64 << 10, Some(Arc::clone(&scratch)));
    let catalog = Catalog::open_with(engine.as_engine(), memory.clone(), Arc::new(OrdinaryIndexes)).unwrap();
    let nothing_is_held = || {
        let held = (engine.lent_bytes(), memory.figures().held_bytes, scratch.figures().files);
        assert_eq!(held, (0, 0, 0));
    };
    let documents = random_documents(4, 4_000);
    drop(filled(&catalog, &documents));
    nothing_is_held();
    assert_eq!(engine.tree_names().len(), 0);
    publish(&catalog, filled(&catalog, &documents)).unwrap();
    nothing_is_held();
    let figures = memory.figures();
    assert!(figures.spills > 16 && figures.peak_bytes <= 64 << 10, "{figures:?}");
    assert_eq!(assert_sound(&catalog), documents.len() as u64);
}

#[test]
fn an_interruption_ends_it_at_once() {
    let engine = HookedEngine::shared();
    let catalog = Catalog::open(engine.as_engine()).unwrap();
    let operation = Arc::new(Operation::default());
    let killer = Arc::clone(&operation);
    let load = filled(&catalog, &random_documents(4, 2_000));
    engine.during_the_next_build(move || {
        assert_eq!(killer.progress().unwrap().step, "load: writing documents");
        killer.interrupt(Interruption::Killed);
    });
    let ended = load.finish(&catalog, &operation);
    assert!(matches!(ended, Err(CatalogError::Interrupted(Interruption::Killed))), "{ended:?}");
    assert_eq!((engine.tree_names().len(), operation.progress()), (0, None));
}

#[test]
fn a_crash_at_any_call_leaves_all_of_it_or_nothing() {
    let (mut whole, mut none) = (0, 0);
    for seed in 0..60 {
        let simulation = Environment::simulated(seed);
        let chance = SeededRandom::new(seed);
        let open = || -> SharedEngine {
            Betree::open(&simulation.environment, Path::new("/store"), small_options()).unwrap()
        };
        let documents = random_documents(seed, 60);
        {
            let engine = open();
            let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
            let load = filled(&catalog, &documents);
            simulation.disk.crash_at_call(simulation.disk.calls() + chance.below(80));
            let crashed = std::panic::AssertUnwindSafe(|| publish(&catalog, load));
            let _crashed = std::panic::catch_unwind(crashed);
            drop((catalog, engine));
        }
        match chance.below(2) {
            0 => simulation.disk.kill(),
            _ => simulation.disk.crash(chance.next_u64()),
        }
        simulation.tasks.forget_all();
        let engine = open();
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        match catalog.collection(DATABASE, NAME) {
            Some(_) => {
                assert_eq!(assert_sound(&catalog), documents.len() as u64, "seed {seed}");
                whole += 1;
            }
            None => {
                assert_eq!(trees(&engine), 0, "seed {seed}");
                none += 1;
                publish(&catalog, filled(&catalog, &documents)).unwrap();
            }
        }
        assert_eq!(assert_sound(&catalog), documents.len() as u64, "seed {seed}");
    }
    assert!(whole > 3 && none > 3, "{whole} times whole, {none} times none");
}
