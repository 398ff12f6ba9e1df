//! The benefit of runs, by counters: random inserts write little, ascending ones write each entry once, reads
//! stay short.

use std::path::Path;
use std::sync::Arc;

use pando_betree::{Betree, Options, TreeReport, verify};
use pando_environment::{Environment, Random, SeededRandom, Simulation};
use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, Direction, Durability, Engine, KeyRange, ScanEnd, TreeId,
    TreeOptions,
};

const FOLDER: &str = "/store";

struct Store {
    simulation: Simulation,
    engine: Arc<Betree>,
    tree: TreeId,
}

impl Store {
    /// Leaves of 8 KB, eight to a node: a tree of 2 MB has as many leaves as one of 128 MB usually has.
    fn new(buffer_percent: &str) -> Store {
        let entries = [
            ("pageSize", "512B"),
            ("leafSize", "8KB"),
            ("fanout", "8"),
            ("runSize", "8KB"),
            ("compression", "none"),
            ("bufferPercent", buffer_percent),
        ];
        let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut options = Options::default().with_entries(&entries).expect("the options are possible");
        (options.cache_bytes, options.partition_bytes) = (1 << 20, 64 << 10);
        let simulation = Environment::simulated(7);
        let engine =
            Betree::open(&simulation.environment, Path::new(FOLDER), options).expect("the store opens");
        let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is created");
        Store { simulation, engine, tree }
    }

    fn put(&self, keys: impl Iterator<Item = u64>, value: &[u8]) {
        let mut keys = keys.peekable();
        while keys.peek().is_some() {
            let mut writer = self.engine.begin(Begin::WRITE).expect("a writer begins");
            for number in keys.by_ref().take(100) {
                writer.put_blind(self.tree, &key(number), value).expect("a write succeeds");
            }
            writer.commit(Durability::Logged).expect("the commit succeeds");
            self.simulation.tasks.run_until_idle();
        }
    }

    fn figure(&self, wanted: &str) -> u64 {
        let statistics = self.engine.statistics();
        let found = statistics.iter().find(|(name, _)| *name == wanted);
        found.unwrap_or_else(|| panic!("there is no figure {wanted}")).1
    }

    fn close(self) -> TreeReport {
        self.engine.close().expect("the store closes");
        drop(self.engine);
        let report =
            verify(&self.simulation.environment, Path::new(FOLDER)).expect("the store can be checked");
        assert!(report.is_sound(), "{:?}", report.damage);
        report.trees[0].clone()
    }
}

fn key(number: u64) -> Vec<u8> {
    [&number.to_be_bytes()[..], b" and so on, thirty bytes"].concat()
}

fn random(count: u64) -> impl Iterator<Item = u64> {
    let random = SeededRandom::new(3);
    (0..count).map(move |_| random.next_u64())
}

#[test]
fn random_inserts_into_a_large_tree_write_a_third_of_what_they_write_without_runs() {
    let written = ["0", "8"].map(|percent| {
        let store = Store::new(percent);
        store.put(random(40_000), b"");
        let before = store.figure("flushes.leaf_bytes") + store.figure("flushes.run_bytes");
        store.put(random(60_000).skip(40_000), b"");
        let after = store.figure("flushes.leaf_bytes") + store.figure("flushes.run_bytes");
        let report = store.close();
        assert_eq!(report.slices > 0, percent != "0", "{report:?}");
        assert!(report.leaves > 100, "{report:?}");
        (after - before) / 20_000
    });
    assert!(written[1] * 3 < written[0], "{written:?} bytes written an entry, without runs and with them");
}

#[test]
fn ascending_inserts_write_full_leaves_once_and_no_runs() {
    let store = Store::new("8");
    store.put(0..60_000, b"");
    assert_eq!(store.figure("flushes.slices"), 0);
    let rewritten = store.figure("flushes.leaf_entries");
    assert!(rewritten < 90_000, "{rewritten} entries were written into leaves for 60,000");
    let report = store.close();
    assert!(report.raw_bytes / report.leaves > 7_000, "leaves are full: {report:?}");
}

#[test]
fn a_small_tree_has_no_runs() {
    let mut options = Options::default();
    options.partition_bytes = 64 << 10;
    let simulation = Environment::simulated(7);
    let engine = Betree::open(&simulation.environment, Path::new(FOLDER), options).expect("the store opens");
    let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is created");
    let store = Store { simulation, engine, tree };
    store.put(random(20_000), &[7; 40]);
    assert_eq!(store.figure("flushes.slices"), 0);
    assert!(store.close().leaves > 1);
}

#[test]
fn compacting_sends_all_that_waits_into_leaves_and_gives_back_room() {
    let store = Store::new("25");
    store.put(random(60_000), b"");
    store.put(random(60_000).take(30_000), b"other");
    store.engine.checkpoint().expect("a checkpoint is made");
    let on_disk = || store.engine.bytes_on_disk(None).expect("it has a size");
    let (slices, before) = (store.figure("flushes.slices"), on_disk());
    assert!(slices > 100, "{slices}");
    let reader = store.engine.begin(Begin::READ).expect("a reader begins");
    store.engine.compact(&[store.tree], &pando_storage::Operation::default()).expect("the tree is compacted");
    let value = reader.get(store.tree, &key(random(1).next().expect("a number")), BlockingMode::MayBlock);
    assert_eq!(value.expect("it is read").as_deref(), Some(&b"other"[..]));
    drop(reader);
    store.engine.compact(&[], &pando_storage::Operation::default()).expect("all trees are compacted");
    assert!(on_disk() < before, "{} bytes, {before} before", on_disk());
    let report = store.close();
    assert_eq!((report.slices, report.pending_entries, report.entries), (0, 0, 60_000), "{report:?}");
}

#[test]
fn an_interrupted_compaction_ends_between_two_steps_and_loses_nothing() {
    let store = Store::new("25");
    store.put(random(60_000), b"value");
    store.engine.checkpoint().expect("a checkpoint is made");
    let slices = store.figure("flushes.slices");
    assert!(slices > 100, "{slices}");
    let operation = pando_storage::Operation::default();
    operation.begin();
    operation.interrupt(pando_storage::Interruption::Killed);
    let error = store.engine.compact(&[store.tree], &operation).expect_err("it was killed");
    assert_eq!(error.kind(), pando_storage::ErrorKind::Busy);
    store.engine.compact(&[], &pando_storage::Operation::default()).expect("all trees are compacted");
    let report = store.close();
    assert_eq!((report.slices, report.pending_entries, report.entries), (0, 0, 60_000), "{report:?}");
}

#[test]
fn every_key_is_found_in_runs_and_leaves_and_filters_spare_most_probes() {
    let store = Store::new("20");
    store.put(random(30_000), b"value");
    store.engine.checkpoint().expect("a checkpoint succeeds");
    let reader = store.engine.begin(Begin::READ).expect("a reader begins");
    for number in random(30_000) {
        let found = reader.get(store.tree, &key(number), BlockingMode::MayBlock).expect("a get succeeds");
        assert_eq!(found.as_deref(), Some(&b"value"[..]));
    }
    let (probes, vain) = (store.figure("runs.probes"), store.figure("runs.false_positives"));
    assert!(probes - vain > 1_000, "of {probes} probes {vain} in vain");
    let spared = store.figure("runs.skipped_probes");
    assert!(spared > 10 * vain, "filters spared {spared} probes, {vain} were in vain");
    let splits = (store.figure("flushes.leaf_splits"), store.figure("flushes.node_splits"));
    assert!(splits.0 > 10 && splits.1 > 0, "{splits:?} leaves and nodes were divided");
    assert!(vain < 30_000 / 10, "{vain} probes in vain for 30,000 gets");
    let report_slices = {
        drop(reader);
        store.close().slices
    };
    assert!(report_slices > 0);
}

#[test]
fn keys_that_are_overwritten_again_and_again_stay_in_the_buffers_if_there_is_room_for_them_once() {
    let store = Store::new("8");
    store.put(random(20_000), &[b'v'; 100]);
    let merged_before = store.figure("flushes.entries");
    // 450 keys take some 140 KB of buffers of 256 KB, of which usually half is used.
    let random = SeededRandom::new(3);
    store.put((0..120_000).map(|_| random.below(450) << 55), &[b'w'; 100]);
    let merged = store.figure("flushes.entries") - merged_before;
    assert!(merged < 24_000, "{merged} of 120,000 writes were merged");
    // Commits drop what those before them have left: two versions of all keys would be 203,000 bytes, and
    // swept again and again.
    let (buffered, swept) = (store.figure("buffers.bytes"), store.figure("buffers.swept_bytes"));
    assert!(
        buffered < 175_000 && swept < 100_000,
        "{buffered} bytes are buffered of 450 keys, {swept} were swept"
    );
    store.close();
}

#[test]
fn the_count_of_a_tree_that_is_overwritten_at_random_stays_near_the_truth() {
    let store = Store::new("30");
    store.put(random(20_000), &[7; 50]);
    store.engine.checkpoint().expect("a checkpoint succeeds");
    let numbers: Vec<u64> = random(20_000).collect();
    let chance = SeededRandom::new(8);
    store.put((0..60_000).map(|_| numbers[chance.below(20_000) as usize]), &[9; 50]);
    let estimate = store.engine.tree_estimate(store.tree).expect("a tree has an estimate");
    assert!((19_500..=20_500).contains(&estimate.entries), "{estimate:?}");
    assert!(store.close().pending_entries > 1_500, "without what waits the count would be right by itself");
}

/// The number of entries that a scan of everything finds.
fn count(store: &Store) -> usize {
    let reader = store.engine.begin(Begin::READ).expect("a reader begins");
    let limits = BatchLimits { entries_max: 1_000, bytes_max: 1 << 20 };
    let (mut rest, mut batch, mut entries) = (KeyRange::all(), Batch::new(), 0);
    loop {
        let end =
            reader.scan(store.tree, &rest, Direction::Forward, limits, BlockingMode::MayBlock, &mut batch);
        entries += batch.len();
        match (end.expect("a scan succeeds"), batch.last()) {
            (ScanEnd::More, Some((last, _))) => rest.advance_past(last, Direction::Forward),
            _ => return entries,
        }
    }
}

#[test]
fn keys_deleted_while_much_is_pending_are_gone_and_their_room_comes_back() {
    let store = Store::new("30");
    store.put(random(20_000), &[7; 50]);
    assert_eq!(count(&store), 20_000);
    let mut numbers: Vec<u64> = random(20_000).collect();
    numbers.sort_unstable();
    for chunk in numbers.chunks(100) {
        let mut writer = store.engine.begin(Begin::WRITE).expect("a writer begins");
        for number in chunk {
            writer.delete_blind(store.tree, &key(*number)).expect("a write succeeds");
        }
        writer.commit(Durability::Logged).expect("the commit succeeds");
        store.simulation.tasks.run_until_idle();
    }
    assert_eq!(count(&store), 0);
    // A second round of writes and deletes takes what still waits down into the leaves.
    store.put(random(20_000), b"");
    assert_eq!(count(&store), 20_000);
    let report = store.close();
    assert!(report.leaves < 200, "{report:?}");
}
