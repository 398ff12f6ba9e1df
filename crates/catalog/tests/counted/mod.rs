//! Random histories of two collections, and the check that counters equal a scan at every snapshot.

use std::sync::Arc;

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, Direction, Durability, IndexDescription, KeyRange, Lease,
    Namespace, Operation, SharedEngine, Transaction, WriteError, WriteTransaction, verify_collection,
};
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, Value, doc};
use pando_environment::{Environment, Random, SeededRandom};

pub const DATABASE: &str = "test";
pub const NAMES: [&str; 2] = ["one", "two"];
const IDS: u64 = 40;

pub fn namespace(name: &str) -> Namespace {
    Namespace::new(DATABASE, name).unwrap()
}

/// Every engine in turn, each with a store of its own.
pub fn engines() -> Vec<(&'static str, SharedEngine, tempfile::TempDir)> {
    let environment = Environment::real();
    let folder = || tempfile::tempdir().unwrap();
    let (of_memory, of_lmdb, of_betree) = (folder(), folder(), folder());
    let memory: SharedEngine = Arc::new(pando_memory::MemoryEngine::new(&environment));
    let options = pando_lmdb::LmdbOptions::default();
    let lmdb: SharedEngine =
        Arc::new(pando_lmdb::LmdbEngine::open(&environment, of_lmdb.path(), options).unwrap());
    let betree: SharedEngine =
        pando_betree::Betree::open(&environment, of_betree.path(), small_options()).unwrap();
    vec![("memory", memory, of_memory), ("lmdb", lmdb, of_lmdb), ("betree", betree, of_betree)]
}

/// So small that the counters are flushed again and again, and that transactions spill.
pub fn small_options() -> pando_betree::Options {
    let entries = [("pageSize", "512B"), ("leafSize", "2KB"), ("fanout", "4")];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = pando_betree::Options::default().with_entries(&entries).unwrap();
    options.cache_bytes = 256 << 10;
    options.partition_bytes = 4 << 10;
    options.log_budget_bytes = 1 << 20;
    options
}

pub fn index(keys: Document, name: &str, options: &[&str]) -> IndexDescription {
    let mut specification = doc! { "v": 2, "key": keys, "name": name };
    for option in options {
        specification.push(*option, Value::Boolean(true));
    }
    IndexDescription::from_specification(&specification.to_raw()).unwrap()
}

/// The options of a collection, with every layout in turn.
pub fn some_options(number: usize) -> RawDocumentBuf {
    let options = match number % 3 {
        0 => doc! {},
        1 => doc! { "layout": "heap" },
        _ => doc! { "primaryKey": { "b": -1, "_id": 1 } },
    };
    options.to_raw()
}

/// The indexes that a history creates and drops: with arrays, sparse, unique, and one that needs no counter.
pub fn some_index(chance: &SeededRandom) -> IndexDescription {
    match chance.below(4) {
        0 => index(doc! { "a": 1 }, "a_1", &[]),
        1 => index(doc! { "s": 1 }, "s_1", &["sparse"]),
        2 => index(doc! { "u": 1 }, "u_1", &["unique", "sparse"]),
        _ => index(doc! { "b": -1 }, "b_-1", &["clustering"]),
    }
}

pub fn some_document(chance: &SeededRandom, id: i32) -> RawDocumentBuf {
    let mut made = doc! { "_id": id, "b": chance.below(9) as i32 };
    match chance.below(3) {
        0 => made.push("a", Value::Array((0..chance.below(5) as i32).map(Value::Int32).collect())),
        1 => made.push("a", Value::from("x".repeat(chance.below(300) as usize))),
        _ => {}
    }
    if chance.below(2) == 0 {
        made.push("s", Value::Int32(chance.below(9) as i32));
    }
    if chance.below(3) == 0 {
        made.push("u", Value::Int32(chance.below(60) as i32));
    }
    made.to_raw()
}

/// Writes one document; whether it was written. A duplicate is undone, and a conflict is given back.
pub fn write_one(
    lease: &Lease,
    transaction: &mut WriteTransaction,
    chance: &SeededRandom,
    id: i32,
) -> Result<bool, WriteError> {
    let blocking = BlockingMode::MayBlock;
    let savepoint = transaction.savepoint();
    let key = lease.locate(&**transaction, &lease.id_key(RawValue::Int32(id)), blocking)?;
    let key = key.unwrap_or_default();
    let old = lease.fetch(&**transaction, &key, blocking)?;
    let new = some_document(chance, id);
    let outcome = match old.as_deref().map(|bytes| RawDocument::from_bytes(bytes).unwrap()) {
        None => lease.insert(transaction, &new, blocking),
        Some(old) if chance.below(3) == 0 => lease.remove(transaction, &key, old, blocking),
        Some(old) => lease.replace(transaction, &key, old, &new, blocking),
    };
    match outcome {
        Err(WriteError::DuplicateKey { .. }) => {
            transaction.rollback_to(savepoint);
            Ok(false)
        }
        Ok(()) if chance.below(8) == 0 => {
            transaction.rollback_to(savepoint);
            Ok(false)
        }
        other => other.map(|()| true),
    }
}

pub fn lease(catalog: &Catalog, name: &str) -> Option<Lease> {
    catalog.lease(DATABASE, name, Caller::may_block(&Operation::default())).unwrap()
}

/// One transaction over both collections: committed, or rolled back.
pub fn write_some(catalog: &Catalog, chance: &SeededRandom, ids: std::ops::Range<u64>) {
    let leases: Vec<Lease> = NAMES.iter().filter_map(|name| lease(catalog, name)).collect();
    let mut transaction = catalog.begin_write().unwrap();
    for _ in 0..1 + chance.below(6) {
        let Some(lease) = leases.get(chance.below(2) as usize) else { continue };
        let id = (ids.start + chance.below(ids.end - ids.start)) as i32;
        match write_one(lease, &mut transaction, chance, id) {
            Ok(_) => {}
            Err(error) if error.is_conflict() => return transaction.rollback(),
            Err(other) => panic!("{other}"),
        }
    }
    if chance.below(4) == 0 {
        transaction.write_counters().unwrap();
        assert_counted(catalog, &*transaction);
        // Writes behind the counters of the same transaction.
        if let Some(lease) = leases.first() {
            let savepoint = transaction.savepoint();
            match write_one(lease, &mut transaction, chance, ids.start as i32) {
                Err(error) if error.is_conflict() => return transaction.rollback(),
                outcome => _ = outcome.unwrap(),
            }
            transaction.write_counters().unwrap();
            assert_counted(catalog, &*transaction);
            if chance.below(2) == 0 {
                transaction.rollback_to(savepoint);
            }
        }
    }
    match chance.below(5) {
        0 => transaction.rollback(),
        _ => match transaction.commit(Durability::None) {
            Err(error) if error.kind() == pando_catalog::ErrorKind::Conflict => {}
            outcome => _ = outcome.unwrap(),
        },
    }
}

/// A statement about collections and indexes. Those that cannot be are refused.
pub fn change_something(catalog: &Catalog, chance: &SeededRandom) {
    let name = namespace(NAMES[chance.below(2) as usize]);
    let other = namespace(NAMES[chance.below(2) as usize]);
    let operation = &Operation::default();
    let uuid = [chance.next_u64() as u8; 16];
    let _may_be_refused = match chance.below(9) {
        0 => catalog.drop_collection(&name, operation, &|_| {}).map(drop),
        1 => catalog.rename_collection(&name, &other, operation),
        2 | 3 => catalog.drop_index(&name, &some_index(chance).name, operation),
        4 | 5 => catalog.create_collection(&name, some_options(uuid[0].into()), uuid).map(drop),
        _ => {
            let wanted = some_index(chance);
            let exists = catalog
                .collection(DATABASE, name.collection())
                .is_some_and(|collection| collection.index(&wanted.name).is_some());
            if exists { Ok(()) } else { catalog.create_indexes(&name, vec![wanted], operation) }
        }
    };
}

/// Counters equal a scan for a transaction that sees no statement about collections later than its own
/// snapshot; returns the documents of all collections.
pub fn assert_counted(catalog: &Catalog, transaction: &dyn Transaction) -> u64 {
    catalog.collections(DATABASE).iter().map(|collection| assert_collection(collection, transaction)).sum()
}

pub fn assert_collection(collection: &pando_catalog::Collection, transaction: &dyn Transaction) -> u64 {
    let blocking = BlockingMode::MayBlock;
    let (mut documents, mut data_bytes) = (0, 0);
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    while let Some((_, bytes)) = scan.next(transaction, blocking).unwrap() {
        documents += 1;
        data_bytes += bytes.len() as u64;
    }
    let counts = collection.counts(transaction, blocking).unwrap().expect("the collection is counted");
    assert_eq!((counts.documents, counts.data_bytes), (documents, data_bytes), "{collection:?}");
    assert_eq!(collection.document_count(transaction, blocking).unwrap(), Some(documents));
    for (name, counter) in &counts.index_entries {
        let index = collection.index(name).expect("it was just named");
        let mut entries = 0;
        let mut scan = collection.scan_index(index, KeyRange::all(), Direction::Forward);
        while scan.next(transaction, blocking).unwrap().is_some() {
            entries += 1;
        }
        assert_eq!(*counter, entries, "index {name} of {collection:?}");
    }
    documents
}

/// The same at the newest snapshot, with the check that `validate` makes.
pub fn assert_sound(catalog: &Catalog) -> u64 {
    let reader = catalog.begin(Begin::READ).unwrap();
    for collection in catalog.collections(DATABASE) {
        let report = verify_collection(&collection, &*reader, &Operation::default()).unwrap();
        assert_eq!(report.problems, Vec::<String>::new(), "{collection:?}");
    }
    assert_counted(catalog, &*reader)
}

/// Steps of a random history, each followed by the check.
pub fn run(catalog: &Catalog, chance: &SeededRandom, steps: usize) {
    for _ in 0..steps {
        if chance.below(6) == 0 {
            change_something(catalog, chance);
        } else {
            write_some(catalog, chance, 0..IDS);
        }
        assert_sound(catalog);
    }
}

/// A store as a program without counters would leave it.
pub fn drop_counters(engine: &SharedEngine) {
    let trees = engine.list_trees().unwrap();
    let counters = trees.iter().find(|tree| tree.name == "counters").expect("there are counters");
    engine.drop_tree(counters.id).unwrap();
}
