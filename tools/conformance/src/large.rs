//! Transactions of thousands of writes: the same promises as for a few, wherever an engine keeps the writes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pando_storage::{Begin, BlockingMode, Direction, Durability, KeyRange, Savepoint, Transaction, TreeId};

use crate::subject::{Choices, Entry, Opened, Subject, commit, entries, entries_in, value};

const KEYS: usize = 4_000;
const WRITES: usize = 12_000;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: usize) -> Vec<u8> {
    format!("key-{number:05}").into_bytes()
}

/// Writes at random, goes back to savepoints, and compares what it reads on the way.
fn write_much(
    writer: &mut dyn Transaction,
    trees: [TreeId; 2],
    model: &mut [Content; 2],
    choices: &mut Choices,
) {
    let mut savepoints: Vec<(Savepoint, [Content; 2])> = Vec::new();
    for step in 0..WRITES {
        let at = choices.below(2);
        let key = key(choices.below(KEYS));
        match choices.below(100) {
            0..=69 => {
                let content = vec![step as u8; choices.below(60)];
                writer.put(trees[at], &key, &content).expect("the put succeeds");
                model[at].insert(key, content);
            }
            70..=89 => {
                writer.delete(trees[at], &key).expect("the delete succeeds");
                model[at].remove(&key);
            }
            90 if choices.one_in(20) => savepoints.push((writer.savepoint(), model.clone())),
            91 if choices.one_in(40) && !savepoints.is_empty() => {
                savepoints.truncate(1 + choices.below(savepoints.len()));
                let (savepoint, before) = savepoints.pop().expect("one is left");
                writer.rollback_to(savepoint);
                *model = before;
            }
            92 if choices.one_in(30) => {
                let range = KeyRange::prefix(&key[..7]);
                for direction in [Direction::Forward, Direction::Backward] {
                    let found = entries_in(writer, trees[at], &range, direction);
                    assert_eq!(found, expected(&model[at], &range, direction), "step {step}: {range:?}");
                }
            }
            _ => assert_eq!(value(writer, trees[at], &key).as_ref(), model[at].get(&key), "step {step}"),
        }
    }
}

fn expected(content: &Content, range: &KeyRange, direction: Direction) -> Vec<Entry> {
    let within = content.iter().filter(|(key, _)| range.contains(key));
    let mut all: Vec<Entry> = within.map(|(key, value)| (key.clone(), value.clone())).collect();
    if direction == Direction::Backward {
        all.reverse();
    }
    all
}

fn assert_all(engine: &Opened, trees: [TreeId; 2], model: &[Content; 2]) {
    for (tree, content) in trees.into_iter().zip(model) {
        assert!(
            engine.entries(tree) == expected(content, &KeyRange::all(), Direction::Forward),
            "{tree} differs"
        );
    }
}

/// A transaction of thousands of random writes, savepoints and rollbacks reads as plain maps do, while it
/// goes and once it is there.
pub fn a_transaction_of_thousands_of_writes_is_answered_as_by_a_model(subject: &Subject) {
    let mut engine = subject.open();
    let trees = [engine.tree("one"), engine.tree("two")];
    let mut model = [Content::new(), Content::new()];
    for seed in 1..4 {
        let mut choices = Choices::of_seed(seed);
        let mut writer = engine.writer();
        let mut own = model.clone();
        write_much(&mut *writer, trees, &mut own, &mut choices);
        for direction in [Direction::Forward, Direction::Backward] {
            let found = entries_in(&*writer, trees[0], &KeyRange::all(), direction);
            assert!(
                found == expected(&own[0], &KeyRange::all(), direction),
                "seed {seed}: own writes differ"
            );
        }
        assert_all(&engine, trees, &model);
        if seed == 2 {
            writer.rollback();
        } else {
            writer.commit(Durability::Logged).expect("the commit succeeds");
            model = own;
        }
        assert_all(&engine, trees, &model);
        if engine.is_durable() {
            engine = if seed == 1 { subject.crash(engine) } else { subject.reopen(engine) };
            assert_all(&engine, trees, &model);
        }
    }
}

/// Of two large transactions that meet, the first updater wins; small ones beside them are not concerned.
pub fn large_transactions_conflict_where_they_meet(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let (mut first, mut second) = (engine.writer(), engine.writer());
    for number in 0..KEYS {
        first.put(tree, &key(number), b"first").expect("the put succeeds");
        second.put(tree, &key(KEYS + number), b"second").expect("the put succeeds");
    }
    engine.put(tree, "beside", "both");
    let before = engine.reader();
    commit(first);
    engine.expect_conflict(second, |second| second.put(tree, &key(7), b"second"));
    assert_eq!(entries(&*before, tree).len(), 1);
    let there = engine.entries(tree);
    assert_eq!(there.len(), KEYS + 1);
    assert!(there.iter().all(|(key, value)| value == b"first" || key == b"beside"));
}

/// While large commits replace all values, every reader finds all of one commit.
pub fn readers_see_all_of_a_large_commit_or_nothing(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let write = |round: u8| {
        let mut writer = engine.writer();
        for number in 0..KEYS {
            writer.put(tree, &key(number), &[round; 30]).expect("the put succeeds");
        }
        commit(writer);
    };
    write(0);
    let is_over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|seed| {
            let (engine, is_over) = (engine.share(), Arc::clone(&is_over));
            thread::spawn(move || {
                let mut choices = Choices::of_seed(seed);
                while !is_over.load(Ordering::Relaxed) {
                    let reader = engine.begin(Begin::READ).expect("a reader begins");
                    let mut read = || {
                        let found = reader.get(tree, &key(choices.below(KEYS)), BlockingMode::MayBlock);
                        found.expect("the get succeeds").expect("the key is there")[0]
                    };
                    let first = read();
                    assert!((0..20).all(|_| read() == first), "a part of a commit was seen");
                }
            })
        })
        .collect();
    (1..6).for_each(write);
    is_over.store(true, Ordering::Relaxed);
    readers.into_iter().for_each(|reader| reader.join().expect("no reader saw a part of a commit"));
}
