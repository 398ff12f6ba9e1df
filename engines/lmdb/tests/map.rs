//! A full map grows under live transactions, and readers that have ended let their pages go.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pando_environment::Environment;
use pando_lmdb::{LmdbEngine, LmdbOptions};
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, Engine, ErrorKind, KeyRange, StorageError,
    Transaction, TreeId, TreeOptions,
};

const FOLDER: &str = "PANDO_LMDB_READER_TEST_FOLDER";

/// A store whose map has room for a few entries.
fn small(folder: &Path) -> LmdbEngine {
    let options = LmdbOptions { map_bytes: 1 << 20, ..LmdbOptions::default() };
    LmdbEngine::open(&Environment::real(), folder, options).unwrap()
}

fn figure(engine: &LmdbEngine, name: &str) -> u64 {
    engine.statistics().get(name).unwrap()
}

fn put(engine: &LmdbEngine, tree: TreeId, number: u32) -> Result<(), StorageError> {
    let mut writer = engine.begin(Begin::WRITE)?;
    writer.put(tree, &number.to_be_bytes(), &[number as u8; 100_000])?;
    writer.commit(Durability::Logged).map(drop)
}

/// The number of entries, all of which have the value that belongs to their key.
fn count(reader: &dyn Transaction, tree: TreeId) -> u32 {
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut found = 0;
    while let Some((key, value)) = cursor.next(reader, BlockingMode::MayBlock).unwrap() {
        let number = u32::from_be_bytes(key.try_into().unwrap());
        assert!(value == [number as u8; 100_000], "entry {number} has another value");
        found += 1;
    }
    found
}

#[test]
fn a_full_map_grows_while_transactions_live_and_others_read() {
    let folder = tempfile::tempdir().unwrap();
    let engine = small(folder.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    (0..5).for_each(|number| put(&engine, tree, number).unwrap());
    let old = engine.begin(Begin::READ).unwrap();
    let mut open_writer = engine.begin(Begin::WRITE).unwrap();
    open_writer.put(tree, &1_000_u32.to_be_bytes(), &[1_000_u32 as u8; 100_000]).unwrap();
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !has_ended.load(Ordering::Relaxed) {
                    let reader = engine.begin(Begin::READ).unwrap();
                    let found = count(&*reader, tree);
                    assert_eq!(count(&*reader, tree), found, "a snapshot stays as it is");
                }
            });
        }
        (5..400).for_each(|number| put(&engine, tree, number).unwrap());
        has_ended.store(true, Ordering::Relaxed);
    });
    assert!(figure(&engine, "map.bytes") >= 32 << 20);
    assert_eq!(count(&*old, tree), 5, "the oldest snapshot is as it was");
    open_writer.commit(Durability::Logged).unwrap();
    assert_eq!(count(&*engine.begin(Begin::READ).unwrap(), tree), 401);
    drop(old);
    engine.close().unwrap();
    drop(engine);
    let engine = small(folder.path());
    assert_eq!(count(&*engine.begin(Begin::READ).unwrap(), tree), 401);
}

#[test]
fn trees_are_made_and_dropped_in_a_full_map() {
    let folder = tempfile::tempdir().unwrap();
    let engine = small(folder.path());
    let before = figure(&engine, "map.bytes");
    let reader = engine.begin(Begin::READ).unwrap();
    let trees: Vec<TreeId> = (0..800)
        .map(|number| {
            engine.create_tree(&format!("{number}{}", "n".repeat(1_500)), &TreeOptions::default()).unwrap()
        })
        .collect();
    assert!(figure(&engine, "map.bytes") > before, "the records alone have filled the map");
    (0..20).for_each(|number| put(&engine, trees[number as usize % 3], number).unwrap());
    for tree in &trees {
        engine.drop_tree(*tree).unwrap();
    }
    assert_eq!(engine.list_trees().unwrap(), []);
    drop(reader);
    engine.close().unwrap();
}

#[test]
fn the_size_of_the_map_is_a_setting_that_only_rises() {
    let folder = tempfile::tempdir().unwrap();
    let engine = small(folder.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    put(&engine, tree, 1).unwrap();
    let reader = engine.begin(Begin::READ).unwrap();
    engine.change_settings(&[("mapSize", "8MB")]).unwrap();
    assert_eq!(engine.settings(), [("mapSize", (8 << 20).to_string())]);
    assert_eq!(count(&*reader, tree), 1);
    for (name, value, word) in
        [("mapSize", "2MB", "smaller"), ("mapSize", "big", "from 1MB"), ("cache", "8MB", "`cache`")]
    {
        let refused = engine.change_settings(&[(name, value)]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains(word), "{refused}");
    }
    assert_eq!(figure(&engine, "map.bytes"), 8 << 20);
}

/// The child: reads a snapshot until it is killed, as a tool of LMDB might. A normal test run has no folder:
/// the test ends at once.
#[test]
fn child_that_reads_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let mut options = heed::EnvOpenOptions::new().read_txn_without_tls();
    // SAFETY: the child only reads, and has the environment open once.
    let env = unsafe {
        options.flags(heed::EnvFlags::READ_ONLY);
        options.open(folder).unwrap()
    };
    let _reading = env.read_txn().unwrap();
    fs::write(folder.join("reads"), b"").unwrap();
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_killed_reader_of_another_process_lets_its_pages_go() {
    let folder = tempfile::tempdir().unwrap();
    let engine = small(folder.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    put(&engine, tree, 0).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child_that_reads_until_it_is_killed", "--exact"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while !folder.path().join("reads").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the child has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    engine.checkpoint().unwrap();
    assert_eq!(figure(&engine, "readers.stale_cleared"), 0, "a living reader is left alone");
    child.kill().unwrap();
    child.wait().unwrap();
    // The same entry again and again: without the reader the map never fills up.
    for _ in 0..100 {
        put(&engine, tree, 0).unwrap();
        engine.checkpoint().unwrap();
    }
    assert_eq!(figure(&engine, "readers.stale_cleared"), 1);
    assert!(figure(&engine, "map.bytes") <= 2 << 20);
}
