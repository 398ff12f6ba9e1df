//! A power cut leaves any mixture of old and new pages in LMDB's file; the store opens at its last durable
//! state.
//!
//! The cut is acted out: the file is copied when a state is durable, and again after many commits that were
//! not synced. Page by page either copy may have reached the device. A mark with another boot id tells the
//! engine that the machine has been started anew.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pando_environment::{Environment, MockClock, SeededRandom};
use pando_lmdb::{LmdbEngine, LmdbOptions};
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, Engine, ErrorKind, KeyRange, Operation, StorageError,
    TreeId, TreeOptions,
};

const PAGE_BYTES: usize = 4_096;

/// Where the boot id's text lies in a slot of the file `durable`: after magic, checksum, sequence, state and
/// length.
const BOOT_AT: usize = 22;
const SLOT_BYTES: usize = 132 * 1024;

fn open(folder: &Path) -> Result<LmdbEngine, StorageError> {
    LmdbEngine::open(&Environment::real(), folder, LmdbOptions::default())
}

/// The real environment with a clock that stands still: the task that syncs never finds a commit old enough.
fn timeless() -> Environment {
    let real = Environment::real();
    let clock = Arc::new(MockClock::new());
    let (files, random) = (Arc::clone(real.files()), Arc::clone(real.random()));
    Environment::of_parts(files, clock, random, Arc::clone(real.spawner()))
}

fn entries(engine: &LmdbEngine, tree: TreeId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let reader = engine.begin(Begin::READ).unwrap();
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut found = Vec::new();
    while let Some((key, value)) = cursor.next(&*reader, BlockingMode::MayBlock).unwrap() {
        found.push((key.to_vec(), value.to_vec()));
    }
    found
}

/// Overwrites, deletes and inserts all over the tree.
fn churn(engine: &LmdbEngine, tree: TreeId, random: &SeededRandom) {
    for _ in 0..300 {
        let mut writer = engine.begin(Begin::WRITE).unwrap();
        for _ in 0..5 {
            let key = random.below(2_000).to_be_bytes();
            match random.below(4) {
                0 => writer.delete(tree, &key).unwrap(),
                _ => writer
                    .put(tree, &key, &vec![random.below(256) as u8; random.below(3_000) as usize])
                    .unwrap(),
            }
        }
        writer.commit(Durability::Logged).unwrap();
    }
}

/// Puts another boot id into both slots of the file `durable`, with checksums that fit.
fn start_the_machine_anew(folder: &Path) {
    let path = folder.join("durable");
    let mut bytes = fs::read(&path).unwrap();
    for start in [0, SLOT_BYTES] {
        let Some(slot) = bytes.get_mut(start..) else { continue };
        if !slot.starts_with(b"pandomdb") {
            continue;
        }
        slot[BOOT_AT] ^= 1;
        let metas_at = BOOT_AT + 64;
        let length = u32::from_le_bytes(slot[metas_at..metas_at + 4].try_into().unwrap()) as usize;
        let checksum = crc32c::crc32c(&slot[12..metas_at + 4 + length]);
        slot[8..12].copy_from_slice(&checksum.to_le_bytes());
    }
    fs::write(&path, bytes).unwrap();
}

/// A file in which each page is either the old or the new one; the metas are the new ones, which is the
/// worst.
fn mixture(old: &[u8], new: &[u8], random: &SeededRandom) -> Vec<u8> {
    let mut mixed = new.to_vec();
    for (at, page) in mixed.chunks_mut(PAGE_BYTES).enumerate().skip(2) {
        if random.below(2) == 0 {
            match old.get(at * PAGE_BYTES..(at + 1) * PAGE_BYTES) {
                Some(before) => page.copy_from_slice(before),
                None => page.fill(0),
            }
        }
    }
    mixed
}

#[test]
fn after_a_power_cut_the_last_durable_state_is_there_whatever_pages_reached_the_device() {
    for seed in 0..6 {
        let random = SeededRandom::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let engine = LmdbEngine::open(&timeless(), folder.path(), LmdbOptions::default()).unwrap();
        let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
        churn(&engine, tree, &random);
        engine.checkpoint().unwrap();
        let durable_state = entries(&engine, tree);
        let old = fs::read(folder.path().join("data.mdb")).unwrap();
        let mark = fs::read(folder.path().join("durable")).unwrap();
        churn(&engine, tree, &random);
        let new = fs::read(folder.path().join("data.mdb")).unwrap();
        assert!(
            fs::read(folder.path().join("durable")).unwrap() == mark,
            "seed {seed}: something was synced"
        );
        drop(engine);
        fs::write(folder.path().join("data.mdb"), mixture(&old, &new, &random)).unwrap();
        start_the_machine_anew(folder.path());
        let engine = open(folder.path()).unwrap();
        assert!(entries(&engine, tree) == durable_state, "seed {seed}: another state came back");
        churn(&engine, tree, &random);
        let state = entries(&engine, tree);
        engine.close().unwrap();
        drop(engine);
        assert!(
            entries(&open(folder.path()).unwrap(), tree) == state,
            "seed {seed}: the store does not go on"
        );
    }
}

#[test]
fn after_a_compaction_a_power_cut_leaves_the_state_that_was_compacted_or_a_later_durable_one() {
    for seed in 0..4 {
        let random = SeededRandom::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let engine = LmdbEngine::open(&timeless(), folder.path(), LmdbOptions::default()).unwrap();
        let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
        churn(&engine, tree, &random);
        let before = fs::read(folder.path().join("data.mdb")).unwrap();
        engine.compact(&[], &Operation::default()).unwrap();
        let old = fs::read(folder.path().join("data.mdb")).unwrap();
        assert!(old.len() < before.len(), "seed {seed}: there was nothing to compact");
        let durable_state = entries(&engine, tree);
        churn(&engine, tree, &random);
        let new = fs::read(folder.path().join("data.mdb")).unwrap();
        drop(engine);
        fs::write(folder.path().join("data.mdb"), mixture(&old, &new, &random)).unwrap();
        start_the_machine_anew(folder.path());
        let engine = open(folder.path()).unwrap();
        assert!(entries(&engine, tree) == durable_state, "seed {seed}: another state came back");
        churn(&engine, tree, &random);
    }
}

#[test]
fn a_power_cut_within_a_compaction_leaves_either_file() {
    let random = SeededRandom::new(1);
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    churn(&engine, tree, &random);
    let state = entries(&engine, tree);
    engine.close().unwrap();
    drop(engine);
    let old = fs::read(folder.path().join("data.mdb")).unwrap();
    // The mark of a clean end is the one under which a compaction renames its copy.
    let mark = fs::read(folder.path().join("durable")).unwrap();
    let engine = open(folder.path()).unwrap();
    engine.compact(&[], &Operation::default()).unwrap();
    drop(engine);
    let new = fs::read(folder.path().join("data.mdb")).unwrap();
    assert!(new.len() < old.len(), "there was nothing to compact");
    for file in [&old, &new] {
        fs::write(folder.path().join("data.mdb"), file).unwrap();
        fs::write(folder.path().join("durable"), &mark).unwrap();
        start_the_machine_anew(folder.path());
        let engine = open(folder.path()).unwrap();
        assert!(entries(&engine, tree) == state);
    }
}

#[test]
fn a_killed_process_loses_nothing_that_was_committed() {
    let random = SeededRandom::new(1);
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    churn(&engine, tree, &random);
    let state = entries(&engine, tree);
    drop(engine);
    assert!(entries(&open(folder.path()).unwrap(), tree) == state);
}

#[test]
fn a_store_without_its_mark_is_refused_rather_than_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    engine.close().unwrap();
    drop(engine);
    fs::remove_file(folder.path().join("durable")).unwrap();
    assert_eq!(open(folder.path()).map(|_| ()).map_err(|error| error.kind()), Err(ErrorKind::Corrupt));
}

#[test]
fn commits_are_synced_within_a_tenth_of_a_second_though_nobody_asks() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let mut writer = engine.begin(Begin::WRITE).unwrap();
    writer.put(tree, b"k", b"v").unwrap();
    let receipt = writer.commit(Durability::Logged).unwrap();
    // Generous: the machine that runs the tests may be busy with others.
    for _ in 0..500 {
        if engine.statistics().get("commits.synced") >= Some(receipt.lsn.get()) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("nothing was synced");
}
