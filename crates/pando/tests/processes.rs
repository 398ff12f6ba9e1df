//! Promises that need a process of their own to be tested: a program that changes its working folder, and two
//! programs with one store.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pandodb::bson::Document;
use pandodb::{Error, Pando, VerifyDepth, doc, verify_store};

/// Where a child finds its folder. Without it, the tests of children do nothing.
const FOLDER: &str = "PANDO_CHILD_FOLDER";
/// Documents whose log takes several files.
const DOCUMENTS: u32 = 1_024;

fn folder_of_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Runs one test of this program as a child.
fn run_child(test: &str, folder: &Path) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args([&format!("processes::{test}"), "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{test}: {status}");
}

/// 8 KiB that no codec makes much smaller.
fn noise(seed: u32) -> String {
    let mut state = seed | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        char::from(b'!' + u8::try_from(state % 90).unwrap())
    };
    (0..8_192).map(next).collect()
}

#[test]
fn child_that_changes_its_working_folder() {
    let Some(folder) = folder_of_child() else { return };
    std::env::set_current_dir(&folder).unwrap();
    let pando = Pando::open("data").unwrap();
    std::env::set_current_dir(folder.join("elsewhere")).unwrap();
    let notes = pando.database("d").collection::<Document>("notes");
    for first in (0..DOCUMENTS).step_by(64) {
        let part = (first..first + 64).map(|id| doc! { "_id": id, "text": noise(id) });
        notes.insert_many(part).run().unwrap();
    }
    pando.close().unwrap();
    let report = verify_store("../data", VerifyDepth::Collections).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
}

#[test]
fn a_store_with_a_relative_path_stays_where_it_is_when_the_working_folder_changes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("elsewhere/data/wal")).unwrap();
    run_child("child_that_changes_its_working_folder", folder.path());
    assert_eq!(std::fs::read_dir(folder.path().join("elsewhere/data/wal")).unwrap().count(), 0);
    let pando = Pando::open(folder.path().join("data")).unwrap();
    let notes = pando.database("d").collection::<Document>("notes");
    assert_eq!(notes.count_documents(doc! {}).run().unwrap(), u64::from(DOCUMENTS));
}

#[test]
fn child_that_opens_the_store_of_its_parent() {
    let Some(folder) = folder_of_child() else { return };
    let refusals =
        [Pando::open(&folder).unwrap_err(), verify_store(&folder, VerifyDepth::Blocks).unwrap_err()];
    for refused in refusals {
        let Error::InUse { folder: told, process, .. } = &refused else { panic!("{refused:?}") };
        assert_eq!((told, *process), (&folder, Some(std::os::unix::process::parent_id())));
        assert!(refused.to_string().contains("end that process first"), "{refused}");
    }
}

#[test]
fn a_store_that_another_process_has_open_is_told_with_its_folder_and_that_process() {
    let folder = tempfile::tempdir().unwrap();
    let _open = Pando::open(folder.path()).unwrap();
    run_child("child_that_opens_the_store_of_its_parent", folder.path());
}
