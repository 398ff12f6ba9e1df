//! Repeated kills of a process with large commits: each commit is there as a whole or not at all, and is
//! there once acknowledged.
//!
//! The child is this test binary itself, started with a folder in its environment. In one transaction, ten
//! times larger than its memory limit, it gives all documents the number of the round. It writes the number
//! down once the commit is `Logged`. Another thread makes small commits. The parent kills the child and opens
//! the store. All documents must have one number, at least the last that was written down.

#![allow(clippy::unwrap_used, reason = "the whole file is one test")]

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

const KILLS: u64 = 12;
const DOCUMENTS: u32 = 3_000;
const FOLDER: &str = "PANDO_KILL_LARGE_TEST_FOLDER";

fn open(folder: &Path) -> Arc<Betree> {
    let mut options = Options::default();
    // Small, so that merges and checkpoints happen in the middle of a commit.
    options.cache_bytes = 256 << 10;
    options.partition_bytes = 16 << 10;
    options.log_budget_bytes = 1 << 20;
    options.transaction_memory_bytes = 32 << 10;
    Betree::open(&Environment::real(), folder, options).expect("the store opens")
}

fn tree(engine: &Betree, name: &str) -> TreeId {
    let listed = engine.list_trees().expect("trees are listed");
    match listed.into_iter().find(|tree| tree.name == name) {
        Some(tree) => tree.id,
        None => engine.create_tree(name, &TreeOptions::default()).expect("the tree is created"),
    }
}

/// The number that all documents have; 0 while there are none.
fn number_of_all(engine: &Betree, documents: TreeId) -> u64 {
    let reader = engine.begin(Begin::READ).unwrap();
    let mut cursor = Cursor::new(documents, KeyRange::all(), Direction::Forward);
    let (mut count, mut all) = (0, None);
    while let Some((_, value)) = cursor.next(&*reader, BlockingMode::MayBlock).unwrap() {
        let number = u64::from_be_bytes(*value.first_chunk().unwrap());
        assert_eq!(*all.get_or_insert(number), number, "document {count} is of another commit");
        count += 1;
    }
    assert!(count == 0 || count == DOCUMENTS, "{count} documents");
    all.unwrap_or(0)
}

/// The child's notes.
fn told(folder: &Path) -> Vec<u8> {
    let mut told = Vec::new();
    if let Ok(mut file) = File::open(folder.join("told")) {
        file.read_to_end(&mut told).unwrap();
    }
    told
}

/// The child: writes until it is killed. A normal test run has no folder: the test ends at once.
#[test]
fn child_that_makes_large_commits_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let engine = open(&folder.join("store"));
    let (documents, others) = (tree(&engine, "documents"), tree(&engine, "others"));
    let mut told = File::options().append(true).create(true).open(folder.join("told")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0_u64.. {
                let mut writer = engine.begin(Begin::WRITE).unwrap();
                writer.put(others, &(number % 500).to_be_bytes(), &number.to_be_bytes()).unwrap();
                writer.commit(Durability::None).unwrap();
            }
        });
        let mut number = number_of_all(&engine, documents);
        loop {
            number += 1;
            let mut writer = engine.begin(Begin::WRITE).unwrap();
            for document in 0..DOCUMENTS {
                let mut value = number.to_be_bytes().to_vec();
                value.resize(100, document as u8);
                writer.put(documents, &document.to_be_bytes(), &value).unwrap();
            }
            writer.commit(Durability::Logged).unwrap();
            told.write_all(&number.to_be_bytes()).unwrap();
        }
    });
}

#[test]
fn kills_leave_every_large_commit_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill_large::child_that_makes_large_commits_until_it_is_killed", "--exact", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        // A slow machine needs its time for the first commit.
        let told_before = told(folder.path()).len();
        for _ in 0..1_000 {
            if told(folder.path()).len() > told_before {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(round * 37 % 90));
        assert!(child.try_wait().unwrap().is_none(), "round {round}: the child ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        let engine = open(&folder.path().join("store"));
        let number = number_of_all(&engine, tree(&engine, "documents"));
        let told = told(folder.path())
            .chunks_exact(8)
            .last()
            .map_or(0, |last| u64::from_be_bytes(last.try_into().unwrap()));
        assert!(number == told || number == told + 1, "round {round}: {number} is there, {told} was told");
        if round % 3 == 0 {
            engine.close().unwrap();
        }
    }
    let report = verify(&Environment::real(), &folder.path().join("store")).unwrap();
    assert!(report.is_sound(), "{:?}", report.damage);
    let engine = open(&folder.path().join("store"));
    assert!(number_of_all(&engine, tree(&engine, "documents")) > 3, "the test has tested nothing");
}
