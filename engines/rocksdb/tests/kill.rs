//! Repeated kills of a writing process: every commit that was acknowledged as `Logged` is there, with its
//! index entry, and the store goes on.
//!
//! The child is this test binary itself, started with a folder in its environment. Its threads commit
//! documents with an index entry in a tree of another column family, and write the number of each
//! acknowledged one to a file of their own. The parent kills it after some dozens of milliseconds.

#![allow(clippy::unwrap_used, reason = "the whole file is one test")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use pando_environment::Environment;
use pando_rocksdb::{RocksdbEngine, RocksdbOptions};
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, Engine, KeyRange, TreeId, TreeOptions,
};

const KILLS: u64 = 12;
const THREADS: u64 = 3;
const FOLDER: &str = "PANDO_ROCKSDB_KILL_TEST_FOLDER";

fn open(folder: &Path) -> RocksdbEngine {
    // Small, so that flushes and compactions happen within the moments that a child lives.
    let entries = [("cache", "4MB"), ("logBudget", "1MB")];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = RocksdbOptions::default().with_entries(&entries).unwrap();
    RocksdbEngine::open(&Environment::real(), folder, options).expect("the store opens")
}

fn tree(engine: &RocksdbEngine, name: &str, compression: &str) -> TreeId {
    match engine.list_trees().unwrap().into_iter().find(|tree| tree.name == name) {
        Some(tree) => tree.id,
        None => {
            let entries = vec![("compression".to_owned(), compression.to_owned())];
            engine.create_tree(name, &TreeOptions { entries }).unwrap()
        }
    }
}

fn value_of(number: u64) -> Vec<u8> {
    format!("value of {number}: {}", "x".repeat((number % 700) as usize)).into_bytes()
}

/// The child: writes until it is killed. A normal test run has no folder: the test ends at once.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let engine = open(&folder.join("store"));
    let (documents, index) = (tree(&engine, "documents", "lz4"), tree(&engine, "index", "none"));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let engine = &engine;
            let mut told = File::options()
                .append(true)
                .create(true)
                .open(folder.join(format!("told-{thread}")))
                .unwrap();
            let mut number = 1_000_000_000 * (thread + 1) + told.metadata().unwrap().len() / 8 * 10;
            scope.spawn(move || {
                loop {
                    let mut writer = engine.begin(Begin::WRITE).unwrap();
                    writer.put(documents, &number.to_be_bytes(), &value_of(number)).unwrap();
                    writer.put_blind(index, &number.reverse_bits().to_be_bytes(), b"").unwrap();
                    writer.commit(Durability::Logged).unwrap();
                    told.write_all(&number.to_be_bytes()).unwrap();
                    number += 1;
                }
            });
        }
    });
}

#[test]
fn killed_processes_lose_nothing_that_was_acknowledged() {
    if std::env::var_os(FOLDER).is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_writes_until_it_is_killed", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(120 + 40 * kill));
        child.kill().unwrap();
        child.wait().unwrap();
        check(folder.path());
    }
    let told: u64 = (0..THREADS).map(|thread| numbers(folder.path(), thread).len() as u64).sum();
    assert!(told > KILLS, "the children have hardly written: {told}");
}

/// The acknowledged numbers of a thread. A torn number at the end was not acknowledged.
fn numbers(folder: &Path, thread: u64) -> Vec<u64> {
    let bytes = std::fs::read(folder.join(format!("told-{thread}"))).unwrap_or_default();
    bytes.chunks_exact(8).map(|number| u64::from_be_bytes(number.try_into().unwrap())).collect()
}

fn check(folder: &Path) {
    let engine = open(&folder.join("store"));
    let (documents, index) = (tree(&engine, "documents", "lz4"), tree(&engine, "index", "none"));
    let reader = engine.begin(Begin::READ).unwrap();
    let read = |tree| {
        let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
        let mut found = Vec::new();
        while let Some((key, value)) = cursor.next(&*reader, BlockingMode::MayBlock).unwrap() {
            found.push((u64::from_be_bytes(key.try_into().unwrap()), value.to_vec()));
        }
        found
    };
    let (documents, index) = (read(documents), read(index));
    let found: BTreeSet<u64> = documents.iter().map(|(number, _)| *number).collect();
    let indexed: BTreeSet<u64> = index.iter().map(|(key, _)| key.reverse_bits()).collect();
    assert!(found == indexed, "documents and index entries differ");
    for (number, value) in &documents {
        assert!(*value == value_of(*number), "the value of {number}");
    }
    for thread in 0..THREADS {
        let lost: Vec<u64> =
            numbers(folder, thread).into_iter().filter(|number| !found.contains(number)).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    }
}
