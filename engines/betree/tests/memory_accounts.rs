//! Memory accounts: the memory of flushes, cursors and callers counts against the memory limit, and pages
//! make room for it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pando_betree::{Betree, Options};
use pando_environment::simulated::{Fault, FaultRule};
use pando_environment::{Environment, Operation, Random, SeededRandom, Simulation};
use pando_storage::{
    Begin, BlockingMode, CheckedEngine, Cursor, Direction, Durability, Engine, ErrorKind, IteratorEntries,
    KeyRange, LoadDurability, SharedEngine, SortedEntries, StorageError, Transaction, TreeId, TreeOptions,
};

const FOLDER: &str = "/store";
const LIMIT: u64 = 8 << 20;
/// Entries of 1 KB that do not compress: four times the limit.
const ENTRIES: u32 = 32_000;
/// Batches of cursors have an eighth of the limit at most, and the last that was filled goes beyond it.
const BATCHES: u64 = LIMIT / 8 + (512 << 10);

/// Two trees, of which the first is full, in a store with little memory.
struct Store {
    simulation: Simulation,
    engine: SharedEngine,
    full: TreeId,
    written: TreeId,
}

impl Store {
    fn filled() -> Store {
        let simulation = Environment::simulated(1);
        let entries = [("leafSize", "64KB"), ("partitionSize", "64KB"), ("compression", "lz4")];
        let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut options = Options::default().with_entries(&entries).expect("the options are possible");
        options.cache_bytes = LIMIT;
        let engine = Betree::open(&simulation.environment, Path::new(FOLDER), options).expect("it opens");
        let engine = CheckedEngine::shared(engine as Arc<dyn Engine>);
        let tree = |name| engine.create_tree(name, &TreeOptions::default()).expect("a tree is made");
        let (full, written) = (tree("full"), tree("written"));
        let loaded = engine.load(full, &mut Entries { next: 0, entry: None }, LoadDurability::Scratch);
        assert_eq!(loaded.expect("an empty tree can be loaded"), u64::from(ENTRIES));
        Store { simulation, engine, full, written }
    }

    fn figure(&self, name: &str) -> u64 {
        self.engine.statistics().get(name).unwrap_or_else(|| panic!("there is no figure {name}"))
    }

    /// Time passes, and background work looks around each second.
    fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.simulation.clock.advance(Duration::from_secs(1));
            self.simulation.tasks.run_until_idle();
        }
    }

    fn commit(&self, numbers: impl Iterator<Item = u32>) {
        let mut writer = self.engine.begin(Begin::WRITE).expect("a writer begins");
        for number in numbers {
            writer.put(self.written, &number.to_be_bytes(), &value(number)).expect("the put succeeds");
        }
        writer.commit(Durability::Logged).expect("the commit succeeds");
    }

    /// A cursor that has fetched enough to have large batches.
    fn waiting_cursor(&self, reader: &dyn Transaction) -> Cursor {
        let mut cursor = Cursor::new(self.full, KeyRange::all(), Direction::Forward);
        (0..1_000).for_each(|_| {
            cursor.next(reader, BlockingMode::MayBlock).expect("reads succeed").expect("there is more");
        });
        cursor
    }

    /// Reads of the device for a scan of everything.
    fn calls_of_a_scan(&self) -> u64 {
        let before = self.figure("reads.scan_device_reads");
        let reader = self.engine.begin(Begin::READ).expect("a reader begins");
        let mut cursor = Cursor::new(self.full, KeyRange::all(), Direction::Forward);
        let mut count = 0;
        while cursor.next(&*reader, BlockingMode::MayBlock).expect("reads succeed").is_some() {
            count += 1;
        }
        assert_eq!(count, ENTRIES);
        self.figure("reads.scan_device_reads") - before
    }

    fn read_everything(&self) {
        let reader = self.engine.begin(Begin::READ).expect("a reader begins");
        for number in (0..ENTRIES).step_by(3) {
            let found = reader.get(self.full, &number.to_be_bytes(), BlockingMode::MayBlock);
            assert_eq!(found.expect("reads succeed"), Some(value(number).into()), "{number}");
        }
    }
}

fn value(number: u32) -> Vec<u8> {
    let random = SeededRandom::new(u64::from(number));
    (0..128).flat_map(|_| random.next_u64().to_le_bytes()).collect()
}

/// The entries of the full tree.
struct Entries {
    next: u32,
    entry: Option<([u8; 4], Vec<u8>)>,
}

impl SortedEntries for Entries {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        self.entry = (self.next < ENTRIES).then(|| (self.next.to_be_bytes(), value(self.next)));
        self.next += 1;
        Ok(self.entry.as_ref().map(|(key, value)| (key.as_slice(), value.as_slice())))
    }
}

#[test]
fn batches_of_cursors_that_wait_count_and_have_a_bound() {
    let store = Store::filled();
    let calls = store.calls_of_a_scan();
    let reader = store.engine.begin(Begin::READ).expect("a reader begins");
    let mut cursors: Vec<Cursor> = Vec::new();
    for count in 1..=40 {
        cursors.push(store.waiting_cursor(&*reader));
        let bytes = store.figure("cache.batch_bytes");
        assert!(((256 << 10)..=BATCHES).contains(&bytes), "{bytes} bytes of {count} cursors");
    }
    store.read_everything();
    store.pass(2);
    let counted = store.figure("cache.counted_bytes");
    assert!(counted <= LIMIT + LIMIT / 16, "{counted} bytes count");
    let beside = store.calls_of_a_scan();
    assert!(beside <= calls * 3 / 2, "a long scan stays one: {beside} reads of the device, {calls} before");
    for cursor in &mut cursors {
        // The cursor goes on where it stood.
        let (key, found) =
            cursor.next(&*reader, BlockingMode::MayBlock).expect("reads succeed").expect("more");
        assert_eq!((key, found), (&1_000_u32.to_be_bytes()[..], value(1_000).as_slice()));
    }
    let (counted, copies) = (store.figure("cache.batch_bytes"), cursors.clone());
    let with_copies = store.figure("cache.batch_bytes");
    assert!(with_copies > counted && with_copies <= 2 * counted, "{counted}, with copies {with_copies}");
    drop((cursors, copies));
    assert_eq!(store.figure("cache.batch_bytes"), 0);
}

#[test]
fn batches_of_short_entries_and_of_large_ones_have_the_same_bound() {
    let store = Store::filled();
    let short = store.engine.create_tree("short", &TreeOptions::default()).expect("a tree is made");
    let keys: Vec<[u8; 4]> = (0..50_000_u32).map(u32::to_be_bytes).collect();
    let mut entries = IteratorEntries::new(keys.iter().map(|key| (&key[..], &key[..])));
    store.engine.load(short, &mut entries, LoadDurability::Scratch).expect("an empty tree can be loaded");
    let mut writer = store.engine.begin(Begin::WRITE).expect("a writer begins");
    writer.put(store.written, b"a large value", &vec![7; 6 << 20]).expect("the put succeeds");
    (0..9_000_u32).for_each(|number| {
        writer.put(store.written, &[b"b", &number.to_be_bytes()[..]].concat(), &[1; 400]).expect("it is put");
    });
    writer.commit(Durability::Logged).expect("the commit succeeds");
    let reader = store.engine.begin(Begin::READ).expect("a reader begins");
    let mut cursors = Vec::new();
    for count in 1..=60 {
        let tree = if count % 10 == 0 { store.written } else { short };
        let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
        for _ in 0..8_000 {
            cursor.next(&*reader, BlockingMode::MayBlock).expect("reads succeed").expect("there is more");
        }
        cursors.push(cursor);
        let bytes = store.figure("cache.batch_bytes");
        assert!(bytes <= BATCHES, "{bytes} bytes of {count} cursors");
    }
}

#[test]
fn a_dropped_tree_leaves_nothing_in_memory() {
    let store = Store::filled();
    let mut writer = store.engine.begin(Begin::WRITE).expect("a writer begins");
    for number in 0..60_u32 {
        let large = value(number).repeat(100);
        writer.put(store.written, &number.to_be_bytes(), &large).expect("the put succeeds");
    }
    writer.commit(Durability::Logged).expect("the commit succeeds");
    store.engine.checkpoint().expect("a checkpoint is made");
    store.read_everything();
    assert!(store.figure("cache.directory_bytes") > 0);
    for tree in [store.full, store.written] {
        store.engine.drop_tree(tree).expect("it is dropped");
    }
    store.engine.checkpoint().expect("a checkpoint is made");
    store.pass(2);
    assert_eq!(store.figure("cache.directory_bytes"), 0);
    assert_eq!(store.figure("cache.page_bytes"), 0);
    assert_eq!(store.figure("runs.index_bytes"), 0);
}

#[test]
fn work_that_fails_leaves_nothing_in_the_account() {
    let store = Store::filled();
    let tree = store.engine.create_tree("fails", &TreeOptions::default()).expect("a tree is made");
    let mut entries = Entries { next: 0, entry: None };
    let mut failing = Failing { entries: &mut entries, left: 9_000 };
    let failed = store.engine.load(tree, &mut failing, LoadDurability::Scratch);
    assert_eq!(failed.expect_err("its source fails").kind(), ErrorKind::Io);
    let fault = FaultRule::new(Operation::Write, Fault::InputOutputError).on("data.").always();
    store.simulation.disk.inject(fault);
    store.commit(0..100);
    store.pass(3);
    assert!(store.figure("flushes.failed") > 0, "merges had to write");
    store.simulation.disk.clear_faults();
    store.pass(90);
    assert_eq!(store.figure("cache.working_bytes"), 0);
}

/// A source that fails after this many entries.
struct Failing<'e> {
    entries: &'e mut Entries,
    left: u32,
}

impl SortedEntries for Failing<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        self.left = self.left.checked_sub(1).ok_or(StorageError::new(ErrorKind::Io, "no more"))?;
        self.entries.next()
    }
}

#[test]
fn pages_make_room_for_memory_that_is_lent_and_get_it_back() {
    let store = Store::filled();
    store.read_everything();
    store.pass(2);
    let pages = store.figure("cache.page_bytes");
    assert!(pages > LIMIT / 2, "{pages} bytes of pages");
    let lent = [(); 3].map(|()| store.engine.lend_memory(64 << 20));
    assert_eq!(lent.each_ref().map(|one| one.bytes()), [1 << 20; 3], "an eighth each");
    assert_eq!(store.figure("cache.lent_bytes"), 3 << 20);
    let beside = store.figure("cache.page_bytes");
    assert!(beside + (2 << 20) <= pages, "{beside} bytes of pages are left of {pages}");
    assert!(store.figure("cache.counted_bytes") <= LIMIT + LIMIT / 16);
    drop(lent);
    store.pass(2);
    store.read_everything();
    store.pass(2);
    let again = store.figure("cache.page_bytes");
    assert!(again > pages / 10 * 9, "{again} bytes of pages after all was given back");
}

#[test]
fn the_work_of_merges_counts_and_is_forgotten_some_seconds_after_they_end() {
    let store = Store::filled();
    let random = SeededRandom::new(5);
    for _ in 0..200 {
        store.commit((0..40).map(|_| random.below(20_000) as u32));
        store.simulation.tasks.run_one();
    }
    store.pass(1);
    assert!(store.figure("flushes.count") > 10);
    let work = store.figure("cache.working_bytes");
    // The account holds a buffer, the messages that wait in nodes for it, and leaves. That is a few times the
    // size of a partition, and less than the sum of all merges.
    assert!(work > (64 << 10) && work < LIMIT / 2, "{work} bytes");
    let counted = store.figure("cache.counted_bytes");
    assert!(counted <= LIMIT + LIMIT / 16, "{counted} bytes count");
    store.pass(90);
    assert_eq!(store.figure("cache.working_bytes"), 0);
}
