//! The store as a whole: options of trees, damage, missing files, a second opening, many trees, loads.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::fs;
use std::path::Path;

use pando_environment::Environment;
use pando_storage::{
    Begin, BlockingMode, CheckRequest, Durability, Engine, ErrorKind, IteratorEntries, LoadDurability,
    StorageError, TreeId, TreeOptions,
};
use pando_wiredtiger::{WiredTigerEngine, WiredTigerOptions, verify};

fn options(entries: &[(&str, &str)]) -> WiredTigerOptions {
    let small = [("journalFileSize", "1MB"), ("cache", "32MB")];
    let entries: Vec<_> =
        small.iter().chain(entries).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    WiredTigerOptions::default().with_entries(&entries).unwrap()
}

fn open(folder: &Path) -> Result<WiredTigerEngine, StorageError> {
    WiredTigerEngine::open(&Environment::real(), folder, options(&[]))
}

fn tree_options(entries: &[(&str, &str)]) -> TreeOptions {
    let entries = entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    TreeOptions { entries }
}

fn fill(engine: &WiredTigerEngine, tree: TreeId, entries: u32) {
    let mut writer = engine.begin(Begin::WRITE).unwrap();
    for number in 0..entries {
        let noise: Vec<u8> =
            (0..200_u32).map(|at| (at.wrapping_mul(2_654_435_761 + number) >> 13) as u8).collect();
        writer.put(tree, &number.to_be_bytes(), &noise).unwrap();
    }
    writer.commit(Durability::Logged).unwrap();
}

fn get(engine: &WiredTigerEngine, tree: TreeId, number: u32) -> Result<Option<Vec<u8>>, StorageError> {
    let reader = engine.begin(Begin::READ)?;
    Ok(reader.get(tree, &number.to_be_bytes(), BlockingMode::MayBlock)?.map(|value| value.to_vec()))
}

/// The files of a tree in WiredTiger's folder.
fn files(folder: &Path, tree: TreeId) -> Vec<String> {
    let prefix = format!("tree-{:08}", tree.get());
    let names = fs::read_dir(folder.join("wiredtiger")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

#[test]
fn each_tree_has_the_table_that_its_options_ask_for() {
    let folder = tempfile::tempdir().unwrap();
    let engine =
        WiredTigerEngine::open(&Environment::real(), folder.path(), options(&[("indexType", "lsm")]))
            .unwrap();
    let make =
        |name: &str, entries: &[(&str, &str)]| engine.create_tree(name, &tree_options(entries)).unwrap();
    let collection = make("collection-1", &[]);
    let index = make("index-2", &[]);
    let other = make("collection-3", &[("type", "lsm"), ("blockCompressor", "zlib")]);
    let mongodb = make("index-4", &[("configString", "type=file,block_compressor=snappy,leaf_page_max=8KB")]);
    for tree in [collection, index, other, mongodb] {
        fill(&engine, tree, 100);
        assert!(get(&engine, tree, 42).unwrap().is_some());
    }
    let is_lsm = |tree| files(folder.path(), tree).iter().any(|name| name.ends_with(".lsm"));
    assert_eq!([collection, index, other, mongodb].map(is_lsm), [false, true, true, false]);
    for (name, value, word) in [
        ("pageSize", "4KB", "leafPageSize"),
        ("configString", "leaf_page_max=banana", "leaf_page_max"),
        ("configString", "block_compressor=zstd", "zstd"),
        ("configString", "log=(enabled=false)", "`log`"),
    ] {
        let refused = engine.create_tree("refused", &tree_options(&[(name, value)])).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
        assert!(refused.to_string().contains(word), "{refused}");
    }
    let refused = engine.change_tree_options(collection, &tree_options(&[("type", "lsm")])).unwrap_err();
    assert!(refused.to_string().contains("anew"), "{refused}");
    engine.close().unwrap();
}

#[test]
fn settings_change_while_the_store_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    engine.change_settings(&[("cache", "48MB"), ("checkpointPeriod", "7")]).unwrap();
    assert_eq!(engine.statistics().get("cache.limit_bytes"), Some(48 << 20));
    assert!(engine.settings().contains(&("checkpointPeriod", "7".to_owned())));
    for (name, value) in [("journalCompressor", "zlib"), ("cache", "nothing")] {
        let refused = engine.change_settings(&[(name, value)]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    }
}

#[test]
fn a_store_is_open_once_and_a_missing_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    assert!(open(folder.path()).is_err(), "it is open already");
    let tree = engine.create_tree("collection-1", &TreeOptions::default()).unwrap();
    fill(&engine, tree, 100);
    engine.close().unwrap();
    drop(engine);
    let file = folder.path().join("wiredtiger").join(&files(folder.path(), tree)[0]);
    let aside = folder.path().join("aside");
    fs::rename(&file, &aside).unwrap();
    let missing = open(folder.path()).and_then(|engine| get(&engine, tree, 1)).unwrap_err();
    assert!(missing.to_string().contains("tree-00000001"), "{missing}");
    fs::rename(&aside, &file).unwrap();
    assert!(get(&open(folder.path()).unwrap(), tree, 1).unwrap().is_some());
}

#[test]
fn damage_is_told_and_other_trees_stay_readable_in_a_check() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    let (sound, damaged) = (
        engine.create_tree("collection-1", &TreeOptions::default()).unwrap(),
        engine.create_tree("collection-2", &TreeOptions::default()).unwrap(),
    );
    fill(&engine, sound, 5_000);
    fill(&engine, damaged, 5_000);
    engine.close().unwrap();
    drop(engine);
    let environment = Environment::real();
    let report = verify(&environment, folder.path()).unwrap().check;
    assert!(report.is_sound() && report.trees == 2 && report.entries == 10_000, "{report:?}");
    let file = folder.path().join("wiredtiger").join(&files(folder.path(), damaged)[0]);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].iter_mut().for_each(|byte| *byte ^= 0x5a);
    fs::write(&file, &bytes).unwrap();
    let report = verify(&environment, folder.path()).unwrap().check;
    assert_eq!((report.problems.len(), report.trees), (1, 2), "{report:?}");
    assert!(report.problems[0].contains("collection-2"), "{report:?}");
    // A reader is told, too; the library stops then.
    let engine = open(folder.path()).unwrap();
    let outcome = engine.check(&CheckRequest::default());
    assert!(outcome.map_or(true, |report| !report.is_sound()), "the check has found nothing");
}

#[test]
fn ten_thousand_trees_are_made_listed_and_dropped() {
    let folder = tempfile::tempdir().unwrap();
    // The whole-product test has 10,000; here fewer, so that the suite stays short.
    let count = std::env::var("PANDO_TREES").ok().and_then(|count| count.parse().ok()).unwrap_or(500_u32);
    let engine = open(folder.path()).unwrap();
    let trees: Vec<TreeId> = (0..count)
        .map(|number| engine.create_tree(&format!("index-{number}"), &TreeOptions::default()).unwrap())
        .collect();
    for tree in &trees {
        let mut writer = engine.begin(Begin::WRITE).unwrap();
        writer.put(*tree, b"own", &tree.get().to_be_bytes()).unwrap();
        writer.commit(Durability::None).unwrap();
    }
    engine.close().unwrap();
    drop(engine);
    let engine = open(folder.path()).unwrap();
    assert_eq!(engine.list_trees().unwrap().len(), count as usize);
    let reader = engine.begin(Begin::READ).unwrap();
    for tree in &trees {
        let value = reader.get(*tree, b"own", BlockingMode::MayBlock).unwrap();
        assert_eq!(value.as_deref(), Some(tree.get().to_be_bytes().as_slice()));
    }
    drop(reader);
    trees.iter().for_each(|tree| engine.drop_tree(*tree).unwrap());
    engine.close().unwrap();
    drop(engine);
    let engine = open(folder.path()).unwrap();
    assert!(engine.list_trees().unwrap().is_empty());
    assert!(trees.iter().all(|tree| files(folder.path(), *tree).is_empty()));
}

#[test]
fn a_durable_load_survives_without_a_close_and_a_check_counts_anew() {
    for table_type in ["btree", "lsm"] {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path()).unwrap();
        let tree = engine.create_tree("collection-1", &tree_options(&[("type", table_type)])).unwrap();
        let entries: Vec<(Vec<u8>, Vec<u8>)> =
            (0..20_000_u32).map(|number| (number.to_be_bytes().to_vec(), vec![7; 100])).collect();
        let mut sorted = IteratorEntries::new(entries.iter().map(|(key, value)| (&key[..], &value[..])));
        assert_eq!(engine.load(tree, &mut sorted, LoadDurability::Durable).unwrap(), 20_000);
        // A power cut would leave the files as they lie on the device now.
        let copy = tempfile::tempdir().unwrap();
        fs::create_dir(copy.path().join("wiredtiger")).unwrap();
        for entry in fs::read_dir(folder.path().join("wiredtiger")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.path().join("wiredtiger").join(entry.file_name())).unwrap();
        }
        let after = open(copy.path()).unwrap();
        assert_eq!(get(&after, tree, 19_999).unwrap(), Some(vec![7; 100]), "{table_type}");
        let report = after.check(&CheckRequest::default()).unwrap();
        assert!(report.is_sound() && report.entries == 20_000, "{report:?}");
        assert_eq!(after.tree_estimate(tree).unwrap().entries, 20_000);
    }
}

#[test]
fn transactions_whose_pages_do_not_fit_into_the_cache_together_end_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let entries = [("cache", "16MB"), ("configString", "cache_max_wait_ms=300")];
    let engine = WiredTigerEngine::open(&Environment::real(), folder.path(), options(&entries)).unwrap();
    let tree = engine.create_tree("c", &TreeOptions::default()).unwrap();
    for part in 0..100_u32 {
        let mut writer = engine.begin(Begin::WRITE).unwrap();
        for number in 0..1_000 {
            let noise: Vec<u8> =
                (0..400_u32).map(|at| (at.wrapping_mul(2_654_435_761 + number) >> 13) as u8).collect();
            writer.put(tree, &(part * 1_000 + number).to_be_bytes(), &noise).unwrap();
        }
        writer.commit(Durability::Logged).unwrap();
    }
    // Each thread changes keys of all pages, all over 40 MB.
    let changed =
        |thread: u32| (0..100_000_u32).step_by(10).map(move |number| (number + thread).to_be_bytes());
    let outcomes: Vec<Result<(), StorageError>> = std::thread::scope(|scope| {
        let change = |thread| {
            let mut writer = engine.begin(Begin::WRITE)?;
            for key in changed(thread) {
                writer.put(tree, &key, b"changed")?;
            }
            writer.commit(Durability::Logged).map(drop)
        };
        let threads: Vec<_> = (1..5).map(|thread| scope.spawn(move || change(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let reader = engine.begin(Begin::READ).unwrap();
    for (thread, outcome) in (1..5).zip(&outcomes) {
        if let Err(error) = outcome {
            assert_eq!(error.kind(), ErrorKind::Busy);
            assert!(error.to_string().contains("make the cache larger"), "{error}");
        }
        for key in changed(thread) {
            let value = reader.get(tree, &key, BlockingMode::MayBlock).unwrap();
            assert_eq!(value.as_deref() == Some(&b"changed"[..]), outcome.is_ok(), "thread {thread}");
        }
    }
    drop(reader);
    let mut writer = engine.begin(Begin::WRITE).unwrap();
    writer.put(tree, &8_u32.to_be_bytes(), b"changed").unwrap();
    writer.commit(Durability::Logged).unwrap();
    assert_eq!(get(&engine, tree, 8).unwrap().as_deref(), Some(&b"changed"[..]));
    assert_eq!(get(&engine, tree, 9).unwrap().map(|value| value.len()), Some(400));
}
