//! Large commits in the log: which records it keeps, and for how long.

use std::path::Path;
use std::sync::Arc;

use pando_environment::{Environment, Simulation};
use pando_storage::{Begin, BlockingMode, Claim, Engine, Merge, TreeOptions, Write};

use crate::commit::large_commit::*;
use crate::space::Shutdown;
use crate::{Betree, Options, verify};

const FOLDER: &str = "/store";
const KEYS: u32 = 24;
/// The key that both the large commit and the small ones merge into.
const COUNTER: &[u8] = b"counter";

fn open(simulation: &Simulation) -> Arc<Betree> {
    let mut options = Options::default();
    (options.cache_bytes, options.partition_bytes) = (64 << 10, 1 << 10);
    options.transaction_memory_bytes = 400;
    Betree::open(&simulation.environment, Path::new(FOLDER), options).expect("the store opens")
}

fn commit_small(engine: &Betree, tree: TreeId, key: &[u8], value: &[u8]) {
    let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
    writer.put(tree, key, value).expect("nobody has the key");
    if key[0] == b's' {
        let one = Merge::Add(1);
        writer.merge(tree, COUNTER, one, Claim::Blind, BlockingMode::MayBlock).expect("merges are blind");
    }
    writer.commit(Durability::Logged).expect("it is committed");
}

/// The number of the large commit's values that are there, and the small commits' counter.
fn found(engine: &Betree, tree: TreeId) -> (u32, Vec<u8>) {
    let reader = engine.begin(Begin::READ).expect("readers begin");
    let get = |key: &[u8]| reader.get(tree, key, BlockingMode::MayBlock).expect("reads succeed");
    let large =
        (0..KEYS).filter(|key| get(&key.to_be_bytes()).as_deref() == Some(&b"new".repeat(30))).count();
    let counter = get(COUNTER).map_or(0, |value| i64::from_le_bytes((*value).try_into().expect("a counter")));
    // The large commit adds a thousand for each, and each small one adds one.
    assert_eq!(counter / 1_000, large as i64, "its merges are as visible as its other writes");
    let merged = counter % 1_000;
    let small = (0..20).filter(|key| get(&[b's', *key]).is_some()).collect();
    let small: Vec<u8> = small;
    assert!(merged == small.len() as i64, "{merged} merges of {} small commits", small.len());
    (large as u32, small)
}

/// Carries a large commit out step by step, with `between` after each, and ends the process after `steps` of
/// them. Returns the content then, and after a restart. The steps are: the parts, the end, each part's way
/// into the buffers, the last record with the merges.
fn carry_out(
    steps: usize,
    ending: impl Fn(&Simulation),
    between: impl Fn(&Betree, TreeId, u8),
) -> (usize, (u32, Vec<u8>), (u32, Vec<u8>)) {
    let simulation = Environment::simulated(7);
    let engine = open(&simulation);
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    (0..KEYS).for_each(|key| commit_small(&engine, tree, &key.to_be_bytes(), b"old"));
    let store = &engine.store;
    let mut writes = SpillingWrites::new(&store.spill);
    for key in 0..KEYS {
        let (key, value) = (key.to_be_bytes(), b"new".repeat(30));
        writes.write(Write::put(tree, &key, &value, Claim::Intent)).expect("there is room");
        let thousand = Merge::Add(1_000);
        writes.merge(tree, COUNTER, thousand, Claim::Blind, BlockingMode::MayBlock).expect("there is room");
    }
    let mut parts = LoggedParts::default();
    let trees = store.committer.log_parts(&writes, &mut parts).expect("the log has room");
    let count = parts.places.len();
    let mut left = steps;
    let mut go_on = |step: usize| {
        between(&engine, tree, step as u8);
        left = left.saturating_sub(1);
        left > 0
    };
    let mut carry = || {
        if !go_on(0) {
            return;
        }
        let mut decided = store.committer.decide(&mut parts, &trees, &[]).expect("the log has room");
        if !go_on(1) {
            return;
        }
        store.gate.log().write_through(store.gate.log().appended_lsn()).expect("the log is written");
        let mut log = ReadBack::new(&store.environment, Path::new(FOLDER), None);
        for step in 0..count {
            store.committer.apply_part(&mut decided, &mut log).expect("it is put in");
            if !go_on(2 + step) {
                return;
            }
        }
        store.committer.end_large(&decided, &mut log, |_| ()).expect("the log has room");
        go_on(2 + count);
    };
    carry();
    let before = found(&engine, tree);
    store.gate.log().write_through(store.gate.log().appended_lsn()).expect("the log is written");
    ending(&simulation);
    drop((writes, engine));
    simulation.tasks.forget_all();
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("it can be verified");
    assert!(report.is_sound(), "{:?}", report.damage);
    let engine = open(&simulation);
    let after = found(&engine, tree);
    commit_small(&engine, tree, b"behind", b"it");
    engine.close().expect("it is closed");
    drop(engine);
    assert_eq!(found(&open(&simulation), tree), after, "another restart changes nothing");
    (count, before, after)
}

#[test]
fn at_every_step_of_a_large_commit_others_commit_and_a_kill_leaves_all_of_it_or_nothing() {
    let between = |engine: &Betree, tree: TreeId, step: u8| {
        if step < 12 {
            commit_small(engine, tree, &[b's', step], b"small");
        }
    };
    let checkpoints = |engine: &Betree, tree: TreeId, step: u8| {
        between(engine, tree, step);
        engine.store.checkpointer.checkpoint(Shutdown::Running).expect("it succeeds");
    };
    let merges = |engine: &Betree, tree: TreeId, step: u8| {
        between(engine, tree, step);
        engine.store.checkpointer.flush_everything().expect("it succeeds");
        engine.store.checkpointer.checkpoint(Shutdown::Running).expect("it succeeds");
        engine.store.checkpointer.checkpoint(Shutdown::Running).expect("it succeeds");
    };
    let every: [&dyn Fn(&Betree, TreeId, u8); 3] = [&between, &checkpoints, &merges];
    for between in every {
        let count = carry_out(1, |simulation| simulation.disk.kill(), between).0;
        assert!(count > 8, "{count} parts");
        for steps in 1..=count + 3 {
            let (_, before, after) = carry_out(steps, |simulation| simulation.disk.kill(), between);
            let small: Vec<u8> = (0..steps.min(12) as u8).collect();
            let is_decided = steps > 1;
            let is_whole = steps == count + 3;
            assert_eq!(before, (if is_whole { KEYS } else { 0 }, small.clone()), "{steps} steps, before");
            assert_eq!(after, (if is_decided { KEYS } else { 0 }, small), "{steps} steps, after");
        }
    }
}

#[test]
fn a_power_cut_at_any_step_of_a_large_commit_leaves_all_of_it_or_nothing_and_all_once_it_was_seen() {
    let between = |engine: &Betree, tree: TreeId, step: u8| {
        if step < 12 {
            commit_small(engine, tree, &[b's', step], b"small");
        }
        if step.is_multiple_of(5) {
            engine.store.checkpointer.checkpoint(Shutdown::Running).expect("it succeeds");
        }
    };
    let count = carry_out(1, |simulation| simulation.disk.kill(), between).0;
    for steps in 1..=count + 3 {
        for seed in 0..4 {
            let (_, before, after) = carry_out(steps, |simulation| simulation.disk.crash(seed), between);
            assert!(after.0 == 0 || after.0 == KEYS, "{steps} steps: {} of {KEYS}", after.0);
            assert!(before.0 == 0 || after == before, "{steps} steps: what was seen is there");
            let order: Vec<u8> = (0..after.1.len() as u8).collect();
            assert_eq!(after.1, order, "{steps} steps: a hole in the order of commits");
        }
    }
}
