//! Merge operators on their way down a tree: their cost to readers, their effect on large values, and that
//! each counts once.
//!
//! The model test, the metamorphic test and the histories show that merges survive crashes and agree with a
//! model.

use std::path::Path;
use std::sync::Arc;

use pando_betree::{Betree, Options, VerifyReport, verify};
use pando_environment::{Environment, SeededRandom, Simulation};
use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, CheckedEngine, Claim, Direction, Durability, Engine, ErrorKind,
    KeyRange, Merge, SharedEngine, Transaction, TreeId, TreeOptions,
};

const FOLDER: &str = "/store";

/// Pages of 1 KB, everything over 1 KB out of line.
const SMALL: [(&str, &str); 4] =
    [("pageSize", "1KB"), ("leafSize", "8KB"), ("fanout", "4"), ("largeValueSize", "1KB")];

struct Store {
    simulation: Simulation,
    options: Options,
    engine: SharedEngine,
    tree: TreeId,
}

impl Store {
    fn new(more: &[(&str, &str)], cache_bytes: u64) -> Store {
        let entries: Vec<_> =
            SMALL.iter().chain(more).map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let mut options = Options::default().with_entries(&entries).expect("the options are possible");
        (options.cache_bytes, options.partition_bytes) = (cache_bytes, 16 << 10);
        let simulation = Environment::simulated(5);
        let engine = open(&simulation, &options);
        let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is created");
        Store { simulation, options, engine, tree }
    }

    /// The same store, opened anew with its options changed, and the report on its files in between.
    fn reopened(self, change: impl FnOnce(&mut Options)) -> (Store, VerifyReport) {
        let Store { simulation, mut options, engine, tree } = self;
        engine.close().expect("the store closes");
        drop(engine);
        simulation.tasks.forget_all();
        let report = verify(&simulation.environment, Path::new(FOLDER)).expect("it can be checked");
        assert!(report.is_sound(), "{:?}", report.damage);
        change(&mut options);
        (Store { engine: open(&simulation, &options), simulation, options, tree }, report)
    }

    fn write(&self, write: impl FnOnce(&mut dyn Transaction, TreeId)) {
        let mut writer = self.engine.begin(Begin::WRITE).expect("a writer begins");
        write(&mut *writer, self.tree);
        writer.commit(Durability::Logged).expect("the commit succeeds");
    }

    fn merge(&self, key: &[u8], merge: Merge<'_>) {
        self.write(|writer, tree| blind(writer, tree, key, merge));
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        self.write(|writer, tree| writer.put(tree, key, value).expect("nobody else writes"));
    }

    fn reader(&self) -> Box<dyn Transaction> {
        self.engine.begin(Begin::READ).expect("a reader begins")
    }

    fn get(&self, reader: &dyn Transaction, key: &[u8]) -> Option<Vec<u8>> {
        reader.get(self.tree, key, BlockingMode::MayBlock).expect("gets succeed").map(|value| value.to_vec())
    }

    fn figure(&self, name: &str) -> u64 {
        self.engine.statistics().get(name).unwrap_or_else(|| panic!("there is no figure {name}"))
    }
}

fn open(simulation: &Simulation, options: &Options) -> SharedEngine {
    let engine = Betree::open(&simulation.environment, Path::new(FOLDER), options.clone());
    CheckedEngine::shared(engine.expect("the store opens") as Arc<dyn Engine>)
}

fn blind(writer: &mut dyn Transaction, tree: TreeId, key: &[u8], merge: Merge<'_>) {
    writer.merge(tree, key, merge, Claim::Blind, BlockingMode::CachedOnly).expect("nothing is read for it");
}

fn key(number: u64) -> Vec<u8> {
    format!("counter {number:06}").into_bytes()
}

#[test]
fn a_get_of_a_merged_key_reads_a_page_more_at_most() {
    const COUNTERS: u64 = 20_000;
    let store = Store::new(&[("bufferPercent", "50"), ("compression", "none")], 1 << 20);
    for first in (0..COUNTERS).step_by(200) {
        store.write(|writer, tree| {
            for number in first..first + 200 {
                writer.put_blind(tree, &key(number), &number.to_le_bytes()).expect("the put succeeds");
            }
        });
        store.simulation.tasks.run_until_idle();
    }
    store.engine.checkpoint().expect("a checkpoint succeeds");
    let (store, _) = store.reopened(|_| ());
    for first in (0..COUNTERS).step_by(500) {
        store.write(|writer, tree| {
            (first..first + 500).step_by(10).for_each(|at| blind(writer, tree, &key(at), Merge::Add(7)));
        });
    }
    let (store, report) = store.reopened(|options| options.cache_bytes = 40 << 10);
    assert!(report.trees[0].pending_entries > 300, "{report:?}");
    // Directories and indexes of slices are in memory once visited; hardly a page is.
    let reads_of = |merged: bool| {
        let reader = store.reader();
        let (mut reads, mut gets) = (0, 0);
        for round in 0..2 {
            let before = store.figure("data.reads");
            gets = 0;
            for number in (0..COUNTERS).step_by(100) {
                let number = if merged { number } else { number + 1 };
                let expected = number + if merged { 7 } else { 0 };
                assert_eq!(
                    store.get(&*reader, &key(number)),
                    Some(expected.to_le_bytes().to_vec()),
                    "{round}"
                );
                gets += 1;
            }
            reads = store.figure("data.reads") - before;
        }
        (reads, gets)
    };
    let (plain, gets) = reads_of(false);
    let (merged, _) = reads_of(true);
    assert!(plain >= gets / 2, "{plain} reads for {gets} gets: it is all in memory");
    assert!(merged <= plain + gets, "{merged} reads for {gets} gets, {plain} where there are no merges");
}

#[test]
fn sums_pass_over_large_values_and_the_greater_of_two_takes_its_place() {
    for percent in ["0", "50"] {
        let store = Store::new(&[("bufferPercent", percent)], 1 << 20);
        let large = |number: u64| vec![number as u8; 5_000];
        (0..200).for_each(|number| store.put(&key(1_000 + number), b"small"));
        (10..40).for_each(|number| store.put(&key(number), &large(number)));
        store.engine.checkpoint().expect("a checkpoint succeeds");
        let written = store.figure("flushes.large_values");
        for _ in 0..3 {
            (10..40).for_each(|number| store.merge(&key(number), Merge::Add(1)));
            store.engine.checkpoint().expect("a checkpoint succeeds");
        }
        assert_eq!(store.figure("flushes.large_values"), written, "{percent}: none was written anew");
        let old = store.reader();
        // Of three, one is less than the value; one is short, one is large itself.
        let operand = |number: u64| match number % 3 {
            0 => vec![1; 10],
            1 => vec![0xFF; 10],
            _ => vec![0xFE; 1_500],
        };
        let expected = |number: u64| large(number).max(operand(number));
        for round in 0..3 {
            (10..40).for_each(|number| store.merge(&key(number), Merge::Max(&operand(number))));
            store.merge(&key(10 + round), Merge::Add(1));
            store.engine.checkpoint().expect("a checkpoint succeeds");
            let new = store.reader();
            for number in 10..40 {
                assert_eq!(store.get(&*old, &key(number)), Some(large(number)), "{percent}");
                assert_eq!(store.get(&*new, &key(number)), Some(expected(number)), "{percent}");
            }
            for direction in [Direction::Forward, Direction::Backward] {
                let mut found = scan(&*new, store.tree, direction);
                if direction == Direction::Backward {
                    found.reverse();
                }
                let wanted: Vec<_> = (10..40).map(|number| (key(number), expected(number))).collect();
                assert!(found[..30] == wanted, "{percent}: {direction:?}");
            }
        }
        drop(old);
        (10..40).for_each(|number| store.merge(&key(number), Merge::Add(1)));
        let (store, report) = store.reopened(|_| ());
        let reader = store.reader();
        assert!((10..40).all(|number| store.get(&*reader, &key(number)) == Some(expected(number))));
        if percent == "0" {
            // Ten stay, ten are short now, ten are large and shorter.
            let tree = &report.trees[0];
            assert_eq!((tree.large_values, tree.large_bytes), (20, 10 * 5_000 + 10 * 1_500));
        }
    }
}

/// All entries, in batches so small that a value ends each.
fn scan(reader: &dyn Transaction, tree: TreeId, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut rest, mut batch, mut found) = (KeyRange::all(), Batch::new(), Vec::new());
    let limits = BatchLimits { entries_max: 9, bytes_max: 6_000 };
    loop {
        reader
            .scan(tree, &rest, direction, limits, BlockingMode::MayBlock, &mut batch)
            .expect("scans succeed");
        let Some((last, _)) = batch.last() else { return found };
        rest.advance_past(last, direction);
        found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
    }
}

#[test]
fn blind_merges_of_many_threads_all_count_while_all_is_merged_and_reopened() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 400;
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let open = || {
        let entries = [("pageSize", "512B"), ("leafSize", "4KB"), ("fanout", "4"), ("bufferPercent", "40")];
        let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut options = Options::default().with_entries(&entries).expect("the options are possible");
        (options.cache_bytes, options.partition_bytes) = (256 << 10, 4 << 10);
        options.log_budget_bytes = 1 << 20;
        options.transaction_memory_bytes = 2_000;
        Betree::open(&Environment::real(), folder.path(), options).expect("the store opens")
    };
    let engine = open();
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("a tree is created");
    engine.close().expect("the store closes");
    drop(engine);
    for life in 0..3 {
        let engine = open();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let engine = &engine;
                scope.spawn(move || {
                    let random = SeededRandom::new(life * THREADS + thread);
                    for round in 0..ROUNDS {
                        let mut writer = engine.begin(Begin::WRITE).expect("a writer begins");
                        blind(&mut *writer, tree, b"all", Merge::Add(1));
                        blind(&mut *writer, tree, &key(random.below(2_000)), Merge::Add(1));
                        // Now and then one that goes to the log in parts.
                        for part in 0..if round % 100 == 50 { 60 } else { 0 } {
                            let key = [&key(10_000 + thread)[..], &[part]].concat();
                            writer.put_blind(tree, &key, &[0; 100]).expect("the put succeeds");
                        }
                        writer.commit(Durability::None).expect("blind merges do not conflict");
                    }
                });
            }
        });
        let check = |engine: &Betree| {
            let reader = engine.begin(Begin::READ).expect("a reader begins");
            let get = |key: &[u8]| {
                let found = reader.get(tree, key, BlockingMode::MayBlock).expect("gets succeed");
                found.map_or(0, |value| u64::from_le_bytes((*value).try_into().expect("a counter")))
            };
            let expected = (life + 1) * THREADS * ROUNDS;
            assert_eq!(get(b"all"), expected);
            assert_eq!((0..2_000).map(|number| get(&key(number))).sum::<u64>(), expected);
        };
        check(&engine);
        assert!(engine.statistics().get("commits.large") >= Some(THREADS), "some went in parts");
        engine.close().expect("the store closes");
        drop(engine);
        let engine = open();
        check(&engine);
    }
    let report = verify(&Environment::real(), folder.path()).expect("it can be checked");
    assert!(report.is_sound(), "{:?}", report.damage);
}

#[test]
fn a_large_transaction_has_no_more_merges_than_one_record_takes() {
    let store = Store::new(&[], 64 << 20);
    let (store, _) = store.reopened(|options| options.transaction_memory_bytes = 1 << 20);
    let mut writer = store.engine.begin(Begin::WRITE).expect("a writer begins");
    let operand = [7; 1_900];
    for number in 0..9_500 {
        writer
            .merge(store.tree, &key(number), Merge::Max(&operand), Claim::Blind, BlockingMode::MayBlock)
            .expect("the merge succeeds");
    }
    let refused = writer.commit(Durability::None).expect_err("it is too much");
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
    let reader = store.reader();
    assert_eq!(store.get(&*reader, &key(0)), None, "nothing has happened");
    drop(reader);
    store.merge(&key(0), Merge::Max(b"m"));
    let (store, _) = store.reopened(|_| ());
    let reader = store.reader();
    assert_eq!(store.get(&*reader, &key(0)), Some(b"m".to_vec()));
}
