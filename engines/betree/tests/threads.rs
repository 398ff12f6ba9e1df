//! Writers, readers and background work at the same time, in real threads, over nodes that hold runs.
//!
//! Keys form groups of four that lie far apart. A commit writes one value to all keys of a group, or deletes
//! all of them. So the four must agree in every snapshot, by gets or by a scan. Flushes, splits, checkpoints
//! and evictions go on meanwhile: leaves have a kilobyte, nodes four children.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pando_betree::{Betree, Options, verify};
use pando_environment::{Environment, Random, SeededRandom};
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, Engine, KeyRange, TreeId, TreeOptions,
};

const GROUPS: u64 = 1_200;
const MEMBERS: u64 = 4;
const TIME: Duration = Duration::from_millis(1_500);
const TIME_MAX: Duration = Duration::from_secs(60);
/// So many slices that readers have met changes of leaves.
const SLICES_MIN: u64 = 100;

fn key(group: u64, member: u64) -> Vec<u8> {
    format!("{member} of {group:06}").into_bytes()
}

fn open(folder: &std::path::Path) -> Arc<Betree> {
    let entries = [
        ("pageSize", "256B"),
        ("leafSize", "1KB"),
        ("fanout", "4"),
        ("runSize", "1KB"),
        ("bufferPercent", "30"),
        ("mergeThreads", "2"),
    ];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    (options.cache_bytes, options.partition_bytes) = (128 << 10, 4 << 10);
    options.log_budget_bytes = 1 << 20;
    options.checkpoint_period = Duration::from_millis(50);
    Betree::open(&Environment::real(), folder, options).expect("the store opens")
}

fn write(engine: &Betree, tree: TreeId, seed: u64, stop: &AtomicBool) {
    let random = SeededRandom::new(seed);
    while !stop.load(Ordering::Relaxed) {
        let mut writer = engine.begin(Begin::WRITE).expect("a writer begins");
        let group = random.below(GROUPS);
        let value = (random.below(5) > 0).then(|| random.next_u64().to_le_bytes().repeat(3));
        let outcome = (0..MEMBERS).try_for_each(|member| match &value {
            Some(value) => writer.put(tree, &key(group, member), value),
            None => writer.delete(tree, &key(group, member)),
        });
        match outcome {
            Ok(()) => {
                writer.commit(Durability::None).expect("the commit succeeds");
            }
            Err(error) => assert!(error.is_conflict(), "{error}"),
        }
    }
}

fn get_groups(engine: &Betree, tree: TreeId, seed: u64, stop: &AtomicBool) -> u64 {
    let random = SeededRandom::new(seed);
    let mut checked = 0;
    while !stop.load(Ordering::Relaxed) {
        let reader = engine.begin(Begin::READ).expect("a reader begins");
        for _ in 0..20 {
            let group = random.below(GROUPS);
            let values: Vec<_> = (0..MEMBERS)
                .map(|member| {
                    reader.get(tree, &key(group, member), BlockingMode::MayBlock).expect("a get succeeds")
                })
                .collect();
            assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "group {group}: {values:?}");
            checked += 1;
        }
    }
    checked
}

/// Scans everything at one snapshot, and counts the scans.
fn scan_all(engine: &Betree, tree: TreeId, stop: &AtomicBool) -> u64 {
    let mut scans = 0;
    while !stop.load(Ordering::Relaxed) {
        let direction = if scans % 2 == 0 { Direction::Forward } else { Direction::Backward };
        check_all(engine, tree, direction);
        scans += 1;
    }
    scans
}

fn check_all(engine: &Betree, tree: TreeId, direction: Direction) {
    let reader = engine.begin(Begin::READ).expect("a reader begins");
    let mut cursor = Cursor::new(tree, KeyRange::all(), direction);
    let mut groups = BTreeMap::<Vec<u8>, Vec<Vec<u8>>>::new();
    while let Some((key, value)) = cursor.next(&*reader, BlockingMode::MayBlock).expect("a scan succeeds") {
        groups.entry(key[5..].to_vec()).or_default().push(value.to_vec());
    }
    for (group, values) in groups {
        assert_eq!(values.len() as u64, MEMBERS, "{group:?} {direction:?}");
        assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "{group:?} {direction:?}");
    }
}

fn slices_written(engine: &Betree) -> u64 {
    engine.statistics().iter().find(|(name, _)| *name == "flushes.slices").map_or(0, |(_, value)| value)
}

#[test]
fn readers_see_whole_commits_while_runs_are_written_united_and_flushed() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let engine = open(folder.path());
    let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is created");
    let stop = AtomicBool::new(false);
    let (checked, scans) = std::thread::scope(|scope| {
        let (engine, stop) = (&engine, &stop);
        let writers = [0, 1].map(|seed| scope.spawn(move || write(engine, tree, seed, stop)));
        let checking = scope.spawn(|| get_groups(engine, tree, 9, stop));
        let scanning = scope.spawn(|| scan_all(engine, tree, stop));
        let began = Instant::now();
        // On a busy machine longer, until there was what the readers are to see.
        while began.elapsed() < TIME || (slices_written(engine) <= SLICES_MIN && began.elapsed() < TIME_MAX) {
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        // One by one: ThreadSanitizer sees that, and not how a scope waits.
        writers.into_iter().for_each(|writer| writer.join().expect("the writer ends well"));
        (checking.join().expect("the reader ends well"), scanning.join().expect("the scans end well"))
    });
    assert!(checked > 100 && scans > 0, "the readers had no turn");
    let slices = slices_written(&engine);
    assert!(slices > SLICES_MIN, "{slices} slices were written");
    engine.close().expect("the store closes");
    drop(engine);
    let report = verify(&Environment::real(), folder.path()).expect("the store can be checked");
    assert!(report.is_sound(), "{:?}", report.damage);
    let engine = open(folder.path());
    check_all(&engine, tree, Direction::Forward);
    engine.close().expect("the store closes");
}
