//! Interleavings of the whole engine on a disk in memory: commits, readers, flushes and the checkpointer,
//! each a thread.
//!
//! Run by `make test-schedules`. No other tests of the crate run in that build. Other modules named
//! `schedules` test single parts: the log, the order of commits, the freeze, the cache.

use std::path::Path;
use std::sync::Arc;

use pando_environment::sync::{explore, thread};
use pando_environment::{Environment, Simulation};
use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, Claim, CommitReceipt, Direction, Durability, Engine, ErrorKind,
    KeyRange, Merge, Transaction, TreeId, TreeOptions,
};

use crate::engine::Betree;
use crate::options::Options;

/// Options of a small store whose background work finds no work by itself.
pub(crate) fn quiet_options() -> Options {
    Options { growth_bytes: 64 << 10, cache_bytes: 1 << 20, merge_threads: 1, ..Options::default() }
}

/// Options of a store whose partitions are full after a few writes.
fn busy_options() -> Options {
    let sizes =
        [("partitionSize", "1KB"), ("pageSize", "512B"), ("leafSize", "2KB"), ("compression", "none")];
    let entries: Vec<_> =
        sizes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    quiet_options().with_entries(&entries).expect("the options are good ones")
}

fn open(options: Options) -> (Simulation, Arc<Betree>, TreeId) {
    let simulation = Environment::scheduled(5);
    let engine = Betree::open(&simulation.environment, Path::new("/store"), options);
    let engine = engine.expect("a new store can be made");
    let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is made");
    (simulation, engine, tree)
}

fn number(reader: &dyn Transaction, tree: TreeId, key: &[u8]) -> u64 {
    let found = reader.get(tree, key, BlockingMode::MayBlock).expect("it is read");
    found.map_or(0, |value| u64::from_le_bytes(value[..8].try_into().expect("eight bytes")))
}

/// A number and some bytes behind it, so that a partition is soon full.
fn value(number: u64) -> Vec<u8> {
    let mut value = vec![number as u8; 200];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

#[test]
fn a_snapshot_sees_all_of_a_commit_or_nothing() {
    explore(400, || {
        let (_simulation, engine, tree) = open(quiet_options());
        let writers: Vec<_> = (0..2_u64)
            .map(|writer| {
                let engine = Arc::clone(&engine);
                thread::spawn(move || {
                    for round in 1..=2 {
                        let mut transaction = engine.begin(Begin::WRITE).expect("a writer begins");
                        for key in [b"a", b"m", b"z"] {
                            transaction
                                .put_blind(tree, key, &value(writer * 100 + round))
                                .expect("the put succeeds");
                        }
                        transaction.commit(Durability::None).expect("the commit succeeds");
                    }
                })
            })
            .collect();
        for _ in 0..3 {
            let reader = engine.begin(Begin::READ).expect("a reader begins");
            let seen = [b"a", b"m", b"z"].map(|key| number(&*reader, tree, key));
            assert!(seen.iter().all(|number| *number == seen[0]), "{seen:?}");
        }
        writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
    });
}

#[test]
fn of_two_writers_of_one_key_neither_loses_an_update() {
    explore(400, || {
        let (_simulation, engine, tree) = open(quiet_options());
        let writers: Vec<_> = (0..3)
            .map(|_| {
                let engine = Arc::clone(&engine);
                thread::spawn(move || {
                    let mut transaction = engine.begin(Begin::WRITE).expect("a writer begins");
                    let seen = number(&*transaction, tree, b"key");
                    match transaction.put(tree, b"key", &value(seen + 1)) {
                        Ok(()) => {}
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Conflict);
                            return 0;
                        }
                    }
                    transaction.commit(Durability::None).expect("the commit succeeds");
                    1
                })
            })
            .collect();
        let committed: u64 =
            writers.into_iter().map(|writer| writer.join().expect("it does not panic")).sum();
        let reader = engine.begin(Begin::READ).expect("a reader begins");
        assert!(committed > 0, "the first one wins");
        assert_eq!(number(&*reader, tree, b"key"), committed);
    });
}

/// All numbers of a tree, by a scan over its buffers, runs and leaves.
fn scanned(reader: &dyn Transaction, tree: TreeId) -> Vec<u64> {
    let mut batch = Batch::new();
    let (range, limits) = (KeyRange::all(), BatchLimits::LARGEST);
    reader
        .scan(tree, &range, Direction::Forward, limits, BlockingMode::MayBlock, &mut batch)
        .expect("it is read");
    batch.iter().map(|(_, value)| u64::from_le_bytes(value[..8].try_into().expect("eight bytes"))).collect()
}

#[test]
fn readers_see_their_snapshot_while_buffers_are_frozen_flushed_and_views_replaced() {
    explore(400, || {
        let (_simulation, engine, tree) = open(busy_options());
        let writer = {
            let engine = Arc::clone(&engine);
            thread::spawn(move || {
                for round in 1..=6 {
                    let mut transaction = engine.begin(Begin::WRITE).expect("a writer begins");
                    for key in 0..4_u8 {
                        transaction.put_blind(tree, &[key], &value(round)).expect("the put succeeds");
                    }
                    transaction.commit(Durability::Logged).expect("the commit succeeds");
                }
            })
        };
        let mut last = 0;
        while last < 6 {
            let reader = engine.begin(Begin::READ).expect("a reader begins");
            let first = number(&*reader, tree, &[0]);
            assert!(first >= last, "{first} after {last}");
            let expected = if first == 0 { Vec::new() } else { vec![first; 4] };
            assert_eq!(scanned(&*reader, tree), expected);
            assert_eq!(number(&*reader, tree, &[3]), first);
            last = first;
            thread::yield_now();
        }
        writer.join().expect("it does not panic");
        engine.checkpoint().expect("a checkpoint is made");
        let reader = engine.begin(Begin::READ).expect("a reader begins");
        assert_eq!(scanned(&*reader, tree), [6; 4]);
        drop(reader);
        engine.close().expect("the disk is sound");
    });
}

/// Adds one to each of these counters, blindly, beside a put that fills the buffer.
fn count(engine: &Betree, tree: TreeId, counters: &[&[u8]], filler: u8) -> CommitReceipt {
    let mut transaction = engine.begin(Begin::WRITE).expect("a writer begins");
    for counter in counters {
        let one = Merge::Add(1);
        transaction
            .merge(tree, counter, one, Claim::Blind, BlockingMode::MayBlock)
            .expect("merges are blind");
    }
    transaction.put_blind(tree, &[filler], &value(0)).expect("the put succeeds");
    transaction.commit(Durability::None).expect("the commit succeeds")
}

#[test]
fn every_blind_merge_operator_counts_once_while_buffers_are_frozen_swept_and_flushed() {
    explore(400, || {
        let (_simulation, engine, tree) = open(busy_options());
        let writers: Vec<_> = (1..=3_u8)
            .map(|writer| {
                let engine = Arc::clone(&engine);
                thread::spawn(move || {
                    for round in 0..3 {
                        count(&engine, tree, &[b"\0", b"zz"], 10 * writer + round);
                        if round == 1 {
                            engine.store.visibility.refresh();
                        }
                    }
                })
            })
            .collect();
        let mut last = 0;
        for _ in 0..4 {
            let reader = engine.begin(Begin::READ).expect("a reader begins");
            let seen = [b"\0".as_slice(), b"zz"].map(|key| number(&*reader, tree, key));
            assert!(seen[0] == seen[1] && seen[0] >= last, "{seen:?} after {last}");
            last = seen[0];
            let fillers = scanned(&*reader, tree).len();
            assert_eq!(
                fillers as u64,
                if last == 0 { 0 } else { last + 2 },
                "one for each commit, and the counters"
            );
            thread::yield_now();
        }
        writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
        engine.store.checkpointer.flush_everything().expect("the disk is sound");
        let reader = engine.begin(Begin::READ).expect("a reader begins");
        assert_eq!([b"\0".as_slice(), b"zz"].map(|key| number(&*reader, tree, key)), [9, 9]);
    });
}

#[test]
fn blind_merge_operators_beside_a_large_commit_are_ordered_before_it_or_after_it() {
    explore(400, || {
        let mut options = busy_options();
        options.transaction_memory_bytes = 2_000;
        let (_simulation, engine, tree) = open(options);
        let large = {
            let engine = Arc::clone(&engine);
            thread::spawn(move || {
                let mut transaction = engine.begin(Begin::WRITE).expect("a writer begins");
                for key in 0..15_u8 {
                    // Enough to spill; one of the values is a counter.
                    let value = if key == 2 { 1_000_u64.to_le_bytes().to_vec() } else { value(0) };
                    transaction.put(tree, &[key], &value).expect("nobody has the key");
                    let (one, blocking) = (Merge::Add(1), BlockingMode::MayBlock);
                    transaction.merge(tree, b"both", one, Claim::Blind, blocking).expect("merges are blind");
                }
                transaction.commit(Durability::None).expect("the commit succeeds").timestamp
            })
        };
        let small: Vec<_> = (0..2_u8)
            .map(|writer| {
                let engine = Arc::clone(&engine);
                thread::spawn(move || {
                    [(); 2].map(|()| count(&engine, tree, &[&[2], b"both"], 100 + writer).timestamp)
                })
            })
            .collect();
        let large = large.join().expect("it does not panic");
        let small = small.into_iter().flat_map(|writer| writer.join().expect("it does not panic"));
        let behind = small.filter(|timestamp| *timestamp > large).count() as u64;
        assert_eq!(engine.statistics().get("commits.large"), Some(1));
        for _ in 0..2 {
            let reader = engine.begin(Begin::READ).expect("a reader begins");
            assert_eq!(number(&*reader, tree, &[2]), 1_000 + behind);
            assert_eq!(number(&*reader, tree, b"both"), 15 + 4);
            drop(reader);
            engine.store.checkpointer.flush_everything().expect("the disk is sound");
        }
    });
}
