//! Stores in every codec: content survives restarts, and a store in Snappy or zlib has the feature bit by
//! which an older program refuses it.
#![cfg(feature = "codecs")]

use std::path::Path;

use pando_betree::{Betree, Options, verify};
use pando_environment::Environment;
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, Engine, KeyRange, Operation, TreeId, TreeOptions,
};

/// The place of the incompatible features in a superblock, and those of the first copy of both slots.
const FEATURES_AT: usize = 32;
const SLOTS: [usize; 2] = [0, 4_096];
const GENERATION_AT: usize = 56;

fn options(entries: &[(&str, &str)]) -> Options {
    let entries: Vec<_> = entries.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Options::default().with_entries(&entries).expect("the options are possible")
}

fn open(folder: &Path) -> std::sync::Arc<Betree> {
    Betree::open(&Environment::real(), folder, options(&[])).expect("the store opens")
}

/// A value that each codec makes much shorter.
fn value(number: u32) -> Vec<u8> {
    format!("a value of some words, number {number}; ").repeat(8).into_bytes()
}

fn fill(engine: &Betree, tree: TreeId) {
    for from in (0..5_000u32).step_by(500) {
        let mut writer = engine.begin(Begin::WRITE).expect("a transaction");
        for number in from..from + 500 {
            writer.put(tree, &number.to_be_bytes(), &value(number)).expect("a write");
        }
        writer.commit(Durability::Logged).expect("a commit");
    }
}

fn check(engine: &Betree, tree: TreeId) {
    let reader = engine.begin(Begin::READ).expect("a reader");
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut number = 0u32;
    while let Some((key, found)) = cursor.next(&*reader, BlockingMode::MayBlock).expect("a scan") {
        assert_eq!((key, found), (&number.to_be_bytes()[..], &value(number)[..]));
        number += 1;
    }
    assert_eq!(number, 5_000);
}

/// The incompatible features of the newest superblock.
fn features(folder: &Path) -> u64 {
    let data = std::fs::read(folder.join("data.0000")).expect("the data file");
    let number = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().expect("eight bytes"));
    let newest = SLOTS.into_iter().filter(|slot| data[*slot..].starts_with(b"PANDO\0DB"));
    let newest = newest.max_by_key(|slot| number(slot + GENERATION_AT)).expect("a superblock");
    number(newest + FEATURES_AT)
}

#[test]
fn every_codec_keeps_the_content_and_new_ones_have_their_feature_bit() {
    for (compression, bits) in
        [("none", 0), ("lz4", 0), ("zstd-3", 0), ("snappy", 1), ("zlib", 1), ("zlib-1", 1)]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("store");
        let engine = open(&folder);
        let entries = vec![("compression".to_owned(), compression.to_owned())];
        let tree = engine.create_tree("t", &TreeOptions { entries }).expect("a tree");
        fill(&engine, tree);
        engine.close().expect("the store closes");
        drop(engine);
        assert_eq!(features(&folder), bits, "{compression}");

        let engine = open(&folder);
        check(&engine, tree);
        engine.compact(&[tree], &Operation::default()).expect("trees can be rewritten");
        check(&engine, tree);
        engine.close().expect("the store closes");
        drop(engine);
        assert_eq!(features(&folder), bits, "{compression}: the bit stays");
        let report = verify(&Environment::real(), &folder).expect("the store can be read");
        assert!(report.is_sound(), "{compression}: {:?}", report.sentences().collect::<Vec<_>>());
    }
}
