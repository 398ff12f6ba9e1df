//! Stores as a person meets them: options of trees, many trees, damage, foreign folders, backups.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::fs;
use std::path::{Path, PathBuf};

use pando_environment::Environment;
use pando_rocksdb::{RocksdbEngine, RocksdbOptions, restore};
use pando_storage::{
    BackupRequest, Begin, BlockingMode, CheckRequest, Cursor, Direction, Durability, Engine, ErrorKind,
    KeyRange, Operation, StorageError, TreeId, TreeOptions,
};

fn options(entries: &[(&str, &str)]) -> Result<RocksdbOptions, StorageError> {
    RocksdbOptions::default().with_entries(&pairs(entries))
}

fn pairs(entries: &[(&str, &str)]) -> Vec<(String, String)> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn open_with(folder: &Path, entries: &[(&str, &str)]) -> Result<RocksdbEngine, StorageError> {
    RocksdbEngine::open(&Environment::real(), folder, options(entries)?)
}

fn open(folder: &Path) -> Result<RocksdbEngine, StorageError> {
    open_with(folder, &[])
}

fn tree_with(engine: &RocksdbEngine, name: &str, entries: &[(&str, &str)]) -> Result<TreeId, StorageError> {
    engine.create_tree(name, &TreeOptions { entries: pairs(entries) })
}

fn fill(engine: &RocksdbEngine, tree: TreeId, numbers: std::ops::Range<u32>) {
    let mut writer = engine.begin(Begin::WRITE).unwrap();
    for number in numbers {
        let value: Vec<u8> = (0..200_u32).map(|at| (number.wrapping_mul(at + 7) >> 3) as u8).collect();
        writer.put(tree, &number.to_be_bytes(), &value).unwrap();
    }
    writer.commit(Durability::Logged).unwrap();
}

fn count(engine: &RocksdbEngine, tree: TreeId) -> Result<usize, StorageError> {
    let reader = engine.begin(Begin::READ)?;
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut entries = 0;
    while cursor.next(&*reader, BlockingMode::MayBlock)?.is_some() {
        entries += 1;
    }
    Ok(entries)
}

fn operation() -> Operation {
    Operation::new(Environment::real().clock())
}

fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("rocksdb")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.to_str().unwrap().ends_with(suffix)).collect();
    paths.sort();
    paths
}

fn refusal<T>(outcome: Result<T, StorageError>) -> (ErrorKind, String) {
    let error = outcome.err().expect("it is refused");
    (error.kind(), error.to_string())
}

#[test]
fn every_compression_and_both_compactions_keep_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    let mut trees = Vec::new();
    for compression in ["none", "snappy", "lz4", "zlib", "zstd", "zstd-12"] {
        for compaction in ["leveled", "universal"] {
            let entries = [("compression", compression), ("compaction", compaction), ("filterBits", "8")];
            let tree = tree_with(&engine, &format!("{compression} {compaction}"), &entries).unwrap();
            fill(&engine, tree, 0..1_000);
            trees.push(tree);
        }
    }
    assert_eq!(engine.statistics().get("families.count"), Some(12));
    engine.compact(&[], &operation()).unwrap();
    for tree in &trees {
        fill(&engine, *tree, 1_000..1_500);
    }
    engine.close().unwrap();
    drop(engine);
    let engine = open(folder.path()).unwrap();
    for tree in trees {
        assert_eq!(count(&engine, tree).unwrap(), 1_500);
    }
}

#[test]
fn stores_open_with_every_option_and_refuse_what_they_do_not_know() {
    let folder = tempfile::tempdir().unwrap();
    for entries in [
        &[("cacheType", "hyperClock"), ("cache", "8MB")][..],
        &[("cache", "8MB"), ("bufferBudget", "2MB"), ("logBudget", "4MB"), ("openFiles", "50")],
        &[("statistics", "off"), ("backgroundJobs", "4"), ("compaction", "universal"), ("pageSize", "4KB")],
    ] {
        if cfg!(lacks_hyper_clock_cache) && entries[0].1 == "hyperClock" {
            let (_, message) = refusal(open_with(folder.path(), entries));
            assert!(message.contains("too old"), "{message}");
            continue;
        }
        let engine = open_with(folder.path(), entries).unwrap();
        let tree = engine.create_tree(&format!("{entries:?}"), &TreeOptions::default()).unwrap();
        fill(&engine, tree, 0..5_000);
        assert_eq!(count(&engine, tree).unwrap(), 5_000);
        engine.close().unwrap();
    }
    let (kind, message) = refusal(open_with(folder.path(), &[("fanout", "16")]));
    assert_eq!(kind, ErrorKind::InvalidInput);
    assert!(message.contains("`fanout`") && message.contains("bufferBudget"), "{message}");
    let engine = open(folder.path()).unwrap();
    let (kind, message) = refusal(tree_with(&engine, "t", &[("leafSize", "1MB")]));
    assert_eq!(kind, ErrorKind::InvalidInput);
    assert!(message.contains("`leafSize`") && message.contains("filterBits"), "{message}");
}

#[test]
fn the_last_level_has_filters_unless_they_are_switched_off() {
    let folder = tempfile::tempdir().unwrap();
    for (entries, expected) in [
        (&[][..], "optimize_filters_for_hits=false"),
        (&[("lastLevelFilters", "off")], "optimize_filters_for_hits=true"),
    ] {
        let engine = open_with(folder.path(), entries).unwrap();
        let tree = engine.create_tree(expected, &TreeOptions::default()).unwrap();
        fill(&engine, tree, 0..5_000);
        engine.compact(&[], &operation()).unwrap();
        assert_eq!(count(&engine, tree).unwrap(), 5_000);
        engine.close().unwrap();
        drop(engine);
        // RocksDB writes down the options of each column family: the records', and the trees'.
        let mut all = files(folder.path(), "").into_iter();
        let written =
            all.rfind(|path| path.to_str().unwrap().contains("OPTIONS-")).expect("a file of options");
        let options = fs::read_to_string(written).unwrap();
        let trees = options.split("[CFOptions ").last().expect("the trees' options come last");
        assert!(trees.contains(expected), "{trees}");
    }
}

#[test]
fn direct_io_reads_and_writes_the_same() {
    // A folder of the working directory: the temporary one may lie in memory, which knows no direct access.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let engine = match open_with(folder.path(), &[("directIo", "on")]) {
        Ok(engine) => engine,
        // The file system cannot.
        Err(error) if error.kind() == ErrorKind::InvalidInput => return,
        Err(error) => panic!("{error}"),
    };
    let tree = tree_with(&engine, "t", &[]).unwrap();
    fill(&engine, tree, 0..5_000);
    engine.checkpoint().unwrap();
    assert_eq!(count(&engine, tree).unwrap(), 5_000);
}

#[test]
fn options_of_a_tree_stay_as_they_were_made() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    let tree = tree_with(&engine, "t", &[("compression", "zlib")]).unwrap();
    let same = TreeOptions { entries: pairs(&[("compression", "zlib")]) };
    engine.change_tree_options(tree, &same).unwrap();
    let other = TreeOptions { entries: pairs(&[("compression", "snappy")]) };
    let (kind, message) = refusal(engine.change_tree_options(tree, &other));
    assert_eq!(kind, ErrorKind::InvalidInput);
    assert!(message.contains("compression=zlib") && message.contains("copy"), "{message}");
}

#[test]
fn too_many_sets_of_options_are_refused_and_ten_thousand_trees_of_one_set_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open_with(folder.path(), &[("cache", "64MB")]).unwrap();
    for number in 0..10_000 {
        tree_with(&engine, &format!("tree {number}"), &[]).unwrap();
    }
    assert_eq!(engine.statistics().get("families.count"), Some(1));
    let mut made = 1;
    let refused = loop {
        let size = (1_024 + 16 * made).to_string();
        match tree_with(&engine, &format!("page {size}"), &[("pageSize", &size)]) {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((made, refused.kind()), (64, ErrorKind::InvalidInput));
    drop(engine);
    let engine = open(folder.path()).unwrap();
    assert_eq!(engine.list_trees().unwrap().len(), 10_063);
}

#[test]
fn the_files_of_a_dropped_tree_go_and_its_neighbours_entries_stay() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    let trees: Vec<_> = ["a", "b", "c"].map(|name| tree_with(&engine, name, &[]).unwrap()).into();
    for tree in &trees {
        fill(&engine, *tree, 0..20_000);
        let mut writer = engine.begin(Begin::WRITE).unwrap();
        // The first and the last key that a tree can have.
        writer.put(*tree, b"", b"first").unwrap();
        writer.put(*tree, &[0xFF; pando_storage::KEY_BYTES_MAX], b"last").unwrap();
        writer.commit(Durability::Logged).unwrap();
        engine.checkpoint().unwrap();
    }
    engine.compact(&[], &operation()).unwrap();
    let before = engine.bytes_on_disk(None).unwrap();
    let reader = engine.begin(Begin::READ).unwrap();
    engine.drop_tree(trees[1]).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let found = reader.get(trees[1], b"", BlockingMode::MayBlock).unwrap();
    assert_eq!(found.as_deref(), Some(&b"first"[..]), "an older transaction still reads it");
    drop(reader);
    engine.compact(&[], &operation()).unwrap();
    for _ in 0..200 {
        if engine.bytes_on_disk(None).unwrap() < before * 8 / 10 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(engine.bytes_on_disk(None).unwrap() < before * 8 / 10, "the space did not come back");
    for tree in [trees[0], trees[2]] {
        assert_eq!(count(&engine, tree).unwrap(), 20_002);
    }
}

#[test]
fn a_damaged_table_file_is_told_and_other_trees_stay_readable() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    let (sound, damaged) = (
        tree_with(&engine, "sound", &[]).unwrap(),
        tree_with(&engine, "damaged", &[("compression", "none")]).unwrap(),
    );
    fill(&engine, sound, 0..2_000);
    engine.checkpoint().unwrap();
    let before = files(folder.path(), ".sst");
    fill(&engine, damaged, 0..2_000);
    engine.close().unwrap();
    drop(engine);
    // The engine's own records have a file, too, and a small one.
    let new = files(folder.path(), ".sst").into_iter().filter(|path| !before.contains(path));
    let file = new.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x20;
    fs::write(&file, bytes).unwrap();
    let engine = open(folder.path()).unwrap();
    assert_eq!(count(&engine, damaged).map_err(|error| error.kind()), Err(ErrorKind::Corrupt));
    assert_eq!(count(&engine, sound).unwrap(), 2_000);
    let report = engine.check(&CheckRequest::default()).unwrap();
    assert_eq!(report.problems.len(), 1, "{report:?}");
    assert!(report.problems[0].starts_with("damaged, after the key 0x"), "{report:?}");
}

#[test]
fn a_damaged_log_is_not_taken_for_one_that_a_power_cut_ended() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    let tree = tree_with(&engine, "t", &[]).unwrap();
    fill(&engine, tree, 0..2_000);
    let mut writer = engine.begin(Begin::WRITE).unwrap();
    writer.put(tree, b"synced", b"v").unwrap();
    let receipt = writer.commit(Durability::Synced).unwrap();
    engine.wait_durable(receipt, Durability::Synced).unwrap();
    drop(engine);
    let log = files(folder.path(), ".log").pop().unwrap();
    let whole = fs::read(&log).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    for bad in [damaged, whole[..whole.len() - 10].to_vec()] {
        let copy = tempfile::tempdir().unwrap();
        copy_folder(folder.path(), copy.path());
        fs::write(copy.path().join("rocksdb").join(log.file_name().unwrap()), bad).unwrap();
        let (kind, message) = refusal(open(copy.path()));
        assert_eq!(kind, ErrorKind::Corrupt, "{message}");
        assert!(message.contains("restore a backup"), "{message}");
    }
    assert_eq!(count(&open(folder.path()).unwrap(), tree).unwrap(), 2_001);
}

#[test]
fn a_log_that_ends_behind_the_last_sync_is_opened_up_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    let tree = tree_with(&engine, "t", &[]).unwrap();
    engine.checkpoint().unwrap();
    let synced = fs::read(folder.path().join("synced")).unwrap();
    for number in 0..10 {
        fill(&engine, tree, number * 10..number * 10 + 10);
    }
    drop(engine);
    // A machine that lost power before the next sync: the end of the log is torn, the file `synced` is old.
    fs::write(folder.path().join("synced"), synced).unwrap();
    let log = files(folder.path(), ".log").pop().unwrap();
    let whole = fs::read(&log).unwrap();
    fs::write(&log, &whole[..whole.len() - 700]).unwrap();
    let engine = open(folder.path()).unwrap();
    let entries = count(&engine, tree).unwrap();
    assert!(
        entries < 100 && entries.is_multiple_of(10),
        "{entries} entries: a commit is there wholly or not"
    );
    fill(&engine, tree, 1_000..1_010);
    engine.close().unwrap();
    drop(engine);
    assert_eq!(count(&open(folder.path()).unwrap(), tree).unwrap(), entries + 10);
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_store_without_its_beginning_is_refused_rather_than_begun_anew() {
    for lost in ["CURRENT", "MANIFEST"] {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path()).unwrap();
        let tree = tree_with(&engine, "t", &[]).unwrap();
        fill(&engine, tree, 0..100);
        engine.close().unwrap();
        drop(engine);
        let files = fs::read_dir(folder.path().join("rocksdb")).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> =
            files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(lost)).collect();
        assert!(!files.is_empty());
        files.iter().for_each(|path| fs::remove_file(path).unwrap());
        let (kind, message) = refusal(open(folder.path()));
        assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::Io), "{message}");
        assert!(message.contains("restore a backup"), "{message}");
    }
}

#[test]
fn a_database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = rocksdb::Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    let data = folder.path().join("rocksdb");
    let theirs = rocksdb::DB::open(&options, &data).unwrap();
    theirs.put("a", "b").unwrap();
    drop(theirs);
    let (kind, message) = refusal(open(folder.path()));
    assert_eq!(kind, ErrorKind::InvalidInput, "{message}");
    assert!(message.contains("none of Pando"), "{message}");
    let theirs = rocksdb::DB::open_cf(&options, &data, ["users"]).unwrap();
    assert_eq!(theirs.get("a").unwrap().as_deref(), Some(&b"b"[..]), "nothing of it has changed");
    drop(theirs);
    let (kind, message) = refusal(open(folder.path()));
    assert_eq!(kind, ErrorKind::InvalidInput, "{message}");
    assert!(message.contains("`users`"), "{message}");
}

#[test]
fn a_second_opening_is_refused_while_the_first_lives() {
    let folder = tempfile::tempdir().unwrap();
    let _engine = open(folder.path()).unwrap();
    let (_, message) = refusal(open(folder.path()));
    assert!(message.contains(&std::process::id().to_string()), "{message}");
}

#[test]
fn a_backup_is_at_one_commit_keeps_options_and_is_restored() {
    let (folder, backup, restored) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let engine = open(folder.path()).unwrap();
    let trees = [
        tree_with(&engine, "a", &[("compression", "zlib")]).unwrap(),
        tree_with(&engine, "b", &[("compaction", "universal")]).unwrap(),
    ];
    let environment = Environment::real();
    let request =
        BackupRequest { environment: &environment, folder: backup.path(), since: None, operation: None };
    fill(&engine, trees[0], 0..5_000);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        let (engine, is_over) = (&engine, &is_over);
        // Each commit writes into both trees: a backup at one commit has as many entries in either.
        scope.spawn(move || {
            for number in 10_000_u32.. {
                let mut writer = engine.begin(Begin::WRITE).unwrap();
                for tree in trees {
                    writer.put(tree, &number.to_be_bytes(), &[7; 100]).unwrap();
                }
                writer.commit(Durability::Logged).unwrap();
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
            }
        });
        let report = engine.backup(&request).unwrap();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        report
    });
    assert!(!folder.path().join("checkpoint").exists(), "the checkpoint is removed");
    assert_eq!(refusal(engine.backup(&request)).0, ErrorKind::InvalidInput);
    let done = restore(&environment, backup.path(), restored.path()).unwrap();
    assert_eq!(done.moment, report.moment);
    let other = open(restored.path()).unwrap();
    assert_eq!(other.begin(Begin::READ).unwrap().snapshot().get(), report.moment.get());
    assert_eq!(count(&other, trees[0]).unwrap(), 5_000 + count(&other, trees[1]).unwrap());
    let (_, message) = refusal(
        other.change_tree_options(trees[0], &TreeOptions { entries: pairs(&[("compression", "none")]) }),
    );
    assert!(message.contains("compression=zlib"), "the options were kept: {message}");
    fill(&other, trees[0], 0..10);
    assert_eq!(refusal(restore(&environment, backup.path(), restored.path())).0, ErrorKind::InvalidInput);
}

#[test]
fn a_damaged_backup_is_refused_and_leaves_no_store() {
    let (folder, backup) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let engine = open(folder.path()).unwrap();
    let tree = tree_with(&engine, "t", &[]).unwrap();
    fill(&engine, tree, 0..1_000);
    let environment = Environment::real();
    let request =
        BackupRequest { environment: &environment, folder: backup.path(), since: None, operation: None };
    engine.backup(&request).unwrap();
    let names: Vec<_> =
        fs::read_dir(backup.path().join("files")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(names.len() >= 4, "{names:?}");
    for path in names.iter().chain([&backup.path().join("MANIFEST.rocksdb")]) {
        let whole = fs::read(path).unwrap();
        if whole.is_empty() {
            continue;
        }
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 8;
        for bad in [Some(damaged), Some(whole[..whole.len() - 1].to_vec()), None] {
            match bad {
                Some(bytes) => fs::write(path, bytes).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
            let target = tempfile::tempdir().unwrap();
            let (kind, message) = refusal(restore(&environment, backup.path(), target.path()));
            assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::InvalidInput), "{message}");
            assert!(!target.path().join("rocksdb").exists());
        }
        fs::write(path, whole).unwrap();
    }
    let target = tempfile::tempdir().unwrap();
    restore(&environment, backup.path(), target.path()).unwrap();
    assert_eq!(count(&open(target.path()).unwrap(), tree).unwrap(), 1_000);
}

#[test]
fn figures_have_the_common_names_and_the_cache_can_be_resized() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open_with(folder.path(), &[("cache", "64MB")]).unwrap();
    let tree = tree_with(&engine, "t", &[]).unwrap();
    fill(&engine, tree, 0..5_000);
    engine.checkpoint().unwrap();
    count(&engine, tree).unwrap();
    let statistics = engine.statistics();
    for name in ["cache.misses", "cache.page_bytes", "log.write_bytes", "data.file_bytes", "commits.bytes"] {
        assert!(statistics.get(name).is_some_and(|figure| figure > 0), "{name}: {:?}", statistics.get(name));
    }
    assert_eq!(statistics.get("cache.limit_bytes"), Some(64 << 20));
    let of_tree = engine.tree_statistics(tree).unwrap();
    assert!(of_tree.get("entries").is_some_and(|entries| (2_500..=10_000).contains(&entries)), "{of_tree:?}");
    engine.change_settings(&[("cache", "128MB")]).unwrap();
    assert_eq!(engine.settings(), [("cache", (128 << 20).to_string())]);
    assert_eq!(engine.statistics().get("cache.limit_bytes"), Some(128 << 20));
    for bad in [("cache", "1MB"), ("cache", "much"), ("fanout", "3")] {
        assert_eq!(refusal(engine.change_settings(&[bad])).0, ErrorKind::InvalidInput, "{bad:?}");
    }
    assert_eq!(engine.statistics().get("cache.limit_bytes"), Some(128 << 20));
}

#[test]
fn reads_that_must_not_block_are_answered_from_the_cache_alone() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    let tree = tree_with(&engine, "t", &[]).unwrap();
    fill(&engine, tree, 0..5_000);
    engine.close().unwrap();
    drop(engine);
    let engine = open(folder.path()).unwrap();
    let reader = engine.begin(Begin::READ).unwrap();
    let key = 2_500_u32.to_be_bytes();
    let cached = || reader.get(tree, &key, BlockingMode::CachedOnly).map(|value| value.is_some());
    assert_eq!(cached().map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    assert!(reader.get(tree, &key, BlockingMode::MayBlock).unwrap().is_some());
    assert!(cached().unwrap());
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let far = cursor.next(&*reader, BlockingMode::CachedOnly).map(|entry| entry.is_some());
    assert_eq!(far.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    assert_eq!(count(&engine, tree).unwrap(), 5_000);
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut entries = 0;
    while cursor.next(&*reader, BlockingMode::CachedOnly).unwrap().is_some() {
        entries += 1;
    }
    assert_eq!(entries, 5_000, "all of it is cached now");
}

#[test]
fn a_transaction_that_is_too_large_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open_with(folder.path(), &[("transactionLimit", "1MB")]).unwrap();
    let tree = tree_with(&engine, "t", &[]).unwrap();
    let mut writer = engine.begin(Begin::WRITE).unwrap();
    let refused = (0..20_u32).find_map(|number| writer.put(tree, &number.to_be_bytes(), &[1; 100_000]).err());
    assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::TooLarge));
}
