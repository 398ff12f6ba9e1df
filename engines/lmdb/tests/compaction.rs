//! A compaction makes LMDB's file small and changes no answer, whatever happens meanwhile.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use pando_environment::Environment;
use pando_lmdb::{LmdbEngine, LmdbOptions};
use pando_storage::{
    Begin, BlockingMode, CheckRequest, Cursor, Direction, Durability, Engine, ErrorKind, Interruption,
    KeyRange, Operation, TreeId, TreeOptions,
};

const COPY: &str = "data.mdb.compact";
const FOLDER: &str = "PANDO_LMDB_COMPACTION_TEST_FOLDER";
const OPENED: &str = "the files are open";

fn open(folder: &Path) -> LmdbEngine {
    LmdbEngine::open(&Environment::real(), folder, LmdbOptions::default()).unwrap()
}

fn file_bytes(folder: &Path) -> u64 {
    fs::metadata(folder.join("data.mdb")).unwrap().len()
}

fn value(number: u32) -> Vec<u8> {
    vec![number as u8; 2_000]
}

/// Writes entries, a thousand in a commit.
fn fill(engine: &LmdbEngine, tree: TreeId, numbers: std::ops::Range<u32>) {
    let numbers: Vec<u32> = numbers.collect();
    for part in numbers.chunks(1_000) {
        let mut writer = engine.begin(Begin::WRITE).unwrap();
        for number in part {
            writer.put(tree, &number.to_be_bytes(), &value(*number)).unwrap();
        }
        writer.commit(Durability::Logged).unwrap();
    }
}

fn delete(engine: &LmdbEngine, tree: TreeId, numbers: std::ops::Range<u32>) {
    let mut writer = engine.begin(Begin::WRITE).unwrap();
    for number in numbers {
        writer.delete(tree, &number.to_be_bytes()).unwrap();
    }
    writer.commit(Durability::Logged).unwrap();
}

/// The numbers of the entries, each of which has its value.
fn numbers(engine: &LmdbEngine, tree: TreeId) -> Vec<u32> {
    let reader = engine.begin(Begin::READ).unwrap();
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut found = Vec::new();
    while let Some((key, bytes)) = cursor.next(&*reader, BlockingMode::MayBlock).unwrap() {
        let number = u32::from_be_bytes(key.try_into().unwrap());
        assert!(bytes == value(number), "entry {number} has another value");
        found.push(number);
    }
    found
}

fn check(engine: &LmdbEngine) {
    let report = engine.check(&CheckRequest { trees: &[], bytes_per_second: None, operation: None }).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

/// A store of 20 MB of which nine parts in ten were deleted.
fn mostly_free(folder: &Path) -> (LmdbEngine, TreeId) {
    let engine = open(folder);
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    fill(&engine, tree, 0..10_000);
    delete(&engine, tree, 1_000..10_000);
    engine.checkpoint().unwrap();
    (engine, tree)
}

#[test]
fn the_file_becomes_small_and_the_store_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, tree) = mostly_free(folder.path());
    let other = engine.create_tree("other", &TreeOptions::default()).unwrap();
    let (before, newest) = (file_bytes(folder.path()), engine.statistics().get("commits.newest").unwrap());
    engine.compact(&[tree], &Operation::default()).unwrap();
    let after = file_bytes(folder.path());
    assert!(before > 20_000_000 && after < before / 5, "{before} bytes became {after}");
    assert_eq!(engine.bytes_on_disk(None).unwrap(), after);
    assert_eq!(numbers(&engine, tree), (0..1_000).collect::<Vec<_>>());
    // Numbers of commits go on rising, so that conflicts are found as before.
    assert_eq!(engine.statistics().get("commits.newest"), Some(newest));
    let mut late = engine.begin(Begin::WRITE).unwrap();
    fill(&engine, tree, 5_000..5_001);
    let conflict = late.put(tree, &5_000_u32.to_be_bytes(), b"x").unwrap_err();
    assert_eq!(conflict.kind(), ErrorKind::Conflict);
    drop(late);
    assert!(engine.statistics().get("commits.newest").unwrap() > newest);
    fill(&engine, other, 0..10);
    check(&engine);
    // A file without free pages stays as it is.
    let compacted = fs::metadata(folder.path().join("data.mdb")).unwrap();
    engine.compact(&[], &Operation::default()).unwrap();
    assert_eq!(inode(&fs::metadata(folder.path().join("data.mdb")).unwrap()), inode(&compacted));
    engine.close().unwrap();
    drop(engine);
    let engine = open(folder.path());
    assert_eq!((numbers(&engine, tree).len(), numbers(&engine, other).len()), (1_001, 10));
    check(&engine);
}

fn inode(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[test]
fn it_waits_for_transactions_and_says_which_are_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, tree) = mostly_free(folder.path());
    let before = file_bytes(folder.path());
    let reader = engine.begin(Begin::READ).unwrap();
    let refused = engine.compact(&[], &Operation::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(refused.to_string().contains("1 transactions are live"), "{refused}");
    assert_eq!(file_bytes(folder.path()), before);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            drop(reader);
        });
        engine.compact(&[], &Operation::default()).unwrap();
    });
    assert!(file_bytes(folder.path()) < before / 5);
    assert_eq!(numbers(&engine, tree).len(), 1_000);
}

#[test]
fn an_interruption_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, tree) = mostly_free(folder.path());
    let before = file_bytes(folder.path());
    let operation = Operation::default();
    operation.interrupt(Interruption::Killed);
    let refused = engine.compact(&[], &operation).unwrap_err();
    assert!(refused.to_string().contains("interrupted"), "{refused}");
    // At any moment of the work.
    let environment = Environment::real();
    let clock = environment.clock();
    for limit in [0, 1, 2, 5, 10, 20] {
        let operation = Operation::new(clock);
        operation.begin();
        operation.limit_time(clock.monotonic(), Duration::from_millis(limit));
        let outcome = engine.compact(&[], &operation);
        assert!(!folder.path().join(COPY).exists());
        assert_eq!(numbers(&engine, tree).len(), 1_000);
        if outcome.is_ok() {
            break;
        }
        assert_eq!(file_bytes(folder.path()), before);
    }
    fill(&engine, tree, 1_000..2_000);
    engine.close().unwrap();
    drop(engine);
    assert_eq!(numbers(&open(folder.path()), tree).len(), 2_000);
}

/// Sets the flag when it is dropped, also by a panic.
struct SetsAtEnd<'f>(&'f AtomicBool);

impl Drop for SetsAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn writers_and_readers_go_on_around_it() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, tree) = mostly_free(folder.path());
    let (has_ended, written) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let _end = SetsAtEnd(&has_ended);
        scope.spawn(|| {
            for number in (20_000..900_000).take_while(|_| !has_ended.load(Ordering::Relaxed)) {
                fill(&engine, tree, number..number + 1);
                written.fetch_add(1, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                assert!(numbers(&engine, tree).len() >= 1_000);
            }
        });
        for round in 0..6 {
            let from = 1_000_000 + round * 10_000;
            std::thread::sleep(Duration::from_millis(50));
            fill(&engine, tree, from..from + 3_000);
            delete(&engine, tree, from..from + 3_000);
            engine.compact(&[], &Operation::default()).unwrap();
        }
    });
    let written = written.load(Ordering::Relaxed);
    assert!(written > 0);
    check(&engine);
    drop(engine);
    let expected: Vec<u32> = (0..1_000).chain(20_000..20_000 + written).collect();
    assert_eq!(numbers(&open(folder.path()), tree), expected);
}

#[test]
fn a_process_that_has_the_file_open_changes_nothing() {
    for more in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let (engine, tree) = mostly_free(folder.path());
        // The number of the state is even once, and odd once.
        (0..more).for_each(|_| fill(&engine, tree, 0..1));
        let newest = engine.statistics().get("commits.newest").unwrap();
        let mut reader = reader_process(folder.path());
        engine.compact(&[], &Operation::default()).unwrap();
        assert_eq!(numbers(&engine, tree).len(), 1_000, "the newest commit is {newest}");
        fill(&engine, tree, 1_000..1_010);
        engine.checkpoint().unwrap();
        drop(engine);
        let engine = open(folder.path());
        assert_eq!(numbers(&engine, tree).len(), 1_010);
        assert!(engine.statistics().get("commits.newest").unwrap() > newest, "numbers go on rising");
        reader.kill().unwrap();
        reader.wait().unwrap();
    }
}

/// Another process with LMDB's files open, as `mdb_stat` has them.
fn reader_process(folder: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child_that_has_the_files_open_until_it_is_killed", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(OPENED))).unwrap().unwrap();
    child
}

/// The child: has a snapshot until it is killed, as a tool of LMDB might. A normal test run has no folder:
/// the test ends at once.
#[test]
fn child_that_has_the_files_open_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut options = heed::EnvOpenOptions::new().read_txn_without_tls();
    // SAFETY: the child only reads, and has the environment open once.
    let env = unsafe {
        options.flags(heed::EnvFlags::READ_ONLY);
        options.open(Path::new(&folder)).unwrap()
    };
    let _reading = env.read_txn().unwrap();
    println!("{OPENED}");
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn the_copy_of_an_interrupted_one_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, tree) = mostly_free(folder.path());
    engine.close().unwrap();
    drop(engine);
    fs::write(folder.path().join(COPY), vec![7; 100_000]).unwrap();
    assert_eq!(numbers(&open(folder.path()), tree).len(), 1_000);
    assert!(!folder.path().join(COPY).exists());
}
