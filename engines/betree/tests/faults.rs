//! A disk that is full, decays, or fails to sync: errors are clear, no wrong data is returned, no
//! acknowledged commit is lost.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pando_betree::{Betree, Options, verify};
use pando_environment::simulated::{Fault, FaultRule};
use pando_environment::{Environment, Operation, Simulation};
use pando_storage::{
    Begin, BlockingMode, CheckedEngine, CommitReceipt, Cursor, Direction, Durability, Engine, ErrorKind,
    KeyRange, SharedEngine, StorageError, TreeId, TreeOptions,
};

const FOLDER: &str = "/store";

fn open(simulation: &Simulation) -> Result<SharedEngine, StorageError> {
    open_with(simulation, 1 << 20, 4 << 20)
}

fn open_with(
    simulation: &Simulation,
    cache_bytes: u64,
    log_budget_bytes: u64,
) -> Result<SharedEngine, StorageError> {
    let entries = [("pageSize", "1KB"), ("leafSize", "8KB"), ("fanout", "4")];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    options.cache_bytes = cache_bytes;
    options.partition_bytes = 32 << 10;
    options.log_budget_bytes = log_budget_bytes;
    let engine = Betree::open(&simulation.environment, Path::new(FOLDER), options)?;
    Ok(CheckedEngine::shared(engine as Arc<dyn Engine>))
}

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Not compressible, so that a full disk comes soon.
fn value(number: u32) -> Vec<u8> {
    let mut state = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(400).collect()
}

fn put(engine: &SharedEngine, tree: TreeId, number: u32) -> Result<CommitReceipt, StorageError> {
    let mut writer = engine.begin(Begin::WRITE)?;
    writer.put(tree, &key(number), &value(number))?;
    writer.commit(Durability::Logged)
}

fn assert_holds(engine: &SharedEngine, tree: TreeId, count: u32) {
    let reader = engine.begin(Begin::READ).expect("readers begin");
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    for number in 0..count {
        let entry = cursor.next(&*reader, BlockingMode::MayBlock).expect("reads go on");
        assert_eq!(entry, Some((key(number).as_slice(), value(number).as_slice())), "entry {number}");
    }
    assert_eq!(cursor.next(&*reader, BlockingMode::MayBlock).expect("reads go on"), None);
}

#[test]
fn on_a_full_disk_writes_fail_clearly_reads_go_on_and_writes_work_again_once_there_is_room() {
    let simulation = Environment::simulated(1);
    let engine = open(&simulation).expect("the store opens");
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    for number in 0..1_000 {
        put(&engine, tree, number).expect("there is room");
    }
    simulation.disk.set_capacity(Some(simulation.disk.used_bytes() + (1 << 20)));
    let mut written = 1_000;
    let error = loop {
        match put(&engine, tree, written) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        simulation.tasks.run_one();
        assert!(written < 1_000_000, "the disk does not get full");
    };
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(error.to_string().contains("no room"), "{error}");
    assert!(put(&engine, tree, written).is_err(), "without room it goes on failing");
    assert_holds(&engine, tree, written);
    simulation.disk.set_capacity(None);
    for _ in 0..2_000 {
        put(&engine, tree, written).expect("there is room again");
        written += 1;
    }
    engine.checkpoint().expect("there is room again");
    assert_holds(&engine, tree, written);
    engine.close().expect("the store closes");
    drop(engine);
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("the store can be verified");
    assert!(report.is_sound(), "{:?}", report.damage);
    assert_holds(&open(&simulation).expect("the store opens"), tree, written);
}

#[test]
fn of_a_store_with_a_flipped_bit_nothing_wrong_is_returned_and_the_rest_stays_readable() {
    let simulation = Environment::simulated(2);
    let engine = open(&simulation).expect("the store opens");
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    let count = 800;
    for number in 0..count {
        put(&engine, tree, number).expect("the put succeeds");
    }
    engine.close().expect("the store closes");
    drop(engine);
    let data = Path::new(FOLDER).join("data.0000");
    // Most of the file is room for growth.
    let bytes =
        simulation.disk.content(&data).iter().rposition(|byte| *byte != 0).expect("something is written");
    let (mut found, mut survived) = (0, 0);
    for step in 0..60 {
        let bit = bytes / 60 * step * 8 + step % 8;
        simulation.disk.flip_bit(&data, bit);
        let sound = verify(&simulation.environment, Path::new(FOLDER)).is_ok_and(|report| report.is_sound());
        let (errors, values) = read_all(&simulation, tree, count);
        assert!(sound || errors > 0 || values == count, "bit {bit}");
        assert!(!(sound && errors > 0), "bit {bit}: verify finds nothing, reads fail");
        found += u32::from(errors > 0);
        survived += u32::from(errors > 0 && values > 0);
        simulation.disk.flip_bit(&data, bit);
    }
    assert!(found > 10 && survived > 5, "{found} flips were noticed, {survived} left something readable");
}

/// How many keys could not be read, and how many could; those have their values.
fn read_all(simulation: &Simulation, tree: TreeId, count: u32) -> (u32, u32) {
    let engine = match open(simulation) {
        Ok(engine) => engine,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            return (count, 0);
        }
    };
    let reader = engine.begin(Begin::READ).expect("readers begin");
    let (mut errors, mut values) = (0, 0);
    for number in 0..count {
        match reader.get(tree, &key(number), BlockingMode::MayBlock) {
            Ok(found) => {
                assert_eq!(found.as_deref(), Some(value(number).as_slice()));
                values += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                let text = error.to_string();
                for part in ["data.0000", "block", "from key", "checksum"] {
                    assert!(text.contains(part), "{text:?} does not say {part}");
                }
                errors += 1;
            }
        }
    }
    drop(reader);
    drop(engine);
    (errors, values)
}

#[test]
fn after_a_failed_sync_of_the_log_nothing_is_written_and_reads_go_on() {
    let simulation = Environment::simulated(3);
    let engine = open(&simulation).expect("the store opens");
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    let receipt = put(&engine, tree, 0).expect("the put succeeds");
    simulation.disk.inject(FaultRule::new(Operation::Sync, Fault::InputOutputError).on("wal"));
    let outcome = engine.wait_durable(receipt, Durability::Synced);
    assert_eq!(outcome.expect_err("the sync fails").kind(), ErrorKind::Closed);
    let failure = engine.failure().expect("the engine has stopped itself").to_string();
    assert!(failure.contains("the log has stopped"), "{failure}");
    assert_eq!(put(&engine, tree, 1).expect_err("the log is not trusted").kind(), ErrorKind::Closed);
    assert!(engine.checkpoint().is_err(), "what the log may have lost is not made durable");
    assert_holds(&engine, tree, 1);
}

#[test]
fn after_a_failed_sync_of_the_data_no_checkpoint_is_made_and_the_next_open_finds_everything() {
    let simulation = Environment::simulated(4);
    let engine = open(&simulation).expect("the store opens");
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    for number in 0..500 {
        put(&engine, tree, number).expect("the put succeeds");
    }
    simulation.disk.inject(FaultRule::new(Operation::Sync, Fault::InputOutputError).on("data"));
    assert!(engine.failure().is_none());
    assert_eq!(engine.checkpoint().expect_err("the sync fails").kind(), ErrorKind::Closed);
    assert_eq!(engine.failure().map(|failure| failure.kind()), Some(ErrorKind::Closed));
    assert!(engine.checkpoint().is_err(), "a second sync would lie");
    assert_holds(&engine, tree, 500);
    drop(engine);
    assert_holds(&open(&simulation).expect("the store opens"), tree, 500);
}

#[test]
fn a_damaged_collection_can_be_dropped_and_stops_no_checkpoint_of_the_others() {
    let mut noticed = 0;
    for step in 0..40 {
        let simulation = Environment::simulated(5);
        let engine = open(&simulation).expect("the store opens");
        let damaged = engine.create_tree("damaged", &TreeOptions::default()).expect("the tree is created");
        let other = engine.create_tree("other", &TreeOptions::default()).expect("the tree is created");
        for number in 0..300 {
            put(&engine, damaged, number).expect("the put succeeds");
        }
        engine.close().expect("the store closes");
        drop(engine);
        let data = Path::new(FOLDER).join("data.0000");
        let bytes =
            simulation.disk.content(&data).iter().rposition(|byte| *byte != 0).expect("it is written");
        // Behind the superblocks.
        let head = 128 << 10;
        simulation.disk.flip_bit(&data, (head + (bytes - head) * step / 40) * 8 + step % 8);
        // A store that does not open tells us no more about drops.
        let Ok(engine) = open(&simulation) else { continue };
        for number in 0..300 {
            put(&engine, damaged, number).expect("writes are blind");
            put(&engine, other, number).expect("the put succeeds");
        }
        engine.drop_tree(damaged).expect("it is dropped");
        engine.checkpoint().expect("a checkpoint is made");
        noticed += u32::from(figure(&engine, "checkpoints.failed_drops") > 0);
        engine.close().expect("the store closes");
        drop(engine);
        let engine = open(&simulation).expect("the store opens again");
        assert_holds(&engine, other, 300);
        engine.close().expect("the store closes");
    }
    assert!(noticed > 0, "no flip hit what dropping reads");
}

#[test]
fn after_a_kill_damage_of_one_collection_keeps_no_other_from_being_opened_and_checkpointed() {
    let mut noticed = 0;
    for step in 0..40 {
        let simulation = Environment::simulated(8);
        let Some([damaged, other]) = damage_a_collection_and_kill(&simulation, step) else { continue };
        let engine = open(&simulation).expect("the store opens beside the damage");
        assert_holds(&engine, other, 1_000);
        let is_noticed = figure(&engine, "flushes.failed") > 0;
        // The checkpoint of its own accord after a replay.
        simulation.tasks.run_until_idle();
        assert!(!is_noticed || figure(&engine, "checkpoints.failed") > 0, "damage is reported");
        simulation.disk.kill();
        drop(engine);
        let engine = open(&simulation).expect("the store opens again");
        let replayed = figure(&engine, "recovery.records");
        assert!(replayed < 1_700, "the image has the progress of the other, and {replayed} are replayed");
        assert_holds(&engine, other, 1_000);
        engine.drop_tree(damaged).expect("it is dropped");
        engine.checkpoint().expect("a checkpoint is made");
        for number in 1_000..2_000 {
            put(&engine, other, number).expect("writes go on");
        }
        engine.close().expect("the store closes");
        drop(engine);
        assert_holds(&open(&simulation).expect("the store opens"), other, 2_000);
        noticed += u32::from(is_noticed);
    }
    assert!(noticed > 0, "no flip hit what a flush reads");
}

/// Makes two collections, flips a bit of the data file, writes to the second and then to the first, and kills
/// the process before any of these writes has left the log. `None` if the flip hits what opening needs.
fn damage_a_collection_and_kill(simulation: &Simulation, step: usize) -> Option<[TreeId; 2]> {
    let engine = open(simulation).expect("the store opens");
    // Without runs, so that flushes read leaves.
    let options = TreeOptions { entries: vec![("bufferPercent".to_owned(), "0".to_owned())] };
    let trees =
        ["damaged", "other"].map(|name| engine.create_tree(name, &options).expect("the tree is created"));
    for number in 0..300 {
        put(&engine, trees[0], number).expect("the put succeeds");
    }
    engine.close().expect("the store closes");
    drop(engine);
    let data = Path::new(FOLDER).join("data.0000");
    let bytes = simulation.disk.content(&data).iter().rposition(|byte| *byte != 0).expect("it is written");
    // Behind the superblocks.
    let head = 128 << 10;
    simulation.disk.flip_bit(&data, (head + (bytes - head) * step / 40) * 8 + step % 8);
    // No write fills these buffers. The smaller ones of the next open are filled while the log is replayed.
    let engine = open_with(simulation, 16 << 20, 4 << 20).ok()?;
    for number in 0..1_000 {
        put(&engine, trees[1], number).expect("the put succeeds");
    }
    for number in 0..800 {
        put(&engine, trees[0], number).expect("writes are blind");
    }
    simulation.disk.kill();
    Some(trees)
}

#[test]
fn where_the_log_fails_under_several_committers_all_of_them_return() {
    for round in 0..20 {
        let simulation = Environment::simulated(9);
        let engine = open_with(&simulation, 128 << 20, 256 << 20).expect("the store opens");
        let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
        let rule = FaultRule::new(Operation::Write, Fault::InputOutputError).on("wal");
        simulation.disk.inject(rule.after(round % 3));
        let (tell, told) = std::sync::mpsc::channel();
        for writer in 0..4 {
            let (engine, tell) = (Arc::clone(&engine), tell.clone());
            std::thread::spawn(move || {
                let outcomes = (0..100).map(|number| put_large(&engine, tree, writer * 1_000 + number));
                let failure = outcomes.filter_map(Result::err).next().expect("the log takes no more");
                tell.send(failure.kind()).expect("the test waits");
            });
        }
        for _ in 0..4 {
            let kind = told.recv_timeout(Duration::from_secs(60)).expect("every committer returns");
            assert_eq!(kind, ErrorKind::Closed);
        }
    }
}

/// Commits so much that the append of some commit writes the log by itself.
fn put_large(engine: &SharedEngine, tree: TreeId, number: u32) -> Result<(), StorageError> {
    let mut writer = engine.begin(Begin::WRITE)?;
    // The log compresses repetitions.
    let long: Vec<u8> = (0..1_500).flat_map(|part| value(number * 1_500 + part)).collect();
    writer.put(tree, &key(number), &long)?;
    writer.commit(Durability::None).map(|_| ())
}

fn figure(engine: &SharedEngine, wanted: &str) -> u64 {
    let statistics = engine.statistics();
    let found = statistics.iter().find(|(name, _)| *name == wanted);
    found.unwrap_or_else(|| panic!("there is no figure {wanted}")).1
}

#[test]
fn after_checkpoints_that_failed_halfway_room_is_used_once() {
    let simulation = Environment::simulated(6);
    let engine = open(&simulation).expect("the store opens");
    let trees = ["a", "b", "c"]
        .map(|name| engine.create_tree(name, &TreeOptions::default()).expect("the tree is created"));
    let mut random = 7_u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for _ in 0..40 {
        for turn in 0..450 {
            put(&engine, trees[turn % 3], below(600) as u32).expect("the put succeeds");
        }
        simulation.tasks.run_until_idle();
        // Each tree has been merged and has nodes to write; the superblock comes after catalog and space map.
        let rule = FaultRule::new(Operation::Write, Fault::InputOutputError).on("data");
        simulation.disk.inject(rule.after(below(3)));
        simulation.clock.advance(Duration::from_secs(61));
        simulation.tasks.run_until_idle();
        for _ in 0..below(450) {
            put(&engine, trees[below(3) as usize], below(600) as u32).expect("the put succeeds");
        }
        while engine.checkpoint().is_err() {}
    }
    let failed = figure(&engine, "checkpoints.failed");
    assert!(failed > 20, "{failed} checkpoints failed");
    engine.close().expect("the store closes");
    drop(engine);
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("the store can be verified");
    assert!(report.is_sound(), "{:?}", report.damage);
}
