//! Transactions that are larger than their memory limit: beside others, on a full disk, and rolled back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pando_betree::{Betree, Options, verify};
use pando_environment::{Environment, Simulation};
use pando_storage::{
    Begin, BlockingMode, CheckedEngine, Cursor, Direction, Durability, Engine, ErrorKind, KeyRange,
    SharedEngine, StorageError, Transaction, TreeId, TreeOptions,
};

const FOLDER: &str = "/store";

fn options(memory: u64) -> Options {
    let mut options = Options::default();
    (options.cache_bytes, options.partition_bytes) = (1 << 20, 32 << 10);
    options.log_budget_bytes = 4 << 20;
    options.transaction_memory_bytes = memory;
    options
}

fn open(environment: &Environment, folder: &Path, memory: u64) -> SharedEngine {
    let engine = Betree::open(environment, folder, options(memory)).expect("the store opens");
    CheckedEngine::shared(engine as Arc<dyn Engine>)
}

fn figure(engine: &SharedEngine, name: &str) -> u64 {
    engine.statistics().iter().find(|(have, _)| *have == name).map(|(_, value)| value).expect("it is counted")
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
    std::iter::repeat_with(next).take(200).collect()
}

fn put_many(
    writer: &mut dyn Transaction,
    tree: TreeId,
    numbers: std::ops::Range<u32>,
) -> Result<(), StorageError> {
    numbers.into_iter().try_for_each(|number| writer.put(tree, &number.to_be_bytes(), &value(number)))
}

fn count(engine: &SharedEngine, tree: TreeId) -> u32 {
    let reader = engine.begin(Begin::READ).expect("readers begin");
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut count = 0;
    while let Some((key, found)) = cursor.next(&*reader, BlockingMode::MayBlock).expect("reads succeed") {
        let number = u32::from_be_bytes(key.try_into().expect("a key has four bytes"));
        assert_eq!(found, value(number), "{number}");
        count += 1;
    }
    count
}

fn assert_nothing_left(simulation: &Simulation, engine: &SharedEngine) {
    assert_eq!(figure(engine, "transactions.memory_bytes"), 0);
    assert_eq!(figure(engine, "transactions.spilled_bytes"), 0);
    let left = simulation.environment.files().list(&Path::new(FOLDER).join("spill")).expect("it is there");
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn others_commit_and_are_seen_beside_a_large_commit_and_nobody_sees_a_part_of_it() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let engine = open(&Environment::real(), folder.path(), 64 << 10);
    let large = engine.create_tree("large", &TreeOptions::default()).expect("the tree is created");
    let small = engine.create_tree("small", &TreeOptions::default()).expect("the tree is created");
    let (is_over, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..2_u8 {
            let (engine, is_over, commits) = (&engine, &is_over, &commits);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
                    writer.put(small, &[thread], b"small").expect("nobody else has the key");
                    let receipt = writer.commit(Durability::None).expect("it is committed");
                    let reader = engine.begin(Begin::READ).expect("readers begin");
                    assert!(reader.snapshot().sees(receipt.timestamp), "a commit is seen by who comes next");
                    let sees = |number: u32| {
                        let found = reader.get(large, &number.to_be_bytes(), BlockingMode::MayBlock);
                        found.expect("reads succeed").is_some()
                    };
                    let seen = [sees(0), sees(9_999), sees(19_999)];
                    assert!(seen == [false; 3] || seen == [true; 3], "{seen:?}");
                    commits.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let before = engine.begin(Begin::READ).expect("readers begin");
        let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
        put_many(&mut *writer, large, 0..20_000).expect("there is room");
        assert!(figure(&engine, "transactions.spilled_layers") > 20);
        assert!(figure(&engine, "transactions.memory_bytes") < 100 << 10);
        let small_before = commits.load(Ordering::Relaxed);
        let receipt = writer.commit(Durability::Synced).expect("it is committed");
        let small_meanwhile = commits.load(Ordering::Relaxed) - small_before;
        is_over.store(true, Ordering::Relaxed);
        assert!(small_meanwhile > 0, "nobody committed during the large commit");
        engine.wait_durable(receipt, Durability::Synced).expect("it was synced");
        let mut cursor = Cursor::new(large, KeyRange::all(), Direction::Forward);
        assert_eq!(cursor.next(&*before, BlockingMode::MayBlock).expect("reads succeed"), None);
    });
    assert_eq!((count(&engine, large), figure(&engine, "commits.large")), (20_000, 1));
    assert!(figure(&engine, "commits.large_parts") > 10);
    engine.close().expect("it is closed");
    drop(engine);
    let engine = open(&Environment::real(), folder.path(), 64 << 10);
    assert_eq!(count(&engine, large), 20_000);
    engine.close().expect("it is closed");
}

#[test]
fn two_large_transactions_at_once_both_commit_where_they_do_not_meet_and_the_first_wins_where_they_do() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let engine = open(&Environment::real(), folder.path(), 64 << 10);
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    std::thread::scope(|scope| {
        for thread in 0..2_u32 {
            let engine = &engine;
            scope.spawn(move || {
                let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
                put_many(&mut *writer, tree, thread * 10_000..thread * 10_000 + 8_000)
                    .expect("they do not meet");
                writer.commit(Durability::Logged).expect("it is committed");
            });
        }
    });
    assert_eq!(count(&engine, tree), 16_000);
    let mut first = engine.begin(Begin::WRITE).expect("writers begin");
    let mut second = engine.begin(Begin::WRITE).expect("writers begin");
    put_many(&mut *first, tree, 30_000..38_000).expect("there is room");
    put_many(&mut *second, tree, 40_000..48_000).expect("there is room");
    let met = second.delete(tree, &30_001_u32.to_be_bytes());
    assert_eq!(met.map_err(|error| error.kind()), Err(ErrorKind::Conflict));
    second.rollback();
    let mut late = engine.begin(Begin::WRITE).expect("writers begin");
    first.commit(Durability::Logged).expect("it is committed");
    let met = late.delete(tree, &30_001_u32.to_be_bytes());
    assert_eq!(
        met.map_err(|error| error.kind()),
        Err(ErrorKind::Conflict),
        "it was changed after the snapshot"
    );
    drop(late);
    assert_eq!(count(&engine, tree), 24_000);
    let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
    put_many(&mut *writer, tree, 40_000..40_010).expect("what was rolled back is free");
    writer.commit(Durability::None).expect("it is committed");
    engine.close().expect("it is closed");
}

#[test]
fn a_large_transaction_that_is_rolled_back_leaves_no_room_taken_and_no_claim() {
    let simulation = Environment::simulated(3);
    let engine = open(&simulation.environment, Path::new(FOLDER), 8 << 10);
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    let used = simulation.disk.used_bytes();
    for round in 0..3 {
        let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
        put_many(&mut *writer, tree, 0..3_000).expect("there is room");
        assert!(simulation.disk.used_bytes() > used + 300_000, "round {round}");
        if round == 0 {
            drop(writer)
        } else {
            writer.rollback()
        }
        assert_nothing_left(&simulation, &engine);
        assert!(simulation.disk.used_bytes() < used + 100_000, "round {round}");
    }
    assert_eq!(count(&engine, tree), 0);
    engine.close().expect("it is closed");
    drop(engine);
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("it can be verified");
    assert!(report.is_sound(), "{:?}", report.damage);
}

#[test]
fn spilled_layers_of_a_killed_process_are_removed_when_the_store_is_opened() {
    let simulation = Environment::simulated(4);
    let engine = open(&simulation.environment, Path::new(FOLDER), 8 << 10);
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
    put_many(&mut *writer, tree, 0..3_000).expect("there is room");
    simulation.disk.kill();
    drop((writer, engine));
    simulation.tasks.forget_all();
    let engine = open(&simulation.environment, Path::new(FOLDER), 8 << 10);
    assert_nothing_left(&simulation, &engine);
}

#[test]
fn a_disk_that_is_full_refuses_the_write_that_does_not_fit_and_the_transaction_can_be_rolled_back_or_go_on() {
    let simulation = Environment::simulated(5);
    let engine = open(&simulation.environment, Path::new(FOLDER), 8 << 10);
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    simulation.disk.set_capacity(Some(simulation.disk.used_bytes() + (100 << 10)));
    let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
    let mut written = 0;
    let error = loop {
        match put_many(&mut *writer, tree, written..written + 1) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 10_000, "the disk does not get full");
    };
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(error.to_string().contains("large transaction"), "{error}");
    assert!(put_many(&mut *writer, tree, written..written + 1).is_err(), "without room it goes on failing");
    let read = writer.get(tree, &7_u32.to_be_bytes(), BlockingMode::MayBlock).expect("reads go on");
    assert_eq!(read.as_deref(), Some(value(7).as_slice()));
    simulation.disk.set_capacity(None);
    put_many(&mut *writer, tree, written..written + 100).expect("there is room again");
    let own = (0..written + 100).all(|number| {
        writer.get(tree, &number.to_be_bytes(), BlockingMode::MayBlock).is_ok_and(|found| found.is_some())
    });
    assert!(own, "a refused write took others with it");
    writer.rollback();
    assert_nothing_left(&simulation, &engine);
    assert_eq!(count(&engine, tree), 0);
}

#[test]
fn a_disk_that_is_full_at_the_commit_refuses_it_whole_and_the_store_goes_on_once_there_is_room() {
    for room in [0, 30 << 10, 250 << 10, 450 << 10] {
        let simulation = Environment::simulated(6);
        let engine = open(&simulation.environment, Path::new(FOLDER), 8 << 10);
        let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
        let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
        put_many(&mut *writer, tree, 0..2_000).expect("there is room");
        simulation.disk.set_capacity(Some(simulation.disk.used_bytes() + room));
        let outcome = writer.commit(Durability::Logged);
        let there = match outcome {
            Ok(_) => 2_000,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Io, "{room} bytes of room: {error}");
                0
            }
        };
        assert_eq!(count(&engine, tree), there, "{room} bytes of room");
        assert_nothing_left(&simulation, &engine);
        simulation.disk.set_capacity(None);
        simulation.clock.advance(std::time::Duration::from_secs(5));
        let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
        put_many(&mut *writer, tree, 0..2_000).expect("there is room");
        writer.commit(Durability::Logged).expect("there is room");
        assert_eq!(count(&engine, tree), 2_000);
        simulation.disk.kill();
        drop(engine);
        simulation.tasks.forget_all();
        let engine = open(&simulation.environment, Path::new(FOLDER), 8 << 10);
        assert_eq!(count(&engine, tree), 2_000);
        engine.close().expect("it is closed");
        drop(engine);
        let report = verify(&simulation.environment, Path::new(FOLDER)).expect("it can be verified");
        assert!(report.is_sound(), "{:?}", report.damage);
    }
}

#[test]
fn the_log_of_a_large_commit_goes_when_checkpoints_have_all_of_it_and_others_do_not_wait_for_that() {
    let simulation = Environment::simulated(7);
    let engine = open(&simulation.environment, Path::new(FOLDER), 64 << 10);
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
    // More than the budget of the log.
    put_many(&mut *writer, tree, 0..22_000).expect("there is room");
    writer.commit(Durability::Logged).expect("it is committed");
    assert!(figure(&engine, "log.live_bytes") > 4 << 20);
    simulation.tasks.run_until_idle();
    let stalls = figure(&engine, "commits.stalls");
    for number in 0..100 {
        let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
        put_many(&mut *writer, tree, number..number + 1).expect("nobody has the key");
        writer.commit(Durability::None).expect("it is committed");
    }
    assert_eq!(figure(&engine, "commits.stalls"), stalls);
    (0..3).for_each(|_| engine.checkpoint().expect("it succeeds"));
    assert!(figure(&engine, "log.live_bytes") < 1 << 20, "{}", figure(&engine, "log.live_bytes"));
    engine.close().expect("it is closed");
}

#[test]
fn a_backup_beside_a_large_commit_has_all_of_it_or_nothing() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let store = folder.path().join("store");
    let engine = open(&Environment::real(), &store, 64 << 10);
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    let backups: Vec<_> = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
            put_many(&mut *writer, tree, 0..15_000).expect("there is room");
            writer.commit(Durability::Logged).expect("it is committed");
        });
        let mut made = Vec::new();
        while !writer.is_finished() && made.len() < 6 {
            let to = folder.path().join(format!("backup-{}", made.len()));
            let environment = Environment::real();
            let request = pando_storage::BackupRequest {
                environment: &environment,
                folder: &to,
                since: None,
                operation: None,
            };
            engine.backup(&request).expect("the backup is made");
            made.push(to);
        }
        made
    });
    assert!(!backups.is_empty());
    for backup in backups {
        let restored = backup.with_extension("restored");
        pando_betree::restore(&Environment::real(), std::slice::from_ref(&backup), &restored)
            .expect("it is restored");
        let engine = open(&Environment::real(), &restored, 64 << 10);
        let found = count(&engine, tree);
        assert!(found == 0 || found == 15_000, "{found} of 15,000");
        engine.close().expect("it is closed");
    }
    engine.close().expect("it is closed");
}
