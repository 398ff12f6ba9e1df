//! Capped collections: contents against a model, with many writers, after rollbacks and after crashes.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pando_betree::Betree;
use pando_catalog::{
    Begin, BlockingMode, Caller, CappedCopy, Catalog, CatalogError, Collection, Direction, Durability,
    KeyRange, Operation, SharedEngine, TakenName, Transaction, WriteTransaction, verify_collection,
};
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, doc};
use pando_environment::{Environment, Random, SeededRandom};

use crate::counted::{engines, index, namespace, small_options};

const NAME: &str = "one";
const BYTES: i64 = 4_096;
const MAX: i64 = 20;

fn create(catalog: &Catalog, options: Document) -> Arc<Collection> {
    catalog.create_collection(&namespace(NAME), options.to_raw(), [7; 16]).unwrap()
}

fn limited() -> Document {
    doc! { "capped": true, "size": BYTES, "max": MAX }
}

fn document(id: i64, length: usize) -> RawDocumentBuf {
    doc! { "_id": id, "x": "y".repeat(length) }.to_raw()
}

/// Calls back with a lease and a transaction, and commits.
fn write(catalog: &Catalog, durability: Durability, change: impl FnOnce(&Collection, &mut WriteTransaction)) {
    let lease = catalog.lease("test", NAME, Caller::may_block(&Operation::default())).unwrap().unwrap();
    let mut transaction = catalog.begin_write().unwrap();
    change(&lease, &mut transaction);
    let receipt = transaction.commit(durability).unwrap();
    drop(lease);
    if durability == Durability::Synced {
        catalog.engine().wait_durable(receipt, durability).unwrap();
    }
}

fn insert(catalog: &Catalog, document: &RawDocument, durability: Durability) {
    write(catalog, durability, |collection, transaction| {
        collection.insert(transaction, document, BlockingMode::MayBlock).unwrap();
    });
}

/// The ids of all documents in the order of inserts, and their bytes.
fn contents(collection: &Collection, reader: &dyn Transaction) -> (Vec<i64>, i64) {
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    let (mut ids, mut bytes) = (Vec::new(), 0);
    while let Some((_, document)) = scan.next(reader, BlockingMode::MayBlock).unwrap() {
        let Ok(Some(RawValue::Int64(id))) = RawDocument::from_bytes(document).unwrap().get("_id") else {
            panic!("an id of another type")
        };
        ids.push(id);
        bytes += document.len() as i64;
    }
    (ids, bytes)
}

fn contents_now(catalog: &Catalog) -> (Vec<i64>, i64) {
    let reader = catalog.begin(Begin::READ).unwrap();
    contents(&catalog.collection("test", NAME).unwrap(), &*reader)
}

fn assert_sound(catalog: &Catalog) {
    let reader = catalog.begin(Begin::READ).unwrap();
    let collection = catalog.collection("test", NAME).unwrap();
    let report = verify_collection(&collection, &*reader, &Operation::default()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

/// MongoDB's rule: after each insert the oldest go while there is too much, but not the newest.
#[derive(Default)]
struct Model {
    documents: VecDeque<(i64, i64)>,
}

impl Model {
    fn insert(&mut self, id: i64, bytes: i64) {
        self.documents.push_back((id, bytes));
        let total = |all: &VecDeque<(i64, i64)>| all.iter().map(|(_, bytes)| bytes).sum::<i64>();
        while self.documents.len() > 1
            && (total(&self.documents) > BYTES || self.documents.len() as i64 > MAX)
        {
            self.documents.pop_front();
        }
    }

    fn ids(&self) -> Vec<i64> {
        self.documents.iter().map(|(id, _)| *id).collect()
    }
}

#[test]
fn contents_are_those_of_the_model_on_every_engine() {
    for (name, engine, _folder) in engines() {
        let chance = SeededRandom::new(5);
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        create(&catalog, limited());
        let operation = Operation::default();
        let turn = catalog.index_build_turn(&namespace(NAME), &operation).unwrap();
        turn.create(vec![index(doc! { "x": 1 }, "x_1", &[])]).unwrap();
        let (mut model, mut id) = (Model::default(), 0);
        for _ in 0..120 {
            write(&catalog, Durability::None, |collection, transaction| {
                for _ in 0..=chance.below(5) {
                    let length = if chance.below(40) == 0 { 5_000 } else { chance.below(900) as usize };
                    let document = document(id, length);
                    let savepoint = transaction.savepoint();
                    collection.insert(transaction, &document, BlockingMode::MayBlock).unwrap();
                    if chance.below(4) == 0 {
                        // As if the document had failed: what it has removed comes back.
                        transaction.rollback_to(savepoint);
                    } else {
                        model.insert(id, document.as_bytes().len() as i64);
                    }
                    id += 1;
                }
            });
            if chance.below(5) == 0 {
                // A transaction that is rolled back has removed nothing.
                let lease = catalog.lease("test", NAME, Caller::may_block(&Operation::default()));
                let lease = lease.unwrap().unwrap();
                let mut lost = catalog.begin_write().unwrap();
                lease.insert(&mut lost, &document(-1, 3_000), BlockingMode::MayBlock).unwrap();
                lost.rollback();
            }
            assert_eq!(contents_now(&catalog).0, model.ids(), "{name}");
        }
        assert_sound(&catalog);
    }
}

#[test]
fn many_writers_never_exceed_the_limits_and_meet_no_conflict() {
    let environment = Environment::real();
    let folder = tempfile::tempdir().unwrap();
    let engine: SharedEngine = Betree::open(&environment, folder.path(), small_options()).unwrap();
    let catalog = Catalog::open(engine).unwrap();
    let collection = create(&catalog, limited());
    let (next, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|number| {
                let (catalog, next) = (&catalog, &next);
                scope.spawn(move || {
                    let chance = SeededRandom::new(number);
                    for _ in 0..150 {
                        let id = next.fetch_add(1, Ordering::Relaxed) as i64;
                        insert(catalog, &document(id, chance.below(600) as usize), Durability::None);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut seen = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let version = collection.tail_version();
                let reader = catalog.begin(Begin::READ).unwrap();
                let (ids, bytes) = contents(&collection, &*reader);
                assert!(ids.len() as i64 <= MAX && bytes <= BYTES, "{} documents, {bytes} bytes", ids.len());
                // No document comes to stand before one that was seen.
                if let Some(first) = ids.first()
                    && let Some(at) = seen.iter().position(|id| id == first)
                {
                    assert!(ids.starts_with(&seen[at..]), "{seen:?} then {ids:?}");
                }
                seen = ids;
                let signal = Arc::default();
                collection.when_tail_changes(version, &signal);
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    let (ids, bytes) = contents_now(&catalog);
    assert!(!ids.is_empty() && ids.len() as i64 <= MAX && bytes <= BYTES);
    assert_sound(&catalog);
}

#[test]
fn after_a_crash_the_limits_hold_and_the_newest_acknowledged_document_is_there() {
    for seed in 0..12 {
        let simulation = Environment::simulated(seed);
        let chance = SeededRandom::new(seed);
        let open = || {
            let engine: SharedEngine =
                Betree::open(&simulation.environment, Path::new("/store"), small_options()).unwrap();
            Catalog::open(engine).unwrap()
        };
        let (mut id, mut acknowledged) = (0, None);
        for life in 0..8 {
            let catalog = open();
            if life == 0 {
                create(&catalog, limited());
            }
            let (ids, bytes) = contents_now(&catalog);
            assert!(ids.len() as i64 <= MAX && bytes <= BYTES, "seed {seed}: {} documents", ids.len());
            assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: {ids:?}");
            if let Some(newest) = acknowledged {
                assert!(ids.last().is_some_and(|last| *last >= newest), "seed {seed}: {newest} in {ids:?}");
            }
            assert_sound(&catalog);
            for _ in 0..chance.below(80) {
                let document = document(id, chance.below(700) as usize);
                match chance.below(3) {
                    0 => {
                        insert(&catalog, &document, Durability::Synced);
                        acknowledged = Some(id);
                    }
                    _ => insert(&catalog, &document, Durability::None),
                }
                id += 1;
                simulation.tasks.run_one();
            }
            drop(catalog);
            match chance.below(2) {
                0 => simulation.disk.kill(),
                _ => simulation.disk.crash(chance.next_u64()),
            }
            simulation.tasks.forget_all();
        }
        assert!(acknowledged.is_some(), "seed {seed}: nothing was acknowledged");
    }
}

#[test]
fn lowered_limits_hold_after_the_next_insert_and_older_programs_refuse_the_collection() {
    for (name, engine, _folder) in engines() {
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        create(&catalog, doc! { "capped": true, "size": 100_000 });
        for id in 0..50_i64 {
            insert(&catalog, &document(id, 100), Durability::None);
        }
        let smaller = doc! { "capped": true, "size": 100_000, "max": 7 }.to_raw();
        catalog
            .change_options(&namespace(NAME), &Operation::default(), |_| Ok::<_, CatalogError>(smaller))
            .unwrap();
        assert_eq!(contents_now(&catalog).0.len(), 50, "{name}");
        insert(&catalog, &document(50, 100), Durability::None);
        assert_eq!(contents_now(&catalog).0, (44..=50).collect::<Vec<_>>(), "{name}");
        drop(catalog);
        let again = Catalog::open(engine).unwrap();
        insert(&again, &document(51, 100), Durability::None);
        assert_eq!(contents_now(&again).0, (45..=51).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn a_copy_has_the_newest_documents_and_takes_the_place_of_its_source() {
    for (name, engine, _folder) in engines() {
        let catalog = Catalog::open(engine).unwrap();
        let operation = Operation::default();
        create(&catalog, doc! {});
        for id in 0..100_i64 {
            insert(&catalog, &document(id, 100), Durability::None);
        }
        let other = namespace("two");
        let source = namespace(NAME);
        let copy = |target, uuid| CappedCopy {
            source: &source,
            target,
            options: doc! { "capped": true, "size": 1_024_i64 }.to_raw(),
            uuid,
        };
        let newest = (92..100).collect::<Vec<i64>>();
        catalog
            .copy_as_capped(copy(&other, [8; 16]), Caller::may_block(&operation), Durability::Logged)
            .unwrap();
        let reader = catalog.begin(Begin::READ).unwrap();
        assert_eq!(contents(&catalog.collection("test", "two").unwrap(), &*reader).0, newest, "{name}");
        reader.rollback();
        let old = catalog.replace_by_capped(copy(&source, [9; 16]), &operation, &|_| {}).unwrap();
        assert_eq!(old.uuid(), [7; 16]);
        assert_eq!(contents_now(&catalog).0, newest, "{name}");
        insert(&catalog, &document(100, 100), Durability::None);
        assert_eq!(contents_now(&catalog).0, (93..=100).collect::<Vec<i64>>(), "{name}");
        assert_sound(&catalog);
        let refused = catalog.begin_load(
            &namespace("three"),
            doc! { "capped": true, "size": 256 }.to_raw(),
            [1; 16],
            Vec::new(),
        );
        assert!(refused.is_err());
    }
}

#[test]
fn a_rename_replaces_its_target_in_one_commit_at_every_call_of_the_disk() {
    for calls in 0..60 {
        let simulation = Environment::simulated(3);
        let open = || {
            let engine: SharedEngine =
                Betree::open(&simulation.environment, Path::new("/store"), small_options()).unwrap();
            Catalog::open(engine).unwrap()
        };
        let (from, to) = (namespace(NAME), namespace("two"));
        {
            let catalog = open();
            create(&catalog, doc! {});
            insert(&catalog, &document(1, 10), Durability::Synced);
            catalog.create_collection(&to, RawDocumentBuf::new(), [2; 16]).unwrap();
            simulation.disk.crash_at_call(simulation.disk.calls() + calls);
            let operation = Operation::default();
            let renaming =
                pando_catalog::Renaming { from: &from, to: &to, uuid: None, taken: TakenName::Replaced };
            let rename = std::panic::AssertUnwindSafe(|| catalog.rename(&renaming, &operation, &|_| {}));
            let _crashed = std::panic::catch_unwind(rename);
        }
        simulation.disk.crash(calls);
        simulation.tasks.forget_all();
        let catalog = open();
        let uuid = |name| catalog.collection("test", name).map(|found| found.uuid());
        match (uuid(NAME), uuid("two")) {
            (Some([7, ..]), Some([2, ..])) | (None, Some([7, ..])) => {}
            other => panic!("after {calls} calls: {other:?}"),
        }
    }
}
