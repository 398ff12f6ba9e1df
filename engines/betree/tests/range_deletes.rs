//! Range deletes: leaves that are not read, space that is freed, snapshots that still see the keys, and
//! restarts.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pando_betree::{Betree, Options, VerifyReport, verify};
use pando_environment::{Environment, Simulation};
use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, Cursor, Direction, Durability, Engine, IteratorEntries,
    KeyRange, LoadDurability, Transaction, TreeId, TreeOptions,
};

const FOLDER: &str = "/store";

fn options() -> Options {
    let entries = [
        ("pageSize", "256B"),
        ("leafSize", "1KB"),
        ("fanout", "4"),
        ("bufferPercent", "40"),
        ("runSize", "1KB"),
        ("largeValueSize", "200B"),
    ];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    (options.cache_bytes, options.partition_bytes, options.log_budget_bytes) = (1 << 20, 4 << 10, 4 << 20);
    options.range_delete_entries = 0;
    options
}

struct Store {
    simulation: Simulation,
    engine: Option<Arc<Betree>>,
    tree: TreeId,
}

impl Store {
    fn new() -> Store {
        let simulation = Environment::simulated(1);
        let engine = Betree::open(&simulation.environment, Path::new(FOLDER), options()).expect("it opens");
        let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is made");
        Store { simulation, engine: Some(engine), tree }
    }

    /// With this many entries, all of them in nodes and leaves.
    fn filled(entries: u32, value_bytes: usize) -> Store {
        let store = Store::new();
        store.fill(0..entries, value_bytes);
        store.engine().checkpoint().expect("a checkpoint is made");
        store
    }

    fn engine(&self) -> &Arc<Betree> {
        self.engine.as_ref().expect("the store is open")
    }

    fn fill(&self, keys: std::ops::Range<u32>, value_bytes: usize) {
        let keys: Vec<u32> = keys.collect();
        for some in keys.chunks(50) {
            let mut writer = self.writer();
            for key in some {
                writer.put(self.tree, &key.to_be_bytes(), &vec![*key as u8; value_bytes]).expect("it is put");
            }
            writer.commit(Durability::Logged).expect("the commit succeeds");
            self.simulation.tasks.run_until_idle();
        }
    }

    fn writer(&self) -> Box<dyn Transaction> {
        self.engine().begin(Begin::WRITE).expect("a writer begins")
    }

    fn reader(&self) -> Box<dyn Transaction> {
        self.engine().begin(Begin::READ).expect("a reader begins")
    }

    fn delete(&self, from: u32, to: u32) {
        let mut writer = self.writer();
        let bound = |key: u32| key.to_be_bytes().to_vec();
        let range = KeyRange { lower: Bound::Included(bound(from)), upper: Bound::Excluded(bound(to)) };
        writer.delete_range(self.tree, &range, BlockingMode::MayBlock).expect("the range is deleted");
        writer.commit(Durability::Logged).expect("the commit succeeds");
    }

    fn put(&self, key: u32, value: &[u8]) {
        let mut writer = self.writer();
        writer.put(self.tree, &key.to_be_bytes(), value).expect("it is put");
        writer.commit(Durability::Logged).expect("the commit succeeds");
    }

    fn keys(&self, reader: &dyn Transaction) -> Vec<u32> {
        let mut cursor = Cursor::new(self.tree, KeyRange::all(), Direction::Forward);
        let mut keys = Vec::new();
        while let Some((key, _)) = cursor.next(reader, BlockingMode::MayBlock).expect("it is read") {
            keys.push(u32::from_be_bytes(key.try_into().expect("a key has four bytes")));
        }
        keys
    }

    fn newest(&self) -> Vec<u32> {
        self.keys(&*self.reader())
    }

    /// Lets background work happen until there is none.
    fn rest(&self) {
        for _ in 0..4 {
            self.simulation.clock.advance(Duration::from_millis(1_100));
            self.simulation.tasks.run_until_idle();
        }
    }

    fn figure(&self, name: &str) -> u64 {
        let figures = self.engine().statistics();
        figures
            .iter()
            .find(|(have, _)| *have == name)
            .map(|(_, value)| value)
            .expect("there is such a figure")
    }

    fn verified(&self) -> VerifyReport {
        let report = verify(&self.simulation.environment, Path::new(FOLDER)).expect("it can be checked");
        assert!(report.is_sound(), "{:?}", report.damage);
        report
    }

    fn close(&mut self) -> VerifyReport {
        self.engine().close().expect("the store closes");
        self.engine = None;
        self.simulation.tasks.forget_all();
        self.verified()
    }

    fn kill(&mut self) {
        self.simulation.disk.kill();
        self.engine = None;
        self.simulation.tasks.forget_all();
        self.verified();
    }

    fn open(&mut self) {
        let engine = Betree::open(&self.simulation.environment, Path::new(FOLDER), options());
        self.engine = Some(engine.expect("the store opens"));
    }
}

fn all_but(count: u32, from: u32, to: u32) -> Vec<u32> {
    (0..count).filter(|key| !(from..to).contains(key)).collect()
}

#[test]
fn leaves_within_a_range_go_unread_and_their_room_comes_free() {
    let mut store = Store::filled(3_000, 40);
    let report = store.close();
    let (leaves, used) = (report.trees[0].leaves, report.used_bytes);
    store.open();
    let reads = store.figure("cache.flush_reads");
    store.delete(300, 2_900);
    assert_eq!(store.newest(), all_but(3_000, 300, 2_900));
    store.rest();
    assert_eq!(store.newest(), all_but(3_000, 300, 2_900));
    let (unread, steps) = (store.figure("range_deletes.unread_leaves"), store.figure("range_deletes.steps"));
    assert!(unread > leaves / 2, "{unread} of {leaves} leaves went unread");
    assert!(steps > 1, "so much is done in more than one step");
    let reads = store.figure("cache.flush_reads") - reads;
    assert!(reads < 40, "{reads} reads for the edges");
    let estimate = store.engine().tree_estimate(store.tree).expect("a tree has an estimate");
    assert!((300..=600).contains(&estimate.entries), "{estimate:?}");
    let report = store.close();
    assert_eq!(report.trees[0].deleted_ranges, 0);
    assert!(report.trees[0].leaves < leaves / 4, "{} of {leaves} leaves", report.trees[0].leaves);
    assert!(report.used_bytes < used / 3, "{} of {used} bytes", report.used_bytes);
}

#[test]
fn slices_that_are_older_go_unread_and_newer_ones_stay() {
    let mut store = Store::filled(2_000, 40);
    // Messages above leaves: half of them are older than the range delete, half newer.
    for key in (0..2_000).step_by(7) {
        store.put(key, b"above");
    }
    store.engine().checkpoint().expect("a checkpoint is made");
    store.delete(100, 1_900);
    for key in (0..2_000).step_by(11) {
        store.put(key, b"after");
    }
    let expected: Vec<u32> = (0..2_000).filter(|key| !(100..1_900).contains(key) || key % 11 == 0).collect();
    assert_eq!(store.newest(), expected);
    store.engine().checkpoint().expect("a checkpoint is made");
    assert_eq!(store.newest(), expected);
    store.rest();
    assert_eq!(store.newest(), expected);
    let value = store.reader().get(store.tree, &1_100_u32.to_be_bytes(), BlockingMode::MayBlock);
    assert_eq!(value.expect("it is read").as_deref(), Some(&b"after"[..]));
    let report = store.close();
    assert_eq!(report.trees[0].deleted_ranges, 0);
    store.open();
    assert_eq!(store.newest(), expected);
}

#[test]
fn entries_that_an_old_snapshot_sees_stay_until_it_ends() {
    let mut store = Store::filled(1_000, 40);
    let before = store.reader();
    store.delete(200, 800);
    store.put(500, b"again");
    let between = store.reader();
    store.delete(400, 1_000);
    store.rest();
    store.fill(1_000..1_400, 40);
    store.engine().checkpoint().expect("a checkpoint is made");
    store.rest();
    let lives = |from, to| (from..to).collect::<Vec<u32>>();
    assert_eq!(store.keys(&*before), lives(0, 1_000));
    assert_eq!(store.keys(&*between), [lives(0, 200), vec![500], lives(800, 1_000)].concat());
    assert_eq!(store.newest(), [lives(0, 200), lives(1_000, 1_400)].concat());
    assert_eq!(store.figure("range_deletes.unread_leaves"), 0, "a snapshot needs them");
    drop(before);
    store.rest();
    assert!(store.figure("range_deletes.unread_leaves") > 0, "nobody needs the first range any more");
    assert_eq!(store.keys(&*between), [lives(0, 200), vec![500], lives(800, 1_000)].concat());
    drop(between);
    store.rest();
    assert_eq!(store.newest(), [lives(0, 200), lives(1_000, 1_400)].concat());
    assert_eq!(store.close().trees[0].deleted_ranges, 0);
}

#[test]
fn large_values_of_what_goes_unread_are_given_back() {
    let mut store = Store::filled(200, 20_000);
    let used = store.close().used_bytes;
    assert!(used > 300 * 1_000, "{used} bytes");
    store.open();
    // Some of them wait in slices.
    store.fill(0..40, 30_000);
    store.delete(10, 190);
    store.rest();
    assert!(store.figure("range_deletes.unread_leaves") > 0);
    assert_eq!(store.newest(), all_but(200, 10, 190));
    // Messages that wait in a node keep the values that they replace.
    store.engine().compact(&[], &pando_storage::Operation::default()).expect("all goes into leaves");
    let report = store.close();
    assert!((20..=30).contains(&report.trees[0].large_values), "{report:?}");
    assert!(report.used_bytes < used / 3, "{} of {used} bytes", report.used_bytes);
}

#[test]
fn a_tree_of_which_all_is_deleted_is_as_new() {
    let mut store = Store::filled(2_000, 100);
    let mut writer = store.writer();
    writer.delete_range(store.tree, &KeyRange::all(), BlockingMode::MayBlock).expect("the range is deleted");
    writer.commit(Durability::Logged).expect("the commit succeeds");
    store.rest();
    let report = store.close();
    assert_eq!((report.trees[0].leaves, report.trees[0].deleted_ranges), (0, 0));
    store.open();
    assert_eq!(store.newest(), vec![]);
    store.fill(0..500, 10);
    assert_eq!(store.newest(), (0..500).collect::<Vec<_>>());
}

#[test]
fn a_killed_process_goes_on_where_it_was_in_the_middle_of_a_range() {
    let mut store = Store::filled(4_000, 40);
    store.delete(500, 3_900);
    let expected = all_but(4_000, 500, 3_900);
    let mut found_some = false;
    for round in 0..60 {
        // A step or two, an image of it now and then, and the end.
        for _ in 0..1 + round % 3 {
            store.simulation.tasks.run_one();
        }
        if round % 4 == 3 {
            store.simulation.clock.advance(Duration::from_secs(61));
            store.simulation.tasks.run_one();
        }
        let steps = store.figure("range_deletes.steps");
        store.kill();
        let ranges = store.verified().trees[0].deleted_ranges;
        found_some |= ranges > 0 && steps > 0;
        store.open();
        assert_eq!(store.newest(), expected, "round {round}");
    }
    assert!(found_some, "no round ended within the range");
    store.rest();
    store.put(1_000, b"again");
    store.rest();
    assert_eq!(store.close().trees[0].deleted_ranges, 0);
    store.open();
    let mut expected = expected;
    expected.push(1_000);
    expected.sort_unstable();
    assert_eq!(store.newest(), expected);
}

#[test]
fn a_load_into_a_tree_whose_range_was_deleted_is_seen() {
    let store = Store::new();
    store.delete(0, 1_000);
    let keys: Vec<[u8; 4]> = (0..100_u32).map(u32::to_be_bytes).collect();
    let mut entries = IteratorEntries::new(keys.iter().map(|key| (&key[..], &b"loaded"[..])));
    let loaded = store.engine().load(store.tree, &mut entries, LoadDurability::Durable);
    assert_eq!(loaded.expect("the tree is empty"), 100);
    assert_eq!(store.newest(), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_scan_over_a_deleted_range_reads_none_of_its_pages() {
    let mut store = Store::filled(3_000, 40);
    store.close();
    store.open();
    let holder = store.reader();
    store.delete(100, 2_900);
    let blocks = store.figure("leaves.blocks_read");
    let reader = store.reader();
    let mut batch = Batch::new();
    let range = KeyRange { lower: Bound::Included(150_u32.to_be_bytes().to_vec()), upper: Bound::Unbounded };
    let limits = BatchLimits { entries_max: 3, bytes_max: 1_000 };
    let end = reader.scan(store.tree, &range, Direction::Forward, limits, BlockingMode::MayBlock, &mut batch);
    end.expect("it is read");
    let first: Vec<&[u8]> = batch.iter().map(|(key, _)| key).collect();
    assert_eq!(first, [2_900_u32, 2_901, 2_902].map(u32::to_be_bytes));
    let directories = store.figure("leaves.blocks_read") - blocks;
    assert_eq!(store.keys(&*holder).len(), 3_000);
    let pages = store.figure("leaves.blocks_read") - blocks - directories;
    assert!(directories * 2 < pages, "{directories} blocks were read, of {pages} pages");
    assert_eq!(
        reader.get(store.tree, &200_u32.to_be_bytes(), BlockingMode::CachedOnly).expect("no page"),
        None
    );
}

#[test]
fn thousands_of_small_ranges_are_deleted_by_messages_and_key_by_key() {
    let mut store = Store::filled(6_000, 10);
    let holder = store.reader();
    for start in (0..6_000).step_by(3) {
        store.delete(start, start + 1);
    }
    let expected: Vec<u32> = (0..6_000).filter(|key| key % 3 != 0).collect();
    assert_eq!(store.newest(), expected);
    assert!(store.figure("range_deletes.count") < 2_000, "there is room for so many only");
    assert_eq!(store.keys(&*holder).len(), 6_000);
    store.kill();
    store.open();
    assert_eq!(store.newest(), expected);
    drop(holder);
    store.rest();
    assert_eq!(store.newest(), expected);
    assert_eq!(store.close().trees[0].deleted_ranges, 0);
}

#[test]
fn merges_over_what_was_put_after_a_range_delete_find_it() {
    use pando_storage::{Claim, Merge};
    for steps in 0..16_u32 {
        let mut store = Store::new();
        let holder = store.reader();
        let mut writer = store.writer();
        writer
            .delete_range(store.tree, &KeyRange::all(), BlockingMode::MayBlock)
            .expect("the range is deleted");
        writer.commit(Durability::Logged).expect("the commit succeeds");
        let checkpoint = |bit: u32| {
            if steps & bit != 0 {
                store.engine().checkpoint().expect("a checkpoint is made");
            }
        };
        checkpoint(1);
        store.put(7, &40_i64.to_le_bytes());
        checkpoint(2);
        let value = |store: &Store| {
            let value = store.reader().get(store.tree, &7_u32.to_be_bytes(), BlockingMode::MayBlock);
            i64::from_le_bytes((&value.expect("it is read").expect("it is there")[..]).try_into().unwrap())
        };
        let mut writer = store.writer();
        let key = 7_u32.to_be_bytes();
        writer.merge(store.tree, &key, Merge::Add(2), Claim::Blind, BlockingMode::MayBlock).expect("merged");
        writer.commit(Durability::Logged).expect("the commit succeeds");
        assert_eq!(value(&store), 42, "{steps}: at once");
        checkpoint(4);
        assert_eq!(value(&store), 42, "{steps}: after a checkpoint");
        drop(holder);
        if steps & 8 != 0 {
            store.rest();
            assert_eq!(value(&store), 42, "{steps}: after a rest");
        }
        store.close();
        store.open();
        assert_eq!(value(&store), 42, "{steps}: reopened");
    }
}
