//! The folder of an open store is moved, and another store is made at its path: neither harms the other.

use std::path::Path;
use std::sync::Arc;

use pando_betree::{Betree, Options, verify};
use pando_environment::Environment;
use pando_storage::{Begin, BlockingMode, Durability, Engine, TreeId, TreeOptions};

const TREE: &str = "t";

fn open(folder: &Path) -> (Arc<Betree>, TreeId) {
    let mut options = Options::default();
    (options.cache_bytes, options.log_budget_bytes) = (1 << 20, 1 << 20);
    let engine = Betree::open(&Environment::real(), folder, options).expect("the store opens");
    let tree = match engine.list_trees().expect("trees are listed").iter().find(|tree| tree.name == TREE) {
        Some(tree) => tree.id,
        None => engine.create_tree(TREE, &TreeOptions::default()).expect("a tree can be made"),
    };
    (engine, tree)
}

/// Writes these entries, each on the device when this returns, until one is refused; returns their number.
fn write(engine: &Betree, tree: TreeId, numbers: std::ops::Range<u32>) -> u32 {
    let mut written = 0;
    for number in numbers {
        let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
        writer.put(tree, &number.to_be_bytes(), &[7; 1_000]).expect("an entry fits");
        let receipt = writer.commit(Durability::Synced);
        if receipt.and_then(|receipt| engine.wait_durable(receipt, Durability::Synced)).is_err() {
            return written;
        }
        written += 1;
    }
    written
}

fn assert_holds(folder: &Path, count: u32) {
    let (engine, tree) = open(folder);
    let reader = engine.begin(Begin::READ).expect("readers begin");
    for number in 0..count {
        let found = reader.get(tree, &number.to_be_bytes(), BlockingMode::MayBlock).expect("reads succeed");
        assert!(found.is_some(), "{number} of {count} in {}", folder.display());
    }
    drop(reader);
    engine.close().expect("the store closes");
    drop(engine);
    assert!(verify(&Environment::real(), folder).expect("it is a store").is_sound());
}

/// The store whose folder is moved has written this much before, and writes on after the move. Without the
/// comparison of folders its log renames or removes segments of the other store in most cases.
fn move_and_replace(before: u32, after: u32) {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, moved) = (folder.path().join("store"), folder.path().join("moved"));
    let (first, tree) = open(&path);
    assert_eq!(write(&first, tree, 0..before), before);
    std::fs::rename(&path, &moved).expect("a folder can be moved");
    let (second, second_tree) = open(&path);
    assert_eq!(write(&second, second_tree, 0..150), 150);
    let written = before + write(&first, tree, before..before + after);
    assert_eq!(write(&second, second_tree, 150..300), 150);
    if let Err(error) = first.close() {
        assert!(error.to_string().contains("was moved"), "{error}");
    }
    drop(first);
    // As after a kill: the log alone has what the second has written.
    drop(second);
    assert_holds(&path, 300);
    assert_holds(&moved, written);
}

#[test]
fn a_moved_store_and_the_one_that_came_to_its_path_keep_all_that_they_have_acknowledged() {
    for (before, after) in [(10, 0), (400, 0), (400, 400), (3_000, 0), (3_000, 3_000)] {
        move_and_replace(before, after);
    }
}
