//! A history of what threads saw, checked afterwards: every read of every transaction, against every commit.
//!
//! 1. Threads run random transactions over few keys. Each writes values that are unique in the run, and keeps
//!    a *record*. A record has its snapshot, every value that it read (absent ones too), the values that it
//!    wrote, and the time of its commit.
//! 2. When all have ended, the commits give each key its *versions*.
//! 3. Each read must have given the newest version that its snapshot sees, or the transaction's own write. Of
//!    two commits that wrote the same key, the later one must have begun after the earlier one. A transaction
//!    that began after a commit was acknowledged must see it.
//!
//! Timing differs from run to run, and with it the interleavings. A failure names the seed of the choices all
//! the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use pando_environment::Environment;
use pando_storage::{
    Begin, CommitTimestamp, Direction, Durability, KeyRange, SharedEngine, SnapshotTimestamp, StorageError,
    Transaction, TreeId,
};

use crate::subject::{Choices, Opened, Subject, entries_in, value};

const THREADS: u64 = 4;
const TRANSACTIONS_EACH: u64 = 250;
const KEYS: usize = 24;

/// A tree that is written with intents, and one that is written blindly beside it.
const GUARDED: usize = 0;
const BLIND: usize = 1;

type Place = (usize, u8);
type Value = Option<Vec<u8>>;

/// The reads and writes of one transaction.
struct Record {
    snapshot: SnapshotTimestamp,
    /// The latest commit that had been acknowledged, to any thread, before it began.
    acknowledged: CommitTimestamp,
    /// Reads of what it had not written itself.
    reads: Vec<(Place, Value)>,
    writes: BTreeMap<Place, Value>,
    /// `None`: it rolled back, or lost a conflict.
    committed: Option<CommitTimestamp>,
}

/// The state that all threads share.
struct Shared {
    engine: SharedEngine,
    trees: [TreeId; 2],
    acknowledged: AtomicU64,
    is_over: AtomicBool,
}

/// Threads at work while checkpoints run; then every read is held against every commit.
pub fn every_read_is_explained_by_the_commits_that_its_snapshot_sees(subject: &Subject) {
    let engine = subject.open();
    let seed = Environment::real().random().next_u64();
    let trees = [engine.tree("guarded"), engine.tree("blind")];
    let records = run(&engine, trees, seed);
    let versions = versions_of(&records);
    let committed = records.iter().filter(|record| record.committed.is_some()).count();
    assert!(committed > 100, "seed {seed}: only {committed} transactions committed");
    for record in &records {
        check(record, &versions, seed);
    }
    check_last_state(&engine, trees, &versions, seed);
}

fn run(engine: &Opened, trees: [TreeId; 2], seed: u64) -> Vec<Record> {
    let (acknowledged, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let shared = Arc::new(Shared { engine: engine.share(), trees, acknowledged, is_over });
    let workers: Vec<_> = (0..THREADS)
        .map(|number| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut choices = Choices::of_seed(seed.wrapping_add(number));
                let one = |at| transaction(&shared, &mut choices, number * TRANSACTIONS_EACH + at);
                (0..TRANSACTIONS_EACH).map(one).collect::<Vec<Record>>()
            })
        })
        .collect();
    let checkpoints = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            while !shared.is_over.load(Ordering::SeqCst) {
                shared.engine.checkpoint().expect("the checkpoint succeeds");
                thread::yield_now();
            }
        })
    };
    let records = workers.into_iter().flat_map(|worker| worker.join().expect("no worker panics")).collect();
    shared.is_over.store(true, Ordering::SeqCst);
    checkpoints.join().expect("no checkpoint panics");
    records
}

/// One transaction of a few steps; `number` makes its values its own.
fn transaction(shared: &Shared, choices: &mut Choices, number: u64) -> Record {
    let acknowledged = CommitTimestamp::new(shared.acknowledged.load(Ordering::SeqCst));
    let mut writer = shared.engine.begin(Begin::WRITE).expect("a writer begins");
    let mut record = Record {
        snapshot: writer.snapshot(),
        acknowledged,
        reads: Vec::new(),
        writes: BTreeMap::new(),
        committed: None,
    };
    for step in 0..2 + choices.below(6) {
        let outcome = match choices.below(10) {
            0..=3 => {
                get(shared, &*writer, choices, &mut record);
                Ok(())
            }
            4 => {
                scan(shared, &*writer, choices, &mut record);
                Ok(())
            }
            5 => detour(shared, &mut *writer, choices),
            _ => update(shared, &mut *writer, choices, &mut record, &format!("{number} {step}")),
        };
        if let Err(error) = outcome {
            assert!(error.is_conflict(), "the update failed: {error:?}");
            writer.rollback();
            return record;
        }
        if choices.one_in(3) {
            thread::yield_now();
        }
    }
    if choices.one_in(8) {
        writer.rollback();
        return record;
    }
    match writer.commit(Durability::None) {
        Ok(receipt) if !record.writes.is_empty() => {
            shared.acknowledged.fetch_max(receipt.timestamp.get(), Ordering::SeqCst);
            record.committed = Some(receipt.timestamp);
        }
        Ok(_) => {}
        Err(error) => assert!(error.is_conflict(), "the commit failed: {error:?}"),
    }
    record
}

fn note_read(record: &mut Record, place: Place, found: Value) {
    match record.writes.get(&place) {
        Some(own) => assert_eq!(&found, own, "a transaction does not see its own write at {place:?}"),
        None => record.reads.push((place, found)),
    }
}

fn get(shared: &Shared, writer: &dyn Transaction, choices: &mut Choices, record: &mut Record) {
    let place = (choices.below(2), choices.below(KEYS) as u8);
    let found = value(writer, shared.trees[place.0], [place.1]);
    note_read(record, place, found);
}

fn scan(shared: &Shared, writer: &dyn Transaction, choices: &mut Choices, record: &mut Record) {
    let slot = choices.below(2);
    let direction = if choices.one_in(2) { Direction::Forward } else { Direction::Backward };
    let found = entries_in(writer, shared.trees[slot], &KeyRange::all(), direction);
    let mut found: BTreeMap<Vec<u8>, Vec<u8>> = found.into_iter().collect();
    for key in 0..KEYS as u8 {
        let value = found.remove(&vec![key]);
        note_read(record, (slot, key), value);
    }
    assert!(found.is_empty(), "a scan found keys that nobody wrote: {found:?}");
}

fn update(
    shared: &Shared,
    writer: &mut dyn Transaction,
    choices: &mut Choices,
    record: &mut Record,
    content: &str,
) -> Result<(), StorageError> {
    let key = choices.below(KEYS) as u8;
    let [guarded, blind] = shared.trees;
    let content = if choices.one_in(4) { None } else { Some(content.as_bytes().to_vec()) };
    match &content {
        Some(content) => writer.put(guarded, &[key], content)?,
        None => writer.delete(guarded, &[key])?,
    }
    // The intent on the guarded key keeps others away from this one.
    match &content {
        Some(content) => writer.put_blind(blind, &[key], content)?,
        None => writer.delete_blind(blind, &[key])?,
    }
    record.writes.insert((GUARDED, key), content.clone());
    record.writes.insert((BLIND, key), content);
    Ok(())
}

/// Writes that are taken back before anyone could see them.
fn detour(shared: &Shared, writer: &mut dyn Transaction, choices: &mut Choices) -> Result<(), StorageError> {
    let savepoint = writer.savepoint();
    let outcome = writer.put(shared.trees[GUARDED], &[choices.below(KEYS) as u8], b"never committed");
    if outcome.is_ok() {
        writer.rollback_to(savepoint);
    }
    outcome
}

/// A key's values in the order of their commits, each with the snapshot of its writer.
type Versions = BTreeMap<Place, BTreeMap<CommitTimestamp, (SnapshotTimestamp, Value)>>;

fn versions_of(records: &[Record]) -> Versions {
    let mut versions = Versions::new();
    for record in records {
        let Some(timestamp) = record.committed else { continue };
        for (place, value) in &record.writes {
            let of_key = versions.entry(*place).or_default();
            let before = of_key.insert(timestamp, (record.snapshot, value.clone()));
            assert!(before.is_none(), "two transactions committed at {timestamp:?}");
        }
    }
    versions
}

fn check(record: &Record, versions: &Versions, seed: u64) {
    let sees = record.snapshot.sees(record.acknowledged);
    assert!(
        sees,
        "seed {seed}: {:?} began after {:?} was acknowledged",
        record.snapshot, record.acknowledged
    );
    for (place, found) in &record.reads {
        let seen = versions.get(place).and_then(|of_key| {
            of_key
                .iter()
                .rev()
                .find(|(timestamp, _)| record.snapshot.sees(**timestamp))
                .map(|(_, (_, value))| value)
        });
        let expected = seen.cloned().flatten();
        assert_eq!(*found, expected, "seed {seed}: {place:?} as seen by {:?}", record.snapshot);
    }
    let Some(committed) = record.committed else { return };
    for place in record.writes.keys() {
        let before = versions[place].range(..committed).next_back();
        let sees_it = before.is_none_or(|(timestamp, _)| record.snapshot.sees(*timestamp));
        assert!(sees_it, "seed {seed}: the commit {committed:?} overwrote {before:?}, which it had not seen");
    }
}

fn check_last_state(engine: &Opened, trees: [TreeId; 2], versions: &Versions, seed: u64) {
    let reader = engine.reader();
    for slot in [GUARDED, BLIND] {
        for key in 0..KEYS as u8 {
            let of_key = versions.get(&(slot, key));
            let last =
                of_key.and_then(|of_key| of_key.values().next_back()).and_then(|(_, value)| value.clone());
            assert_eq!(
                value(&*reader, trees[slot], [key]),
                last,
                "seed {seed}: the last value of {slot} {key}"
            );
        }
    }
}
