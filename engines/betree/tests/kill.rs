//! Repeated kills of a writing process: every commit that was acknowledged as `Logged` must be there, with
//! its index entries.
//!
//! The child is this test binary itself, started with a folder in its environment. It runs three threads.
//! Each commits documents with an index entry in another tree. It writes the number of each acknowledged one
//! to its own file, with one `write` call, which survives the kill as the log does. The parent kills it after
//! a few dozen milliseconds, opens the store, and checks that
//! - every acknowledged number is there, with the value that belongs to it;
//! - documents and index entries are exactly each other's;
//! - the store goes on from there: the next child continues in the same folder.

#![allow(clippy::unwrap_used, reason = "the whole file is one test")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pando_betree::{Betree, Options, verify};
use pando_environment::Environment;
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, Engine, KeyRange, TreeId, TreeOptions,
};

const KILLS: u32 = 20;
const THREADS: u64 = 3;
const FOLDER: &str = "PANDO_KILL_TEST_FOLDER";

fn options() -> Options {
    let entries = [("leafSize", "8KB"), ("pageSize", "1KB"), ("fanout", "8")];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    // Small, so that merges and checkpoints happen within the few milliseconds that a child lives.
    options.cache_bytes = 256 << 10;
    options.partition_bytes = 16 << 10;
    options.log_budget_bytes = 1 << 20;
    options
}

fn open(folder: &Path) -> Arc<Betree> {
    Betree::open(&Environment::real(), folder, options()).expect("the store opens")
}

fn tree(engine: &Betree, name: &str) -> TreeId {
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
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let engine = open(&folder.join("store"));
    let (documents, index) = (tree(&engine, "documents"), tree(&engine, "index"));
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
fn twenty_kills_lose_no_acknowledged_write_and_break_no_index() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for round in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::child_that_writes_until_it_is_killed", "--exact", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let life = 50 + u64::from(round) * 37 % 80;
        std::thread::sleep(Duration::from_millis(life));
        assert!(child.try_wait().unwrap().is_none(), "round {round}: the child ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        seen = check(folder.path(), round);
    }
    assert!(seen > 100, "only {seen} writes in all rounds: the test has tested nothing");
    let report = verify(&Environment::real(), &folder.path().join("store")).unwrap();
    assert!(report.is_sound(), "{:?}", report.damage);
}

/// Checks the store. Returns the number of its documents. Later children go on behind the numbers told.
fn check(folder: &Path, round: u32) -> usize {
    let engine = open(&folder.join("store"));
    let (documents, index) = (tree(&engine, "documents"), tree(&engine, "index"));
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
    let indexed: BTreeSet<u64> = index.into_iter().map(u64::reverse_bits).collect();
    assert_eq!(documents, indexed, "round {round}: documents and index entries differ");
    drop(reader);
    // Half of the rounds end cleanly, so that the next child begins both ways.
    if round.is_multiple_of(2) {
        engine.close().unwrap();
    }
    documents.len()
}
