//! Stores of every frozen format: this program opens, reads and writes them, and replays their logs.
//!
//! `examples/store_of_this_format.rs` made the files. Never change the files in `tests/stores/version-N`, nor
//! `content.rs`, which has their content. A new format gets a new folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pando_betree::{Betree, Options, verify};
use pando_environment::Environment;
use pando_storage::{Begin, BlockingMode, Cursor, Direction, Durability, Engine, KeyRange, TreeId};

#[path = "stores/content.rs"]
mod content;

fn unpack(version: &str, target: &Path) {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores").join(version);
    for entry in fs::read_dir(packed).expect("the store is checked in") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_stem().expect("a name").to_string_lossy().replace('+', "/");
        let target = target.join(name);
        fs::create_dir_all(target.parent().expect("a folder")).expect("folders are made");
        let packed = fs::read(&path).expect("it can be read");
        fs::write(target, zstd::decode_all(packed.as_slice()).expect("it is whole")).expect("it is written");
    }
}

fn open(folder: &Path) -> std::sync::Arc<Betree> {
    let entries = content::OPTIONS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = Options::default().with_entries(&entries).expect("the options are possible");
    Betree::open(&Environment::real(), folder, options).expect("a store of a frozen format opens")
}

fn entries(engine: &Betree, tree: TreeId, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let reader = engine.begin(Begin::READ).expect("readers begin");
    let mut cursor = Cursor::new(tree, KeyRange::all(), direction);
    let mut found = Vec::new();
    while let Some((key, value)) = cursor.next(&*reader, BlockingMode::MayBlock).expect("scans go on") {
        found.push((key.to_vec(), value.to_vec()));
    }
    found
}

fn check(engine: &Betree, expected: &content::Expected) {
    let trees = engine.list_trees().expect("trees are listed");
    let names: BTreeMap<&str, TreeId> = trees.iter().map(|tree| (tree.name.as_str(), tree.id)).collect();
    assert!(names.keys().copied().eq(expected.keys().map(String::as_str)), "{names:?}");
    for (name, wanted) in expected {
        let wanted: Vec<_> = wanted.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        assert!(entries(engine, names[name.as_str()], Direction::Forward) == wanted, "entries of {name}");
        let mut backward = entries(engine, names[name.as_str()], Direction::Backward);
        backward.reverse();
        assert!(backward == wanted, "entries of {name}, backward");
    }
}

/// The expectations of a new store with the same content. A store of any version has to meet them.
fn expected() -> content::Expected {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path());
    let expected = content::fill(&engine);
    check(&engine, &expected);
    engine.close().expect("stores close");
    expected
}

#[test]
fn a_store_of_version_1_is_read_written_and_verified() {
    let folder = tempfile::tempdir().expect("a folder");
    unpack("version-1", folder.path());
    let mut expected = expected();
    let engine = open(folder.path());
    let figure = |name: &str| engine.statistics().get(name).expect("there is such a figure");
    assert!(figure("recovery.records") > 20, "its last writes stand in the log");
    check(&engine, &expected);
    let trees = engine.list_trees().expect("trees are listed");
    for tree in trees {
        let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
        for number in 0..300u64 {
            let key = [b"later ".as_slice(), &number.to_be_bytes()].concat();
            writer.put(tree.id, &key, b"by a later program").expect("writers write");
            let entries = expected.get_mut(&tree.name).expect("it is one of them");
            entries.insert(key, b"by a later program".to_vec());
        }
        writer.commit(Durability::Synced).expect("commits succeed");
    }
    engine.compact(&[], &pando_storage::Operation::default()).expect("all trees are compacted");
    check(&engine, &expected);
    engine.close().expect("stores close");
    drop(engine);
    let report = verify(&Environment::real(), folder.path()).expect("the store can be verified");
    assert!(report.is_sound(), "{:?}", report.damage);
    check(&open(folder.path()), &expected);
}
