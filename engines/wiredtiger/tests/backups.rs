//! Backups while others write: exactly the commits up to the moment, with the options of the trees.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pando_environment::Environment;
use pando_storage::{
    BackupExtent, BackupReport, BackupRequest, Begin, BlockingMode, CheckRequest, Cursor, Direction,
    Durability, Engine, ErrorKind, KeyRange, StorageError, TreeId, TreeOptions,
};
use pando_wiredtiger::{WiredTigerEngine, WiredTigerOptions, restore};

const THREADS: u32 = 3;
const BACKUPS: usize = 4;

fn open(folder: &Path) -> WiredTigerEngine {
    // Files of the journal that are small, so that a backup has several.
    let entries = [("journalFileSize", "1MB"), ("cache", "64MB")];
    let entries: Vec<_> =
        entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = WiredTigerOptions::default().with_entries(&entries).unwrap();
    WiredTigerEngine::open(&Environment::real(), folder, options).unwrap()
}

fn tree(engine: &WiredTigerEngine, name: &str, table_type: &str) -> TreeId {
    let entries = [("type", table_type), ("blockCompressor", "zlib")];
    let entries = entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    engine.create_tree(name, &TreeOptions { entries }).unwrap()
}

fn backup(engine: &WiredTigerEngine, folder: &Path) -> Result<BackupReport, StorageError> {
    let environment = Environment::real();
    engine.backup(&BackupRequest { environment: &environment, folder, since: None, operation: None })
}

fn numbers(engine: &WiredTigerEngine, name: &str) -> BTreeSet<u32> {
    let tree = engine.list_trees().unwrap().into_iter().find(|tree| tree.name == name).unwrap().id;
    let reader = engine.begin(Begin::READ).unwrap();
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut found = BTreeSet::new();
    while let Some((key, value)) = cursor.next(&*reader, BlockingMode::MayBlock).unwrap() {
        let number = u32::from_be_bytes(key.try_into().unwrap());
        assert_eq!(value, vec![number as u8; (number % 900) as usize], "{name}, {number}");
        found.insert(number);
    }
    found
}

#[test]
fn a_backup_has_exactly_the_commits_up_to_its_moment() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(&folder.path().join("store"));
    let trees = [tree(&engine, "collection-1", "btree"), tree(&engine, "index-2", "lsm")];
    let committed = Mutex::new(Vec::new());
    let has_ended = AtomicBool::new(false);
    let reports: Vec<BackupReport> = std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, committed, has_ended) = (&engine, &committed, &has_ended);
            scope.spawn(move || {
                for number in (thread..).step_by(THREADS as usize) {
                    if has_ended.load(Ordering::Relaxed) {
                        return;
                    }
                    let mut writer = engine.begin(Begin::WRITE).unwrap();
                    for tree in trees {
                        let value = vec![number as u8; (number % 900) as usize];
                        writer.put_blind(tree, &number.to_be_bytes(), &value).unwrap();
                    }
                    let receipt = writer.commit(Durability::Logged).unwrap();
                    committed.lock().unwrap().push((receipt.timestamp, number));
                }
            });
        }
        let reports = (0..BACKUPS)
            .map(|at| {
                std::thread::sleep(std::time::Duration::from_millis(150));
                backup(&engine, &folder.path().join(format!("backup-{at}"))).unwrap()
            })
            .collect();
        has_ended.store(true, Ordering::Relaxed);
        reports
    });
    let committed = committed.into_inner().unwrap();
    for (at, report) in reports.iter().enumerate() {
        assert_eq!(report.extent, BackupExtent::Full);
        let to = folder.path().join(format!("restored-{at}"));
        let from = folder.path().join(format!("backup-{at}"));
        assert_eq!(restore(&Environment::real(), &from, &to).unwrap().moment, report.moment);
        let restored = open(&to);
        let upto = committed.iter().filter(|(timestamp, _)| *timestamp <= report.moment);
        let expected: BTreeSet<u32> = upto.map(|(_, number)| *number).collect();
        assert!(expected.len() > 20, "backup {at} came before the writers had begun");
        for name in ["collection-1", "index-2"] {
            let found = numbers(&restored, name);
            let (missing, early) = (&expected - &found, &found - &expected);
            assert!(missing.is_empty() && early.is_empty(), "{at} {name}: -{missing:?} +{early:?}");
        }
        assert!(restored.check(&CheckRequest::default()).unwrap().is_sound());
        let names: Vec<String> = fs::read_dir(to.join("wiredtiger"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(names.iter().any(|name| name.ends_with(".lsm")), "the index is an LSM tree: {names:?}");
        let mut writer = restored.begin(Begin::WRITE).unwrap();
        writer.put(trees[0], b"more", b"").unwrap();
        let receipt = writer.commit(Durability::Synced).unwrap();
        assert!(receipt.timestamp > report.moment, "numbers go on");
        restored.close().unwrap();
    }
    engine.close().unwrap();
}

#[test]
fn a_backup_that_is_damaged_or_unfinished_is_refused_and_leaves_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(&folder.path().join("store"));
    let documents = tree(&engine, "collection-1", "btree");
    let mut writer = engine.begin(Begin::WRITE).unwrap();
    writer.put(documents, b"k", &[7; 10_000]).unwrap();
    writer.commit(Durability::Logged).unwrap();
    let from = folder.path().join("backup");
    backup(&engine, &from).unwrap();
    let again = backup(&engine, &from).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::InvalidInput);
    assert!(again.to_string().contains("MANIFEST.wiredtiger"), "{again}");
    // Tables are made and dropped after a backup as before.
    engine.drop_tree(documents).unwrap();
    engine.close().unwrap();
    let (to, environment) = (folder.path().join("to"), Environment::real());
    let names: Vec<_> =
        fs::read_dir(from.join("files")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(names.len() > 3, "{names:?}");
    let damaged = names.iter().find(|path| fs::metadata(path).unwrap().len() > 4_096).unwrap();
    let whole = fs::read(damaged).unwrap();
    let mut other = whole.clone();
    other[2_000] ^= 1;
    fs::write(damaged, other).unwrap();
    let refused = restore(&environment, &from, &to).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
    assert!(!to.join("wiredtiger").exists());
    fs::write(damaged, whole).unwrap();
    restore(&environment, &from, &to).unwrap();
    fs::remove_file(from.join("MANIFEST.wiredtiger")).unwrap();
    let refused = restore(&environment, &from, &folder.path().join("other")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("MANIFEST.wiredtiger"), "{refused}");
}
