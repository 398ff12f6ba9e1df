//! Repeated kills of a writing process: every commit that was acknowledged as `Logged` must be there, with
//! its index entries, in B-trees and in LSM trees.
//!
//! The child is this test binary itself, started with a folder in its environment. It runs three threads,
//! and one that takes backups. Each of the three commits documents with an index entry and a blind merge of
//! one counter, and makes and drops a tree now and then. It writes the number of each acknowledged commit to
//! its own file with one `write` call, which survives the kill as the journal does. The parent kills it after
//! some dozen milliseconds, opens the store, and checks that
//! - every acknowledged number is there, with the value that belongs to it;
//! - documents and index entries are exactly each other's, and the counter has their number;
//! - trees that were half made or half dropped are gone, and the store goes on from there.

#![allow(clippy::unwrap_used, reason = "the whole file is one test")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use pando_environment::Environment;
use pando_storage::{
    BackupRequest, Begin, BlockingMode, Claim, Cursor, Direction, Durability, Engine, KeyRange, Merge,
    TreeId, TreeOptions,
};
use pando_wiredtiger::{WiredTigerEngine, WiredTigerOptions};

const KILLS: u32 = 12;
const THREADS: u64 = 3;
const FOLDER: &str = "PANDO_WIREDTIGER_KILL_TEST_FOLDER";
const TYPE: &str = "PANDO_WIREDTIGER_KILL_TEST_TYPE";

fn open(folder: &Path, table_type: &str) -> WiredTigerEngine {
    let entries =
        [("type", table_type), ("cache", "16MB"), ("journalFileSize", "1MB"), ("checkpointPeriod", "1")];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = WiredTigerOptions::default().with_entries(&entries).expect("the options are possible");
    WiredTigerEngine::open(&Environment::real(), folder, options).expect("the store opens")
}

fn tree(engine: &WiredTigerEngine, name: &str) -> TreeId {
    let listed = engine.list_trees().expect("trees are listed");
    match listed.into_iter().find(|tree| tree.name == name) {
        Some(tree) => tree.id,
        None => engine.create_tree(name, &TreeOptions::default()).expect("the tree is created"),
    }
}

fn value_of(number: u64) -> Vec<u8> {
    format!("value of {number}: {}", "x".repeat((number % 300) as usize)).into_bytes()
}

/// The child: writes until it is killed. A normal test run has no folder: the test ends at once.
#[test]
fn child_that_writes_until_it_is_killed() {
    let (Some(folder), Ok(table_type)) = (std::env::var_os(FOLDER), std::env::var(TYPE)) else { return };
    let folder = Path::new(&folder);
    let engine = open(&folder.join("store"), &table_type);
    let (documents, index, counters) =
        (tree(&engine, "collection-1"), tree(&engine, "index-2"), tree(&engine, "counters"));
    std::thread::scope(|scope| {
        // Some children are killed while they take a backup, which leaves a file of it in the store.
        scope.spawn(|| {
            loop {
                let to = folder.join("backup");
                let _removed = std::fs::remove_dir_all(&to);
                let environment = Environment::real();
                let request =
                    BackupRequest { environment: &environment, folder: &to, since: None, operation: None };
                engine.backup(&request).unwrap();
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        for thread in 0..THREADS {
            let engine = &engine;
            let path = folder.join(format!("told-{thread}"));
            let mut told = File::options().append(true).create(true).open(path).unwrap();
            let mut number = 1_000_000_000 * (thread + 1) + told.metadata().unwrap().len() / 8 * 10;
            scope.spawn(move || {
                loop {
                    let mut writer = engine.begin(Begin::WRITE).unwrap();
                    writer.put(documents, &number.to_be_bytes(), &value_of(number)).unwrap();
                    writer.put_blind(index, &number.reverse_bits().to_be_bytes(), b"").unwrap();
                    let blocking = BlockingMode::MayBlock;
                    writer.merge(counters, b"documents", Merge::Add(1), Claim::Blind, blocking).unwrap();
                    writer.commit(Durability::Logged).unwrap();
                    told.write_all(&number.to_be_bytes()).unwrap();
                    number += 1;
                    if number.is_multiple_of(50) {
                        let short =
                            engine.create_tree(&format!("short {number}"), &TreeOptions::default()).unwrap();
                        engine.drop_tree(short).unwrap();
                    }
                }
            });
        }
    });
}

/// The bytes of all numbers that were told.
fn told_bytes(folder: &Path) -> u64 {
    let bytes_of =
        |thread| std::fs::metadata(folder.join(format!("told-{thread}"))).map_or(0, |file| file.len());
    (0..THREADS).map(bytes_of).sum()
}

fn kill_and_check(table_type: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for round in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child_that_writes_until_it_is_killed", "--exact", "--nocapture"])
            .env(FOLDER, folder.path())
            .env(TYPE, table_type)
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        // A busy machine takes its time to start a child.
        let told_before = told_bytes(folder.path());
        while told_bytes(folder.path()) == told_before && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let life = 50 + u64::from(round) * 137 % 400;
        std::thread::sleep(Duration::from_millis(life));
        assert!(child.try_wait().unwrap().is_none(), "round {round}: the child ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        seen = check(folder.path(), table_type, round);
    }
    assert!(seen > 100, "only {seen} writes in all rounds: the test has tested nothing");
}

#[test]
fn kills_lose_no_acknowledged_write_of_btrees_and_break_no_index() {
    kill_and_check("btree");
}

#[test]
fn kills_lose_no_acknowledged_write_of_lsm_trees_and_break_no_index() {
    kill_and_check("lsm");
}

/// Checks the store. Returns the number of its documents. Later children go on behind the numbers told.
fn check(folder: &Path, table_type: &str, round: u32) -> usize {
    let engine = open(&folder.join("store"), table_type);
    let (documents, index, counters) =
        (tree(&engine, "collection-1"), tree(&engine, "index-2"), tree(&engine, "counters"));
    let reader = engine.begin(Begin::READ).unwrap();
    for thread in 0..THREADS {
        let Ok(mut file) = File::open(folder.join(format!("told-{thread}"))) else { continue };
        let mut told = Vec::new();
        file.read_to_end(&mut told).unwrap();
        for number in told.chunks_exact(8) {
            let number = u64::from_be_bytes(number.try_into().unwrap());
            let value = reader.get(documents, &number.to_be_bytes(), BlockingMode::MayBlock).unwrap();
            assert_eq!(
                value.as_deref(),
                Some(value_of(number).as_slice()),
                "round {round}: {number} was acknowledged"
            );
        }
    }
    let numbers = |tree| {
        let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
        let mut numbers = BTreeSet::new();
        while let Some((key, _)) = cursor.next(&*reader, BlockingMode::MayBlock).unwrap() {
            numbers.insert(u64::from_be_bytes(key.try_into().unwrap()));
        }
        numbers
    };
    let (documents, index) = (numbers(documents), numbers(index));
    let of_index: BTreeSet<u64> = index.iter().map(|number| number.reverse_bits()).collect();
    assert!(documents == of_index, "round {round}: documents and index entries differ");
    let counted = reader.get(counters, b"documents", BlockingMode::MayBlock).unwrap();
    let counted = counted.map_or(0, |bytes| i64::from_le_bytes(bytes[..].try_into().unwrap()));
    assert_eq!(counted as usize, documents.len(), "round {round}: the counter");
    drop(reader);
    // At most the trees that each thread had under way.
    let trees = engine.list_trees().unwrap();
    let short: Vec<_> = trees.iter().filter(|tree| tree.name.starts_with("short")).collect();
    assert!(short.len() <= (THREADS * u64::from(round + 1)) as usize, "round {round}: {short:?}");
    short.iter().for_each(|tree| engine.drop_tree(tree.id).unwrap());
    engine.close().unwrap();
    documents.len()
}
