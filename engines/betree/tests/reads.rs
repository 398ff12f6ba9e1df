//! The cost of reads, by counters: long scans use few device calls and spare the cache; leaf filters spare
//! lookups.

use std::path::Path;
use std::sync::Arc;

use pando_betree::{Betree, Options, verify};
use pando_environment::{Environment, Random, SeededRandom, Simulation};
use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, Cursor, Direction, Durability, Engine, KeyRange, ScanEnd,
    TreeId, TreeOptions,
};

const FOLDER: &str = "/store";
/// Entries of about 220 bytes: with pages of 2 KB some 1,100 pages, 70 leaves.
const ENTRIES: u64 = 10_000;

struct Store {
    simulation: Simulation,
    options: Options,
    engine: Arc<Betree>,
    tree: TreeId,
}

impl Store {
    fn new(more: &[(&str, &str)], cache_bytes: u64) -> Store {
        let usual = [("pageSize", "2KB"), ("leafSize", "32KB"), ("runSize", "16KB"), ("compression", "none")];
        let entries: Vec<_> =
            usual.iter().chain(more).map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let mut options = Options::default().with_entries(&entries).expect("the options are possible");
        (options.cache_bytes, options.partition_bytes) = (cache_bytes, 64 << 10);
        let simulation = Environment::simulated(5);
        let engine = Betree::open(&simulation.environment, Path::new(FOLDER), options.clone());
        let engine = engine.expect("a new store opens");
        let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is created");
        let store = Store { simulation, options, engine, tree };
        store.fill();
        store.reopened()
    }

    /// In random order, so that runs are written as well.
    fn fill(&self) {
        let random = SeededRandom::new(9);
        let mut numbers: Vec<u64> = (0..ENTRIES).collect();
        for at in (1..numbers.len()).rev() {
            numbers.swap(at, random.below(at as u64 + 1) as usize);
        }
        for chunk in numbers.chunks(100) {
            let mut writer = self.engine.begin(Begin::WRITE).expect("a writer begins");
            for number in chunk {
                writer.put_blind(self.tree, &key(*number), &value(*number)).expect("a write succeeds");
            }
            writer.commit(Durability::Logged).expect("the commit succeeds");
            self.simulation.tasks.run_until_idle();
        }
        self.engine.checkpoint().expect("a checkpoint succeeds");
    }

    /// The same store with nothing in memory.
    fn reopened(self) -> Store {
        self.engine.close().expect("the store closes");
        drop(self.engine);
        self.simulation.tasks.forget_all();
        let report = verify(&self.simulation.environment, Path::new(FOLDER)).expect("it can be checked");
        assert!(report.is_sound(), "{:?}", report.damage);
        let engine = Betree::open(&self.simulation.environment, Path::new(FOLDER), self.options.clone());
        Store { engine: engine.expect("the store opens"), ..self }
    }

    fn figure(&self, name: &str) -> u64 {
        self.engine.statistics().get(name).unwrap_or_else(|| panic!("there is no figure {name}"))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let reader = self.engine.begin(Begin::READ).expect("a reader begins");
        let found = reader.get(self.tree, key, BlockingMode::MayBlock).expect("a get succeeds");
        found.map(|value| value.to_vec())
    }

    /// Entries of a whole scan, which are all there.
    fn scan(&self, direction: Direction) -> u64 {
        let reader = self.engine.begin(Begin::READ).expect("a reader begins");
        let mut cursor = Cursor::new(self.tree, KeyRange::all(), direction);
        let mut seen = 0;
        while let Some((found, content)) =
            cursor.next(&*reader, BlockingMode::MayBlock).expect("a scan succeeds")
        {
            let number = if direction == Direction::Forward { seen } else { ENTRIES - 1 - seen };
            assert_eq!((found, content), (&key(number)[..], &value(number)[..]));
            seen += 1;
        }
        seen
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key number {number:08}").into_bytes()
}

fn value(number: u64) -> Vec<u8> {
    let random = SeededRandom::new(number);
    (0..25).flat_map(|_| random.next_u64().to_le_bytes()).collect()
}

/// Each works as the others do, with any messages in runs.
const LAYOUTS: [&[(&str, &str)]; 3] = [
    &[("bufferPercent", "0")],
    &[("bufferPercent", "8"), ("fanout", "4")],
    &[("bufferPercent", "50"), ("fanout", "4")],
];

#[test]
fn a_long_cold_scan_reads_a_leaf_with_few_calls_and_nothing_twice() {
    for (layout, calls_max) in LAYOUTS.into_iter().zip([100, 900, 900]) {
        for direction in [Direction::Forward, Direction::Backward] {
            // With 512 KB directories that come drive out a page in forty of those that lie ahead.
            let store = Store::new(layout, 640 << 10);
            let stored = store.figure("data.file_bytes") - store.figure("data.free_bytes");
            assert_eq!(store.scan(direction), ENTRIES);
            let (calls, bytes) =
                (store.figure("reads.scan_device_reads"), store.figure("reads.scan_device_bytes"));
            assert!((20..calls_max).contains(&calls), "{calls} calls, {layout:?} {direction:?}");
            assert!(bytes < stored * 11 / 10, "{bytes} bytes of {stored} read, {layout:?} {direction:?}");
            assert_eq!(store.figure("reads.scan_rows"), ENTRIES);
        }
    }
}

#[test]
fn a_long_scan_leaves_the_pages_that_others_use_in_the_cache() {
    let store = Store::new(&[("bufferPercent", "0")], 512 << 10);
    let hot = || (0..ENTRIES).step_by(100);
    let misses_of_hot = || {
        let before = store.figure("cache.misses");
        for number in hot() {
            assert_eq!(store.get(&key(number)), Some(value(number)));
        }
        store.figure("cache.misses") - before
    };
    for _ in 0..5 {
        misses_of_hot();
    }
    assert_eq!(misses_of_hot(), 0, "the hot pages are in memory");
    // In batches of large limits, but few rows: each page serves several of them, and is no hotter for it.
    let reader = store.engine.begin(Begin::READ).expect("a reader begins");
    let limits = BatchLimits { entries_max: 2, ..BatchLimits::LARGEST };
    let (mut rest, mut batch, mut seen) = (KeyRange::all(), Batch::new(), 0);
    loop {
        let direction = Direction::Forward;
        let end = reader.scan(store.tree, &rest, direction, limits, BlockingMode::MayBlock, &mut batch);
        seen += batch.len() as u64;
        match (end.expect("a scan succeeds"), batch.last()) {
            (ScanEnd::More, Some((last, _))) => rest.advance_past(last, direction),
            _ => break,
        }
    }
    assert_eq!(seen, ENTRIES);
    let missed = misses_of_hot();
    assert!(missed <= 10, "{missed} of 100 hot pages had gone");
}

#[test]
fn a_lookup_of_what_is_not_there_reads_no_page_of_a_leaf_that_has_a_filter() {
    let absent = |number: u64| format!("key number {number:08} and more").into_bytes();
    let misses = [None, Some(("leafFilterBits", "12"))].map(|filter| {
        let layout: Vec<_> = [("bufferPercent", "0")].into_iter().chain(filter).collect();
        let store = Store::new(&layout, 512 << 10);
        // The root and the directories, once.
        (0..ENTRIES).step_by(50).for_each(|number| assert_eq!(store.get(&absent(number)), None));
        let before = store.figure("cache.misses");
        (0..ENTRIES).step_by(7).for_each(|number| assert_eq!(store.get(&absent(number)), None));
        let missed = store.figure("cache.misses") - before;
        let (negatives, spared) =
            (store.figure("filters.leaf_negatives"), store.figure("filters.spared_reads"));
        assert_eq!(negatives > 0, filter.is_some());
        if filter.is_some() {
            assert!(negatives > ENTRIES / 7 && spared > ENTRIES / 7, "{negatives}, {spared} reads spared");
        }
        for number in (0..ENTRIES).step_by(97) {
            assert_eq!(store.get(&key(number)), Some(value(number)));
        }
        missed
    });
    assert!(misses[0] > 500, "{misses:?} pages read without filters and with them");
    assert!(misses[1] < 30, "{misses:?} pages read without filters and with them");
}
