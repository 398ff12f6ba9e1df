//! Several servers have one store open: what one of them makes, changes and drops is that of all.

mod cluster;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pando_environment::Environment;
use pando_storage::{
    Begin, BlockingMode, Claim, Durability, Engine, ErrorKind, Merge, StorageError, TreeId, TreeOptions,
};
use pando_tikv::TikvEngine;
use tempfile::TempDir;

const BLOCK: BlockingMode = BlockingMode::MayBlock;

/// A store of a name of its own, and the folders of its servers.
struct Store {
    keyspace: String,
    folders: Vec<TempDir>,
}

impl Store {
    fn new() -> Store {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Store { keyspace: cluster::keyspace_of(folder.path()), folders: vec![folder] }
    }

    fn open(&mut self, servers: &str) -> Result<Arc<TikvEngine>, StorageError> {
        let options = cluster::options(&self.keyspace, servers);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let engine = TikvEngine::open(&Environment::real(), folder.path(), options);
        self.folders.push(folder);
        engine.map(Arc::new)
    }

    fn two() -> (Store, Arc<TikvEngine>, Arc<TikvEngine>) {
        let mut store = Store::new();
        let one = store.open("several").expect("the first server opens it");
        let other = store.open("several").expect("the second server opens it");
        (store, one, other)
    }
}

fn tree_of(engine: &TikvEngine, name: &str) -> Option<TreeId> {
    engine
        .list_trees()
        .expect("they are listed")
        .into_iter()
        .find(|tree| tree.name == name)
        .map(|tree| tree.id)
}

fn get(engine: &TikvEngine, tree: TreeId, key: &[u8]) -> Option<Vec<u8>> {
    let reader = engine.begin(Begin::READ).expect("it begins");
    let found = reader.get(tree, key, BLOCK).expect("it is read").map(|value| value.to_vec());
    reader.rollback();
    found
}

fn put(engine: &TikvEngine, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
    let mut writer = engine.begin(Begin::WRITE)?;
    writer.put(tree, key, value)?;
    writer.commit(Durability::Logged).map(drop)
}

fn add(engine: &TikvEngine, tree: TreeId, key: &[u8], amount: i64) -> Result<(), StorageError> {
    let mut writer = engine.begin(Begin::WRITE)?;
    writer.merge(tree, key, Merge::Add(amount), Claim::Blind, BLOCK)?;
    writer.commit(Durability::Logged).map(drop)
}

#[test]
fn a_tree_of_one_server_is_that_of_the_other_and_its_name_is_taken() {
    let (_store, one, other) = Store::two();
    let tree = one.create_tree("t", &TreeOptions::default()).expect("it is made");
    let twice = other.create_tree("t", &TreeOptions::default()).expect_err("the name is taken");
    assert_eq!(twice.kind(), ErrorKind::InvalidInput, "{twice}");
    assert_eq!(tree_of(&other, "t"), Some(tree));
    put(&other, tree, b"k", b"v").expect("it is written");
    assert_eq!(get(&one, tree, b"k").as_deref(), Some(&b"v"[..]));
    other.drop_tree(tree).expect("it is dropped");
    assert_eq!(tree_of(&one, "t"), None);
    let again = one.drop_tree(tree).expect_err("it is gone");
    assert_eq!(again.kind(), ErrorKind::NotFound, "{again}");
}

#[test]
fn updates_of_one_key_by_two_servers_conflict_and_none_is_lost() {
    let (_store, one, other) = Store::two();
    let tree = one.create_tree("t", &TreeOptions::default()).expect("it is made");
    assert_eq!(tree_of(&other, "t"), Some(tree));
    put(&one, tree, b"n", &0_u64.to_be_bytes()).expect("it is written");
    let raise = |engine: &Arc<TikvEngine>| {
        let engine = Arc::clone(engine);
        std::thread::spawn(move || {
            let mut conflicts = 0;
            for _ in 0..40 {
                loop {
                    let mut writer = engine.begin(Begin::WRITE).expect("it begins");
                    let before = writer.get(tree, b"n", BLOCK).expect("it is read").expect("it is there");
                    let before = u64::from_be_bytes(before[..].try_into().expect("a number"));
                    let written = writer
                        .put(tree, b"n", &(before + 1).to_be_bytes())
                        .and_then(|()| writer.commit(Durability::Logged));
                    match written {
                        Ok(_) => break,
                        Err(error) => assert!(error.is_conflict(), "{error}"),
                    }
                    conflicts += 1;
                }
            }
            conflicts
        })
    };
    let threads = [raise(&one), raise(&other), raise(&one)];
    let conflicts: u32 = threads.map(|thread| thread.join().expect("it ends")).iter().sum();
    assert_eq!(get(&other, tree, b"n").as_deref(), Some(&120_u64.to_be_bytes()[..]));
    assert!(conflicts > 0, "the threads have met");
}

#[test]
fn a_writer_at_an_older_snapshot_conflicts_with_a_commit_of_another_server() {
    let (_store, one, other) = Store::two();
    let tree = one.create_tree("t", &TreeOptions::default()).expect("it is made");
    assert_eq!(tree_of(&other, "t"), Some(tree));
    put(&one, tree, b"k", b"1").expect("it is written");
    let reader = one.begin(Begin::READ).expect("it begins");
    put(&other, tree, b"k", b"2").expect("it is written");
    let mut writer = one.begin(Begin { at: Some(reader.snapshot()), ..Begin::WRITE }).expect("it begins");
    assert_eq!(writer.get(tree, b"k", BLOCK).expect("it is read").as_deref(), Some(&b"1"[..]));
    writer.put(tree, b"k", b"3").expect("no one of this server has the key");
    let lost = writer.commit(Durability::Logged).expect_err("the other was first");
    assert!(lost.is_conflict(), "{lost}");
    reader.rollback();
    assert_eq!(get(&one, tree, b"k").as_deref(), Some(&b"2"[..]));
}

#[test]
fn additions_of_both_servers_count_side_by_side_and_with_puts_of_the_same_tree() {
    let (_store, one, other) = Store::two();
    let tree = one.create_tree("t", &TreeOptions::default()).expect("it is made");
    assert_eq!(tree_of(&other, "t"), Some(tree));
    // The second server has the tree for one without merges.
    assert_eq!(get(&other, tree, b"sum"), None);
    add(&one, tree, b"sum", 1).expect("it is added");
    assert_eq!(get(&other, tree, b"sum").as_deref(), Some(&1_i64.to_le_bytes()[..]));
    let many = |engine: &Arc<TikvEngine>| {
        let engine = Arc::clone(engine);
        std::thread::spawn(move || {
            for at in 0..100_u32 {
                add(&engine, tree, b"sum", 2).expect("additions never conflict");
                put(&engine, tree, &at.to_be_bytes(), b"x")
                    .map_or_else(|error| assert!(error.is_conflict(), "{error}"), |()| {});
            }
        })
    };
    for thread in [many(&one), many(&other)] {
        thread.join().expect("it ends");
    }
    for engine in [&one, &other] {
        assert_eq!(get(engine, tree, b"sum").as_deref(), Some(&401_i64.to_le_bytes()[..]));
    }
}

#[test]
fn a_new_server_adds_at_once_where_all_know_of_the_merges_though_one_is_dead() {
    let (mut store, one, other) = Store::two();
    let tree = one.create_tree("t", &TreeOptions::default()).expect("it is made");
    add(&one, tree, b"sum", 1).expect("it is added");
    // Without a close: its record stands still.
    drop(one);
    let third = store.open("several").expect("it opens");
    assert_eq!(tree_of(&third, "t"), Some(tree));
    let begun = Instant::now();
    add(&third, tree, b"sum", 1).expect("it is added");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(tree_of(&other, "t"), Some(tree));
    assert_eq!(get(&other, tree, b"sum").as_deref(), Some(&2_i64.to_le_bytes()[..]));
}

#[test]
fn entries_of_a_dropped_tree_stay_for_a_reader_of_the_other_server_and_then_go() {
    let (_store, one, other) = Store::two();
    let tree = one.create_tree("t", &TreeOptions::default()).expect("it is made");
    put(&one, tree, b"k", b"v").expect("it is written");
    assert_eq!(tree_of(&other, "t"), Some(tree));
    let reader = other.begin(Begin::READ).expect("it begins");
    one.drop_tree(tree).expect("it is dropped");
    std::thread::sleep(Duration::from_secs(5));
    let found = reader.get(tree, b"k", BLOCK).expect("its snapshot has the tree");
    assert_eq!(found.as_deref(), Some(&b"v"[..]));
    reader.rollback();
    // A number is never given twice, so that only the entries tell. A reader of before would find them.
    let removed = |engine: &TikvEngine| engine.statistics().get("trees.dropped") == Some(0);
    let begun = Instant::now();
    while !(removed(&one) && removed(&other)) {
        assert!(begun.elapsed() < Duration::from_secs(30), "the entries are removed");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_store_is_open_in_one_server_or_in_several_and_not_in_both_ways() {
    let mut store = Store::new();
    let alone = store.open("one").expect("it opens");
    let refused = store.open("several").err().expect("it is refused").to_string();
    assert!(refused.contains("another server") && refused.contains("several"), "{refused}");
    alone.close().expect("it closes");
    let one = store.open("several").expect("it opens");
    let other = store.open("several").expect("it opens");
    let refused = store.open("one").err().expect("it is refused").to_string();
    assert!(refused.contains("2 servers that share it"), "{refused}");
    one.close().expect("it closes");
    other.close().expect("it closes");
    let alone = store.open("one").expect("it opens at once");
    alone.close().expect("it closes");
}

#[test]
fn moments_of_two_servers_are_in_the_order_in_which_they_were_given_out() {
    let (_store, one, other) = Store::two();
    let tree = one.create_tree("t", &TreeOptions::default()).expect("it is made");
    assert_eq!(tree_of(&other, "t"), Some(tree));
    let moment = |engine: &TikvEngine| engine.shared_time().expect("the store has a clock");
    let mut last = moment(&one).max(moment(&other));
    for round in 0..20_u8 {
        let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        put(writer, tree, b"k", &[round]).expect("it is written");
        let written = moment(writer);
        assert_eq!(get(reader, tree, b"k").as_deref(), Some(&[round][..]));
        let read = moment(reader);
        assert!(last < written && written < read, "{last:?} {written:?} {read:?}");
        last = read;
    }
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is after 1970");
    assert!(u128::from(last.millis()).abs_diff(wall.as_millis()) < 60_000, "{last:?}");
}
