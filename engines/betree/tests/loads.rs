//! Bulk loads of an empty tree: full leaves, all or none of the entries after a crash, and space that is
//! freed after a failure.

use std::path::Path;
use std::sync::Arc;

use pando_betree::{Betree, Options, verify};
use pando_environment::{Environment, Simulation};
use pando_storage::{
    Begin, BlockingMode, CheckedEngine, Cursor, Direction, Durability, Engine, ErrorKind, IteratorEntries,
    KeyRange, LoadDurability, SharedEngine, SortedEntries, StorageError, TreeId, TreeOptions,
};

use crate::history::{FOLDER, lose_newest_superblock, tiny_options};

fn open(simulation: &Simulation, options: Options) -> Result<SharedEngine, StorageError> {
    let engine = Betree::open(&simulation.environment, Path::new(FOLDER), options)?;
    Ok(CheckedEngine::shared(engine as Arc<dyn Engine>))
}

/// Entries of about 40 bytes, or larger ones that do not compress.
fn entries(count: u32, value_bytes: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    let value = |number: u32| -> Vec<u8> {
        let start = number.to_le_bytes();
        start.into_iter().chain(std::iter::repeat_with(&mut next).take(value_bytes)).collect()
    };
    (0..count).map(|number| number.to_be_bytes().to_vec()).zip((0..count).map(value)).collect()
}

fn load(
    engine: &SharedEngine,
    tree: TreeId,
    entries: &[(Vec<u8>, Vec<u8>)],
    durability: LoadDurability,
) -> Result<u64, StorageError> {
    let entries = entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice()));
    engine.load(tree, &mut IteratorEntries::new(entries), durability)
}

fn content(engine: &SharedEngine, tree: TreeId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let reader = engine.begin(Begin::READ).expect("readers begin");
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut found = Vec::new();
    while let Some((key, value)) = cursor.next(&*reader, BlockingMode::MayBlock).expect("reads succeed") {
        found.push((key.to_vec(), value.to_vec()));
    }
    found
}

fn put(engine: &SharedEngine, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
    let mut writer = engine.begin(Begin::WRITE)?;
    writer.put(tree, key, value)?;
    let receipt = writer.commit(Durability::Logged)?;
    engine.wait_durable(receipt, Durability::Synced)
}

fn find(engine: &SharedEngine, name: &str) -> Option<TreeId> {
    let trees = engine.list_trees().expect("the trees can be listed");
    trees.iter().find(|tree| tree.name == name).map(|tree| tree.id)
}

/// A life as a catalog leads it: a tree is loaded, something refers to it, it is written to.
fn live(simulation: &Simulation, wanted: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StorageError> {
    let engine = open(simulation, tiny_options())?;
    let references = engine.create_tree("references", &TreeOptions::default())?;
    put(&engine, references, b"life", b"begun")?;
    let tree = engine.create_tree("loaded", &TreeOptions::default())?;
    load(&engine, tree, wanted, LoadDurability::Durable)?;
    put(&engine, references, b"loaded", b"")?;
    put(&engine, tree, b"later", b"1")?;
    simulation.tasks.run_until_idle();
    put(&engine, tree, b"later", b"2")?;
    engine.checkpoint()
}

/// How many calls the life made, cut off at one of them or not.
fn cut_at(call: Option<u64>, end: &impl Fn(&Simulation), wanted: &[(Vec<u8>, Vec<u8>)]) -> u64 {
    let simulation = Environment::simulated(3);
    if let Some(call) = call {
        simulation.disk.crash_at_call(call);
    }
    let outcome = live(&simulation, wanted);
    let calls = simulation.disk.calls();
    if simulation.disk.has_power() {
        outcome.expect("without a fault nothing fails");
    }
    end(&simulation);
    simulation.tasks.forget_all();
    if !Betree::exists(&simulation.environment, Path::new(FOLDER)).expect("the folder can be looked into") {
        return calls;
    }
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("the store can be verified");
    assert!(report.is_sound(), "call {call:?}: {:?}", report.damage);
    let engine = open(&simulation, tiny_options()).expect("the store opens");
    let found = find(&engine, "loaded").map(|tree| content(&engine, tree)).unwrap_or_default();
    let found = found.into_iter().filter(|(key, _)| key != b"later").collect::<Vec<_>>();
    assert!(found.is_empty() || found == wanted, "call {call:?}: {} entries", found.len());
    let references = find(&engine, "references").map(|tree| content(&engine, tree)).unwrap_or_default();
    if references.iter().any(|(key, _)| key == b"loaded") {
        assert!(
            found == wanted,
            "call {call:?}: something refers to a tree that has {} entries",
            found.len()
        );
    }
    // Room that the load had taken is there again.
    engine.close().expect("the store closes");
    drop(engine);
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("the store can be verified");
    assert!(report.is_sound(), "call {call:?}: {:?}", report.damage);
    calls
}

fn cut_everywhere(end: impl Fn(&Simulation)) {
    let wanted = entries(400, 20);
    let calls = cut_at(None, &end, &wanted);
    assert!(calls > 60, "{calls} calls");
    for call in 1..=calls {
        cut_at(Some(call), &end, &wanted);
    }
}

#[test]
fn a_power_cut_at_any_call_leaves_all_or_nothing_and_never_a_reference_to_nothing() {
    cut_everywhere(|simulation| simulation.disk.crash(11));
}

#[test]
fn a_kill_at_any_call_leaves_all_or_nothing() {
    cut_everywhere(|simulation| simulation.disk.kill());
}

#[test]
fn the_loss_of_the_newest_superblock_loses_no_load_that_something_refers_to() {
    cut_everywhere(|simulation| {
        simulation.disk.crash(12);
        lose_newest_superblock(simulation);
    });
}

fn figure(engine: &SharedEngine, name: &str) -> u64 {
    let statistics = engine.statistics();
    statistics.iter().find(|(known, _)| *known == name).map(|(_, value)| value).expect("the figure exists")
}

#[test]
fn a_load_writes_full_leaves_and_no_log() {
    let simulation = Environment::simulated(1);
    let engine = open(&simulation, Options::default()).expect("the store opens");
    let wanted = entries(200_000, 12);
    let tree = engine.create_tree("loaded", &TreeOptions::default()).expect("the tree is created");
    let log_before = figure(&engine, "commits.count");
    assert_eq!(load(&engine, tree, &wanted, LoadDurability::Durable).expect("it is loaded"), 200_000);
    assert_eq!(figure(&engine, "commits.count"), log_before);
    assert_eq!(figure(&engine, "loads.entries"), 200_000);
    assert_eq!(engine.tree_estimate(tree).expect("the tree is there").entries, 200_000);
    assert!(content(&engine, tree) == wanted);
    engine.close().expect("the store closes");
    drop(engine);
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("the store can be verified");
    assert!(report.is_sound(), "{:?}", report.damage);
    assert_full(&report.trees[0]);
}

/// The leaves of a tree are full, but for the last one or two.
fn assert_full(tree: &pando_betree::TreeReport) {
    let fill = tree.raw_bytes * 100 / (tree.leaves * (512 << 10));
    assert!(fill >= 85, "{}: {} leaves of {} bytes, {fill} %", tree.name, tree.leaves, tree.raw_bytes);
}

#[test]
fn commits_in_the_order_of_keys_build_full_leaves_too() {
    let simulation = Environment::simulated(1);
    let engine = open(&simulation, Options::default()).expect("the store opens");
    let tree = engine.create_tree("sequential", &TreeOptions::default()).expect("the tree is created");
    let wanted = entries(60_000, 100);
    for batch in wanted.chunks(500) {
        let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
        for (key, value) in batch {
            writer.put(tree, key, value).expect("the put succeeds");
        }
        writer.commit(Durability::None).expect("the commit succeeds");
        simulation.tasks.run_until_idle();
    }
    engine.close().expect("the store closes");
    drop(engine);
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("the store can be verified");
    assert!(report.is_sound(), "{:?}", report.damage);
    assert_full(&report.trees[0]);
}

/// Entries that end in an error.
struct Failing<'e>(std::slice::Iter<'e, (Vec<u8>, Vec<u8>)>);

impl SortedEntries for Failing<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        match self.0.next() {
            Some((key, value)) => Ok(Some((key, value))),
            None => Err(StorageError::new(ErrorKind::Io, "the source fails")),
        }
    }
}

#[test]
fn a_load_that_fails_gives_its_room_back() {
    let simulation = Environment::simulated(1);
    let engine = open(&simulation, Options::default()).expect("the store opens");
    let tree = engine.create_tree("loaded", &TreeOptions::default()).expect("the tree is created");
    engine.checkpoint().expect("the checkpoint succeeds");
    let used = || figure(&engine, "data.file_bytes") - figure(&engine, "data.free_bytes");
    let before = used();
    let wanted = entries(20_000, 400);
    let failed = engine.load(tree, &mut Failing(wanted.iter()), LoadDurability::Durable);
    assert_eq!(failed.map_err(|error| error.to_string()), Err("the source fails".to_owned()));
    assert_eq!(used(), before, "nothing is taken");
    simulation.disk.set_capacity(Some(simulation.disk.used_bytes() + (2 << 20)));
    let too_much = entries(60_000, 400);
    let error = load(&engine, tree, &too_much, LoadDurability::Durable).expect_err("the disk is full");
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(content(&engine, tree).is_empty());
    simulation.disk.set_capacity(None);
    assert_eq!(load(&engine, tree, &wanted, LoadDurability::Durable).expect("there is room again"), 20_000);
    assert!(content(&engine, tree) == wanted);
    engine.drop_tree(tree).expect("the tree is dropped");
    engine.close().expect("the store closes");
    drop(engine);
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("the store can be verified");
    assert!(report.is_sound(), "{:?}", report.damage);
}

#[test]
fn a_tree_dropped_while_it_is_loaded_ends_the_load() {
    struct Dropping<'e>(&'e SharedEngine, TreeId, u32, [u8; 4]);
    impl SortedEntries for Dropping<'_> {
        fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
            self.2 += 1;
            if self.2 == 5_000 {
                self.0.drop_tree(self.1)?;
                // The checkpoint takes the tree apart, and does not wait for the load.
                self.0.checkpoint()?;
            }
            assert!(self.2 < 10_000, "the load goes on");
            self.3 = self.2.to_be_bytes();
            Ok(Some((&self.3, b"value")))
        }
    }
    let simulation = Environment::simulated(1);
    let engine = open(&simulation, tiny_options()).expect("the store opens");
    let tree = engine.create_tree("loaded", &TreeOptions::default()).expect("the tree is created");
    let ended = engine.load(tree, &mut Dropping(&engine, tree, 0, [0; 4]), LoadDurability::Durable);
    assert_eq!(ended.map_err(|error| error.kind()), Err(ErrorKind::NotFound));
    engine.close().expect("the store closes");
    drop(engine);
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("the store can be verified");
    assert!(report.is_sound(), "{:?}", report.damage);
}
