//! Values in blocks of their own: written once, found by every kind of read, and freed with all of their
//! space.
//!
//! The histories (`tests/history`) show that they survive crashes, power cuts, backups and relocation: a part
//! of their values is large.

use std::path::Path;
use std::sync::Arc;

use pando_betree::{Betree, Options, VerifyReport, verify};
use pando_environment::{AlignedBuffer, Environment, Random, SeededRandom, Simulation};
use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, CheckRequest, CheckedEngine, Cursor, Direction, Durability,
    Engine, ErrorKind, IteratorEntries, KeyRange, LoadDurability, ScanEnd, SharedEngine, Transaction, TreeId,
    TreeOptions, VALUE_BYTES_MAX,
};

const FOLDER: &str = "/store";

/// Pages of 1 KB, and everything over 1 KB out of line.
const SMALL: [(&str, &str); 5] = [
    ("pageSize", "1KB"),
    ("leafSize", "8KB"),
    ("fanout", "4"),
    ("partitionSize", "32KB"),
    ("largeValueSize", "1KB"),
];

fn open(simulation: &Simulation, entries: &[(&str, &str)]) -> SharedEngine {
    let entries: Vec<_> = entries.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let options = Options::default().with_entries(&entries).expect("the options are possible");
    let engine = Betree::open(&simulation.environment, Path::new(FOLDER), options);
    CheckedEngine::shared(engine.expect("the store opens") as Arc<dyn Engine>)
}

fn with_tree(simulation: &Simulation, entries: &[(&str, &str)]) -> (SharedEngine, TreeId) {
    let engine = open(simulation, entries);
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    (engine, tree)
}

/// From now on no message waits in nodes: a merge drops replaced values at once.
fn straight_into_leaves(engine: &SharedEngine, tree: TreeId) {
    let entries = [("bufferPercent", "0"), ("largeValueSize", "1KB")];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let changed = engine.change_tree_options(tree, &TreeOptions { entries });
    changed.expect("the layout can be changed while the store is open");
}

fn reopened(simulation: &Simulation, engine: SharedEngine, entries: &[(&str, &str)]) -> SharedEngine {
    engine.close().expect("the store closes");
    drop(engine);
    simulation.tasks.forget_all();
    open(simulation, entries)
}

/// Not compressible.
fn value(number: u64, length: usize) -> Vec<u8> {
    let mut value = vec![0; length];
    SeededRandom::new(number).fill(&mut value);
    value
}

fn key(number: u64) -> Vec<u8> {
    // Scattered, but told by its number.
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 32)).to_be_bytes().to_vec()
}

fn write(engine: &SharedEngine, tree: TreeId, key: &[u8], value: Option<&[u8]>) {
    let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
    match value {
        Some(value) => writer.put(tree, key, value).expect("writers write"),
        None => writer.delete(tree, key).expect("writers write"),
    }
    writer.commit(Durability::Logged).expect("commits succeed");
}

fn get(reader: &dyn Transaction, tree: TreeId, key: &[u8]) -> Option<Vec<u8>> {
    reader.get(tree, key, BlockingMode::MayBlock).expect("gets succeed").map(|value| value.to_vec())
}

fn scan(reader: &dyn Transaction, tree: TreeId, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = Cursor::new(tree, KeyRange::all(), direction);
    let mut found = Vec::new();
    while let Some((key, value)) = cursor.next(reader, BlockingMode::MayBlock).expect("scans go on") {
        found.push((key.to_vec(), value.to_vec()));
    }
    found
}

fn figure(engine: &SharedEngine, wanted: &str) -> u64 {
    let statistics = engine.statistics();
    statistics.iter().find(|(name, _)| *name == wanted).expect("there is such a figure").1
}

/// Bytes of the data file that are neither free nor about to be.
fn used(engine: &SharedEngine) -> u64 {
    figure(engine, "data.file_bytes")
        - figure(engine, "data.free_bytes")
        - figure(engine, "data.pending_bytes")
}

/// Everything merged, and freed what can be.
fn settle(engine: &SharedEngine) {
    for _ in 0..3 {
        engine.checkpoint().expect("checkpoints succeed");
    }
}

fn checked(simulation: &Simulation, engine: SharedEngine) -> VerifyReport {
    engine.close().expect("the store closes");
    drop(engine);
    simulation.tasks.forget_all();
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("the store can be checked");
    assert!(report.is_sound(), "{:?}", report.damage);
    report
}

#[test]
fn the_longest_value_is_found_by_every_read_and_leaves_no_room_taken() {
    let simulation = Environment::simulated(1);
    let (engine, tree) = with_tree(&simulation, &[]);
    let longest = value(1, VALUE_BYTES_MAX);
    write(&engine, tree, b"after", Some(b"small"));
    write(&engine, tree, b"a long one", Some(&longest));
    settle(&engine);
    let written = figure(&engine, "large_values.bytes_written");
    assert!((VALUE_BYTES_MAX as u64..VALUE_BYTES_MAX as u64 + (64 << 10)).contains(&written), "{written}");
    assert_eq!(figure(&engine, "large_values.blocks_written"), 17, "pieces of 1 MiB");
    let estimate = engine.tree_estimate(tree).expect("trees are estimated");
    assert_eq!(estimate.bytes, longest.len() as u64 + 10 + 10, "the size of a tree has its large values");

    let engine = reopened(&simulation, engine, &[]);
    let reader = engine.begin(Begin::READ).expect("readers begin");
    assert!(get(&*reader, tree, b"a long one") == Some(longest.clone()));
    for direction in [Direction::Forward, Direction::Backward] {
        let mut found = scan(&*reader, tree, direction);
        if direction == Direction::Backward {
            found.reverse();
        }
        assert!(found == [(b"a long one".to_vec(), longest.clone()), (b"after".to_vec(), b"small".to_vec())]);
    }
    // It is far too large for the cache to keep.
    assert!(figure(&engine, "cache.page_bytes") < 1 << 20);
    drop(reader);

    write(&engine, tree, b"a long one", Some(&value(2, 3 << 20)));
    settle(&engine);
    let update = used(&engine);
    assert!((3 << 20..4 << 20).contains(&update), "{update} bytes for one value of 3 MiB");
    write(&engine, tree, b"a long one", None);
    settle(&engine);
    assert!(used(&engine) < 1 << 20, "{} bytes are left of nothing", used(&engine));
    assert_eq!(checked(&simulation, engine).trees[0].large_values, 0);
}

#[test]
fn a_value_is_written_once_however_often_its_leaf_is_written_anew() {
    let simulation = Environment::simulated(2);
    let (engine, tree) = with_tree(&simulation, &SMALL);
    straight_into_leaves(&engine, tree);
    for number in 0..300 {
        write(&engine, tree, &key(number), Some(&value(number, 3_000)));
        for small in 0..20 {
            write(&engine, tree, &key(1_000 + number * 20 + small), Some(b"a small value beside it"));
        }
        if number % 10 == 0 {
            engine.checkpoint().expect("checkpoints succeed");
        }
    }
    settle(&engine);
    assert_eq!(figure(&engine, "large_values.blocks_written"), 300);
    assert_eq!(figure(&engine, "flushes.large_values"), 300);
    assert_eq!(figure(&engine, "large_values.blocks_read"), 0, "nobody asked for one");
    let leaf_entries = figure(&engine, "flushes.leaf_entries");
    assert!(leaf_entries > 3 * 6_300, "6,300 entries, {leaf_entries} written: leaves were not rewritten");
    let reader = engine.begin(Begin::READ).expect("readers begin");
    for number in 0..300 {
        assert_eq!(get(&*reader, tree, &key(number)), Some(value(number, 3_000)));
    }
    drop(reader);
    let report = checked(&simulation, engine);
    assert_eq!((report.trees[0].large_values, report.trees[0].large_bytes), (300, 900_000));
}

#[test]
fn random_updates_deletes_and_readers_leave_no_room_taken() {
    let simulation = Environment::simulated(3);
    let (engine, tree) = with_tree(&simulation, &SMALL);
    let random = SeededRandom::new(3);
    let mut live = std::collections::BTreeMap::new();
    let mut readers = Vec::new();
    for round in 0..2_500 {
        let key = key(random.below(120));
        let new = (random.below(5) > 0).then(|| value(round, random.below(6_000) as usize));
        write(&engine, tree, &key, new.as_deref());
        match new {
            Some(new) => live.insert(key, new),
            None => live.remove(&key),
        };
        match random.below(40) {
            0 => readers.push((engine.begin(Begin::READ).expect("readers begin"), live.clone())),
            1 if !readers.is_empty() => {
                let (reader, expected) = readers.swap_remove(random.below(readers.len() as u64) as usize);
                assert!(scan(&*reader, tree, Direction::Forward).into_iter().eq(expected));
            }
            2 => engine.checkpoint().expect("checkpoints succeed"),
            3 => {
                let report = engine.check(&CheckRequest::default()).expect("an open store is checked");
                assert!(report.is_sound(), "{:?}", report.problems);
            }
            _ => {}
        }
        simulation.tasks.run_one();
    }
    for (reader, expected) in readers {
        assert!(scan(&*reader, tree, Direction::Backward).into_iter().rev().eq(expected));
    }
    straight_into_leaves(&engine, tree);
    // With no old reader left the next version of a key drops all before.
    for (at, (key, new)) in live.iter_mut().enumerate() {
        *new = value(at as u64, 2_000);
        write(&engine, tree, key, Some(new));
    }
    settle(&engine);
    let (bytes, count) = (used(&engine), live.len() as u64);
    assert!(bytes < count * 8_192 + (512 << 10), "{bytes} bytes for {count} values of 2,000");
    let reader = engine.begin(Begin::READ).expect("readers begin");
    assert!(scan(&*reader, tree, Direction::Forward).into_iter().eq(live));
    drop(reader);
    let engine = reopened(&simulation, engine, &SMALL);
    engine.drop_tree(tree).expect("the tree is dropped");
    settle(&engine);
    assert!(used(&engine) < 300 << 10, "{} bytes are left of no tree", used(&engine));
    checked(&simulation, engine);
}

#[test]
fn a_damaged_large_value_is_an_error_that_names_it_and_all_others_are_read() {
    let simulation = Environment::simulated(4);
    let (engine, tree) = with_tree(&simulation, &SMALL);
    for number in 0..10 {
        write(&engine, tree, &[number], Some(&value(u64::from(number), 5_000)));
    }
    engine.close().expect("the store closes");
    drop(engine);
    simulation.tasks.forget_all();
    let (data, wanted) = (Path::new(FOLDER).join("data.0000"), value(6, 5_000));
    let content = simulation.disk.content(&data);
    let at =
        content.windows(64).position(|window| window == &wanted[1_000..1_064]).expect("it lies there whole");
    simulation.disk.flip_bit(&data, at * 8);

    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("the store can be checked");
    assert_eq!(report.damage.len(), 1, "{:?}", report.damage);
    assert_eq!(report.damage[0].from.to_string(), "0x06");
    let engine = open(&simulation, &SMALL);
    let reader = engine.begin(Begin::READ).expect("readers begin");
    for number in (0..10).filter(|number| *number != 6) {
        assert_eq!(get(&*reader, tree, &[number]), Some(value(u64::from(number), 5_000)));
    }
    let error = reader.get(tree, &[6], BlockingMode::MayBlock).expect_err("it is damaged");
    let mut batch = Batch::new();
    let limits = BatchLimits { entries_max: 100, bytes_max: 1 << 20 };
    let all = KeyRange::all();
    let end = reader.scan(tree, &all, Direction::Forward, limits, BlockingMode::MayBlock, &mut batch);
    assert_eq!((end.expect("it goes as far as it can"), batch.len()), (ScanEnd::More, 6));
    let rest = KeyRange { lower: std::ops::Bound::Excluded(vec![5]), ..KeyRange::all() };
    let outcome = reader.scan(tree, &rest, Direction::Forward, limits, BlockingMode::MayBlock, &mut batch);
    for error in [error, outcome.expect_err("here it cannot go on")] {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        for part in ["data.0000", "LargeValue", "from key 0x06 to key 0x0600", "checksum"] {
            assert!(error.to_string().contains(part), "{error} does not say {part}");
        }
    }
    let check = engine.check(&CheckRequest::default()).expect("an open store is checked");
    assert_eq!(check.problems.len(), 1, "{:?}", check.problems);
}

#[test]
fn a_read_that_must_not_block_names_the_piece_that_is_missing_and_is_answered_once_it_is_there() {
    let simulation = Environment::simulated(5);
    let (engine, tree) = with_tree(&simulation, &SMALL);
    for number in 0..40 {
        write(&engine, tree, &[number], Some(&value(u64::from(number), 5_000)));
    }
    let long = value(77, 3 << 20);
    write(&engine, tree, b"long", Some(&long));
    let engine = reopened(&simulation, engine, &SMALL);
    let reader = engine.begin(Begin::READ).expect("readers begin");
    // Nodes and pages come into memory.
    assert_eq!(reader.get(tree, &[40], BlockingMode::MayBlock).expect("gets succeed"), None);
    let mut misses = 0;
    for number in 0..40 {
        let found = loop {
            let error = match reader.get(tree, &[number], BlockingMode::CachedOnly) {
                Ok(found) => break found,
                Err(error) => error,
            };
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            match error.missed_read() {
                Some(missed) => {
                    let mut buffer = AlignedBuffer::zeroed(missed.length());
                    missed.file().read_exact_at(&mut buffer, missed.offset()).expect("the file can be read");
                    missed.fulfil(&buffer);
                    misses += 1;
                }
                None => drop(reader.get(tree, &[number], BlockingMode::MayBlock)),
            }
        };
        assert_eq!(found.map(|found| found.to_vec()), Some(value(u64::from(number), 5_000)));
        let again = reader.get(tree, &[number], BlockingMode::CachedOnly).expect("it is in memory");
        assert_eq!(again.map(|found| found.len()), Some(5_000));
    }
    assert!(misses >= 40, "{misses} reads were missing");
    // A value that the cache would not keep needs a thread that may wait.
    for _ in 0..2 {
        assert_eq!(get(&*reader, tree, b"long").as_ref(), Some(&long));
        let error = reader.get(tree, b"long", BlockingMode::CachedOnly).expect_err("it is never in memory");
        assert!(error.kind() == ErrorKind::WouldBlock && error.missed_read().is_none());
    }
}

#[test]
fn reading_large_values_drives_no_pages_out_of_memory() {
    let simulation = Environment::simulated(6);
    let entries = [("cache", "4MB"), ("pageSize", "4KB"), ("largeValueSize", "8KB")];
    let (engine, tree) = with_tree(&simulation, &entries);
    for number in 0..4_000 {
        write(&engine, tree, &key(number), Some(&value(number, 200)));
    }
    for number in 0..60 {
        write(&engine, tree, &key(10_000 + number), Some(&value(number, 200_000)));
    }
    let engine = reopened(&simulation, engine, &entries);
    let reader = engine.begin(Begin::READ).expect("readers begin");
    let read_small = || {
        (0..4_000).for_each(|number| assert!(get(&*reader, tree, &key(number)).is_some()));
        figure(&engine, "leaves.blocks_read")
    };
    (0..3).for_each(|_| {
        read_small();
    });
    let before = read_small();
    for number in 0..60 {
        assert_eq!(get(&*reader, tree, &key(10_000 + number)), Some(value(number, 200_000)));
    }
    assert_eq!(scan(&*reader, tree, Direction::Forward).len(), 4_060);
    assert_eq!(figure(&engine, "large_values.blocks_read"), 120);
    let again = read_small() - before;
    assert!(again < 20, "{again} pages had to be read again");
}

#[test]
fn neighbours_come_with_one_call_to_the_device() {
    let simulation = Environment::simulated(7);
    let (engine, tree) = with_tree(&simulation, &[]);
    for number in 0..200_u64 {
        write(&engine, tree, &number.to_be_bytes(), Some(&value(number, 20_000)));
    }
    let engine = reopened(&simulation, engine, &[]);
    let reader = engine.begin(Begin::READ).expect("readers begin");
    let before = figure(&engine, "data.reads");
    assert_eq!(scan(&*reader, tree, Direction::Forward).len(), 200);
    let calls = figure(&engine, "data.reads") - before;
    assert!(calls < 40, "{calls} calls for 4 MB that lie in order");
}

#[test]
fn the_size_can_be_changed_while_the_store_is_open() {
    let simulation = Environment::simulated(8);
    let (engine, tree) = with_tree(&simulation, &SMALL);
    let mut expected = Vec::new();
    for (round, size) in [(0_u64, None), (1, Some("32MB")), (2, Some("2KB")), (3, None)] {
        let entries = size.map(|size| ("largeValueSize".to_owned(), size.to_owned())).into_iter().collect();
        let changed = engine.change_tree_options(tree, &TreeOptions { entries });
        changed.expect("the layout can be changed while the store is open");
        for number in 0..50 {
            let (number, length) = (round * 50 + number, 1_500 + (number as usize % 2) * 1_000);
            write(&engine, tree, &key(number), Some(&value(number, length)));
            expected.push((key(number), value(number, length)));
        }
        settle(&engine);
        let written = figure(&engine, "flushes.large_values");
        assert_eq!(written, [50, 50, 75, 125][round as usize], "after round {round}");
    }
    expected.sort();
    let reader = engine.begin(Begin::READ).expect("readers begin");
    assert!(scan(&*reader, tree, Direction::Forward) == expected);
    drop(reader);
    let bad = [("largeValueSize".to_owned(), "3".to_owned())];
    let refused = engine.change_tree_options(tree, &TreeOptions { entries: bad.into() });
    assert_eq!(refused.expect_err("no value is that small").kind(), ErrorKind::InvalidInput);
    checked(&simulation, engine);
}

#[test]
fn a_load_puts_large_values_out_of_line_and_a_failed_one_gives_their_room_back() {
    let simulation = Environment::simulated(9);
    let (engine, tree) = with_tree(&simulation, &SMALL);
    let entries: Vec<_> = (0..200_u64).map(|number| (number.to_be_bytes(), value(number, 2_500))).collect();
    let empty = used(&engine);
    let disorder = entries.iter().chain(&entries[..1]);
    let disorder = disorder.map(|(key, value)| (key.as_slice(), value.as_slice()));
    let failed = engine.load(tree, &mut IteratorEntries::new(disorder), LoadDurability::Durable);
    assert_eq!(failed.expect_err("the keys do not ascend").kind(), ErrorKind::InvalidInput);
    assert_eq!(used(&engine), empty);
    let all = entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice()));
    let loaded = engine.load(tree, &mut IteratorEntries::new(all), LoadDurability::Durable);
    assert_eq!(loaded.expect("the tree is empty"), 200);
    straight_into_leaves(&engine, tree);
    // Into the loaded leaves, which have to be united with what comes.
    for number in (0..200_u64).step_by(3) {
        write(&engine, tree, &number.to_be_bytes(), None);
    }
    let engine = reopened(&simulation, engine, &SMALL);
    let reader = engine.begin(Begin::READ).expect("readers begin");
    let expected = entries.iter().enumerate().filter(|(at, _)| at % 3 > 0);
    let expected = expected.map(|(_, (key, value))| (key.to_vec(), value.clone()));
    assert!(scan(&*reader, tree, Direction::Forward).into_iter().eq(expected));
    drop(reader);
    assert_eq!(checked(&simulation, engine).trees[0].large_values, 133);
}
