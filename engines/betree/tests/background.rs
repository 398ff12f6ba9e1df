//! The timing of background work, by counters: old writes leave the buffers, hot ones stay, reads go first
//! when it is quiet.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pando_betree::{Betree, Options, verify};
use pando_environment::{Environment, Random, SeededRandom, Simulation};
use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, Direction, Durability, Engine, KeyRange, ScanEnd, TreeId,
    TreeOptions,
};

const FOLDER: &str = "/store";
const SECOND: Duration = Duration::from_secs(1);

struct Store {
    simulation: Simulation,
    engine: Arc<Betree>,
    tree: TreeId,
}

impl Store {
    /// Leaves of 8 KB, eight to a node, and a log of 1 MB.
    fn new() -> Store {
        let entries = [
            ("pageSize", "512B"),
            ("leafSize", "8KB"),
            ("fanout", "8"),
            ("runSize", "8KB"),
            ("compression", "none"),
            ("bufferPercent", "20"),
            ("logBudget", "1MB"),
            ("logCompression", "none"),
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

    fn put(&self, tree: TreeId, numbers: &[u64]) {
        let mut writer = self.engine.begin(Begin::WRITE).expect("a writer begins");
        for number in numbers {
            writer.put_blind(tree, &key(*number), &[7; 20]).expect("a write succeeds");
        }
        writer.commit(Durability::Logged).expect("the commit succeeds");
        self.simulation.tasks.run_until_idle();
    }

    fn load(&self, count: u64) -> Vec<u64> {
        let random = SeededRandom::new(3);
        let numbers: Vec<u64> = (0..count).map(|_| random.next_u64()).collect();
        numbers.chunks(100).for_each(|numbers| self.put(self.tree, numbers));
        numbers
    }

    fn get_all(&self, numbers: &[u64]) {
        let reader = self.engine.begin(Begin::READ).expect("a reader begins");
        for number in numbers {
            let found = reader.get(self.tree, &key(*number), BlockingMode::MayBlock).expect("a get succeeds");
            assert_eq!(found.as_deref(), Some(&[7; 20][..]));
        }
    }

    fn pass_seconds(&self, seconds: u32) {
        for _ in 0..seconds {
            self.simulation.clock.advance(SECOND);
            self.simulation.tasks.run_until_idle();
        }
    }

    fn figure(&self, wanted: &str) -> u64 {
        let statistics = self.engine.statistics();
        let found = statistics.iter().find(|(name, _)| *name == wanted);
        found.unwrap_or_else(|| panic!("there is no figure {wanted}")).1
    }

    fn close(self) -> Simulation {
        self.engine.close().expect("the store closes");
        drop(self.engine);
        let report =
            verify(&self.simulation.environment, Path::new(FOLDER)).expect("the store can be checked");
        assert!(report.is_sound(), "{:?}", report.damage);
        self.simulation
    }
}

fn key(number: u64) -> Vec<u8> {
    [&number.to_be_bytes()[..], b" and so on, thirty bytes"].concat()
}

#[test]
fn slices_that_reads_had_to_merge_go_down_once_nobody_commits() {
    let store = Store::new();
    let numbers = store.load(20_000);
    store.get_all(&numbers);
    let (probes, buffered) = (store.figure("runs.probes"), store.figure("buffers.bytes"));
    assert!(probes > 1_000 && buffered > 10_000, "{probes} reads ended in runs, {buffered} bytes in buffers");
    // The first look finds that there were commits since the store was opened.
    for _ in 0..6 {
        store.pass_seconds(2);
        store.get_all(&numbers);
    }
    assert!(store.figure("flushes.idle") > 50, "{}", store.figure("flushes.idle"));
    let before = store.figure("runs.probes");
    store.get_all(&numbers);
    assert_eq!(store.figure("runs.probes"), before, "nothing waits in nodes any more");
    assert_eq!(store.figure("buffers.bytes"), 0, "nor in buffers");
    store.close();
}

#[test]
fn without_reads_nothing_goes_down_early_and_commits_end_it() {
    let store = Store::new();
    let numbers = store.load(10_000);
    store.pass_seconds(5);
    let (buffered, slices) = (store.figure("buffers.bytes"), store.figure("flushes.slices"));
    assert!(buffered > 10_000, "{buffered} bytes in buffers");
    store.pass_seconds(5);
    assert_eq!(store.figure("buffers.bytes"), buffered, "nobody reads: what is buffered stays");
    assert_eq!(store.figure("flushes.slices"), slices, "and so does what waits in nodes");
    store.get_all(&numbers);
    let drains = store.figure("flushes.idle");
    for round in 0..5 {
        // A commit every second: it is never quiet.
        store.simulation.clock.advance(SECOND);
        store.put(store.tree, &[round]);
    }
    assert_eq!(store.figure("flushes.idle"), drains);
    assert_eq!(
        store.figure("debt.node_bytes"),
        0,
        "but overdue messages were flushed while the store was idle"
    );
    store.close();
}

#[test]
fn flushes_of_a_quiet_time_are_made_durable_once() {
    let store = Store::new();
    let numbers = store.load(5_000);
    store.pass_seconds(300);
    let checkpoints = store.figure("checkpoints.count");
    store.pass_seconds(300);
    assert_eq!(store.figure("checkpoints.count"), checkpoints, "nothing changed");
    for _ in 0..6 {
        store.get_all(&numbers);
        store.pass_seconds(2);
    }
    assert_eq!(store.figure("buffers.bytes"), 0, "reads had it merged");
    store.pass_seconds(120);
    let after = store.figure("checkpoints.count");
    assert!(after > checkpoints, "{checkpoints} checkpoints before and after");
    store.pass_seconds(300);
    assert_eq!(store.figure("checkpoints.count"), after, "nothing changed since");
    store.close();
}

#[test]
fn a_scan_reads_a_child_once_in_however_many_pieces() {
    let store = Store::new();
    let numbers = store.load(10_000);
    store.pass_seconds(5);
    let (buffered, drains) = (store.figure("buffers.bytes"), store.figure("flushes.idle"));
    assert!(buffered > 10_000, "{buffered} bytes in buffers");
    let reader = store.engine.begin(Begin::READ).expect("a reader begins");
    for direction in [Direction::Forward, Direction::Backward] {
        let limits = BatchLimits { entries_max: usize::MAX, bytes_max: usize::MAX };
        let mut batch = Batch::new();
        let end = reader
            .scan(store.tree, &KeyRange::all(), direction, limits, BlockingMode::MayBlock, &mut batch)
            .expect("a scan succeeds");
        assert_eq!((end, batch.len()), (ScanEnd::Done, numbers.len()));
    }
    drop(reader);
    store.pass_seconds(5);
    assert_eq!(store.figure("flushes.idle"), drains, "two reads are no reason to send anything down");
    assert_eq!(store.figure("buffers.bytes"), buffered);
    store.close();
}

#[test]
fn a_small_hot_set_costs_less_than_its_log() {
    let store = Store::new();
    let numbers = store.load(20_000);
    let hot = &numbers[..200];
    let written = || store.figure("flushes.leaf_bytes") + store.figure("flushes.run_bytes");
    let (before, logged) = (written(), store.figure("log.appended_bytes"));
    for round in 0..500 {
        store.put(store.tree, hot);
        if round % 20 == 0 {
            store.pass_seconds(1);
        }
    }
    let (written, logged) = (written() - before, store.figure("log.appended_bytes") - logged);
    assert!(written < logged, "{written} bytes were written for {logged} of the log");
    store.close();
}

#[test]
fn a_tree_that_is_written_once_does_not_pin_the_log() {
    let store = Store::new();
    let seldom = store.engine.create_tree("seldom", &TreeOptions::default()).expect("a tree is created");
    store.put(seldom, &[1]);
    let random = SeededRandom::new(4);
    for _ in 0..1_000 {
        let numbers: Vec<u64> = (0..50).map(|_| random.next_u64()).collect();
        store.put(store.tree, &numbers);
        store.pass_seconds(1);
        let live = store.figure("log.live_bytes");
        assert!(live < 800 << 10, "{live} bytes of the log are kept");
    }
    assert!(store.figure("log.appended_bytes") > 2 << 20);
    assert!(store.figure("flushes.aged") > 0);
    assert_eq!(store.figure("commits.stalls"), 0);
    store.close();
}

#[test]
fn overdue_messages_are_flushed_in_short_steps_after_their_flush() {
    let store = Store::new();
    store.load(30_000);
    let (steps, flushes) = (store.figure("flushes.partial"), store.figure("flushes.count"));
    assert!(steps > 10, "{steps} steps beside {flushes} flushes");
    let overdue = store.figure("debt.node_bytes");
    assert!(overdue < 200 << 10, "{overdue} bytes are overdue after a load of 1.5 MB");
    store.close();
}

impl Store {
    /// Bytes of the log's files.
    fn log_bytes(simulation: &Simulation) -> u64 {
        let folder = Path::new(FOLDER).join("wal");
        let names = simulation.environment.files().list(&folder).expect("there is a log");
        names.iter().map(|name| simulation.disk.content(&folder.join(name)).len() as u64).sum()
    }
}

#[test]
fn the_log_of_a_store_takes_little_room_when_nobody_writes_and_when_it_is_closed() {
    let store = Store::new();
    store.load(10_000);
    assert!(store.figure("log.file_bytes") >= 128 << 10);
    // Buffered writes are old after ten minutes; then come checkpoints, each a minute after the last.
    store.pass_seconds(900);
    assert_eq!(store.figure("log.file_bytes"), 8 << 10);
    assert_eq!(Store::log_bytes(&store.simulation), 8 << 10);
    let checkpoints = store.figure("checkpoints.count");
    store.pass_seconds(300);
    assert_eq!(store.figure("checkpoints.count"), checkpoints, "there is nothing left to do");
    let numbers = store.load(5_000);
    let simulation = store.close();
    for _ in 0..5 {
        assert_eq!(Store::log_bytes(&simulation), 8 << 10);
        let engine = Betree::open(&simulation.environment, Path::new(FOLDER), Options::default());
        let engine = engine.expect("the store opens");
        let reader = engine.begin(Begin::READ).expect("a reader begins");
        let tree = engine.list_trees().expect("the trees are listed")[0].id;
        let found = reader.get(tree, &key(numbers[0]), BlockingMode::MayBlock).expect("a get succeeds");
        assert!(found.is_some());
        drop(reader);
        engine.close().expect("the store closes");
    }
}
