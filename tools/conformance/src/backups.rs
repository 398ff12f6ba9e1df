//! Online backup: the engine's own kind, and the emulation that reads everything.

use std::path::Path;

use pando_environment::Environment;
use pando_storage::{BackupExtent, BackupRequest, BlockingMode, Durability, ErrorKind, KeyRange, emulate};

use crate::subject::{Subject, commit};

fn fill(engine: &crate::subject::Opened, tree: pando_storage::TreeId, from: u32) {
    let mut writer = engine.writer();
    for number in from..from + 500 {
        writer.put(tree, &number.to_be_bytes(), &vec![number as u8; 300]).expect("the put succeeds");
    }
    commit(writer);
}

/// Only the caller waits. Later commits are in the store, and in no backup.
pub fn a_backup_leaves_the_store_as_it_was(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    fill(&engine, tree, 0);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let environment = Environment::real();
    let request =
        BackupRequest { environment: &environment, folder: folder.path(), since: None, operation: None };
    let report = engine.backup(&request).expect("a backup is made");
    assert!(report.extent == BackupExtent::Full && report.bytes > 0, "{report:?}");
    fill(&engine, tree, 500);
    assert_eq!(
        engine
            .reader()
            .get(tree, &7_u32.to_be_bytes(), BlockingMode::MayBlock)
            .map(|value| value.is_some())
            .ok(),
        Some(true)
    );
    let again = engine.backup(&request).expect_err("the folder has a backup");
    assert_eq!(again.kind(), ErrorKind::InvalidInput, "{again}");
    assert!(engine.tree_estimate(tree).expect("a tree has an estimate").entries >= 500);
}

/// A second backup may be told of the first. The engine may leave entries out then, or not.
pub fn a_backup_may_be_made_since_an_earlier_one(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    fill(&engine, tree, 0);
    let (first, second) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let environment = Environment::real();
    let backup = |folder: &Path, since: Option<&Path>| {
        engine.backup(&BackupRequest { environment: &environment, folder, since, operation: None })
    };
    let earlier = backup(first.path(), None).expect("a backup is made");
    fill(&engine, tree, 500);
    let later = backup(second.path(), Some(first.path())).expect("a second one is made");
    assert!(later.moment > earlier.moment, "{later:?} after {earlier:?}");
}

/// The contract's emulation restores its own backups into any engine, byte for byte.
pub fn a_backup_is_restored_into_an_empty_engine(subject: &Subject) {
    let engine = subject.open();
    let trees = ["one", "two", "empty"].map(|name| engine.tree(name));
    fill(&engine, trees[0], 0);
    fill(&engine, trees[1], 100);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let environment = Environment::real();
    let request =
        BackupRequest { environment: &environment, folder: folder.path(), since: None, operation: None };
    emulate::backup(&*engine, &request).expect("a backup is made");
    // Commits after the moment of the backup are not in it.
    let mut writer = engine.writer();
    writer.delete_range(trees[0], &KeyRange::all(), BlockingMode::MayBlock).expect("the range is deleted");
    writer.commit(Durability::Logged).expect("the commit succeeds");

    let other = subject.beside();
    let entries = emulate::restore_backup(&*other, &environment, folder.path()).expect("it is restored");
    assert_eq!(entries, 1_000);
    for (name, from) in [("one", 0_u32), ("two", 100)] {
        let tree = other.find_tree(name).expect("the tree is restored");
        let found = other.reader().get(tree, &(from + 42).to_be_bytes(), BlockingMode::MayBlock);
        assert_eq!(found.expect("it is read").as_deref(), Some([(from + 42) as u8; 300].as_slice()));
    }
    assert!(other.find_tree("empty").is_some());
    let refused = emulate::restore_backup(&*other, &environment, folder.path()).expect_err("it has trees");
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

/// A byte of a backup that is another, or its end that is missing, is told and never put into a store.
pub fn a_damaged_backup_of_the_emulation_is_refused(subject: &Subject) {
    let engine = subject.open();
    fill(&engine, engine.tree("t"), 0);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let environment = Environment::real();
    let request =
        BackupRequest { environment: &environment, folder: folder.path(), since: None, operation: None };
    emulate::backup(&*engine, &request).expect("a backup is made");
    let path = folder.path().join("trees.backup");
    let whole = std::fs::read(&path).expect("the backup is a file");
    let restore = || {
        let other = subject.beside();
        let outcome = emulate::restore_backup(&*other, &environment, folder.path());
        outcome.map_err(|error| error.kind())
    };
    for at in [17, 40, whole.len() / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        std::fs::write(&path, &damaged).expect("the file is written");
        assert_eq!(restore(), Err(ErrorKind::Corrupt), "byte {at}");
    }
    std::fs::write(&path, &whole[..whole.len() - 20]).expect("the file is written");
    assert_eq!(restore(), Err(ErrorKind::Corrupt));
    let mut newer = whole;
    newer[8] = 77;
    std::fs::write(&path, &newer).expect("the file is written");
    assert_eq!(restore(), Err(ErrorKind::InvalidInput));
    std::fs::remove_file(&path).expect("the file is removed");
    assert_eq!(restore(), Err(ErrorKind::InvalidInput));
}
