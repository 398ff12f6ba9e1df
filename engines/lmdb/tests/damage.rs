//! Damaged pages: a check tells each of them and reads on, and a store whose records are damaged is refused.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::fs;
use std::path::{Path, PathBuf};

use pando_environment::{Environment, SeededRandom};
use pando_lmdb::{LmdbEngine, LmdbOptions};
use pando_storage::{
    Begin, CheckReport, CheckRequest, Durability, Engine, ErrorKind, StorageError, TreeId, TreeOptions,
};

const PAGE_BYTES: usize = 4_096;
const ENTRIES: u32 = 3_000;
const LARGE: u32 = 7;

struct Damaged {
    folder: tempfile::TempDir,
    whole: Vec<u8>,
    trees: [TreeId; 2],
}

fn open(folder: &Path) -> Result<LmdbEngine, StorageError> {
    LmdbEngine::open(&Environment::real(), folder, LmdbOptions::default())
}

/// A closed store of two trees with branch pages, leaves and a value that has pages of its own.
fn store() -> Damaged {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).unwrap();
    let trees = ["first", "second"].map(|name| engine.create_tree(name, &TreeOptions::default()).unwrap());
    for tree in trees {
        let mut writer = engine.begin(Begin::WRITE).unwrap();
        for number in 0..ENTRIES {
            let bytes = if number == LARGE { 50_000 } else { 40 };
            writer.put(tree, &number.to_be_bytes(), &vec![number as u8; bytes]).unwrap();
        }
        writer.commit(Durability::Logged).unwrap();
    }
    let report = engine.check(&CheckRequest::default()).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let bytes = u64::from(ENTRIES - 1) * 44 + 50_004;
    assert_eq!((report.trees, report.entries, report.bytes), (2, 2 * u64::from(ENTRIES), 2 * bytes));
    engine.close().unwrap();
    drop(engine);
    let whole = fs::read(folder.path().join("data.mdb")).unwrap();
    Damaged { folder, whole, trees }
}

impl Damaged {
    fn path(&self) -> PathBuf {
        self.folder.path().join("data.mdb")
    }

    /// The numbers of the pages that hold these bytes.
    fn pages_with(&self, bytes: &[u8]) -> Vec<usize> {
        let pages = self.whole.chunks(PAGE_BYTES).enumerate();
        let has = |page: &[u8]| page.windows(bytes.len()).any(|window| window == bytes);
        pages.filter(|(_, page)| has(page)).map(|(at, _)| at).collect()
    }

    /// The leaf with an entry, as its tree's number, its key and its value follow each other there.
    fn leaf_of(&self, tree: TreeId, number: u32) -> usize {
        let value = [number as u8; 40];
        let entry = [&tree.get().to_be_bytes()[..], &number.to_be_bytes(), &value].concat();
        self.pages_with(&entry)[0]
    }

    /// The file with other bytes at some place of a page.
    fn with(&self, page: usize, at: usize, bytes: &[u8]) {
        let mut damaged = self.whole.clone();
        let at = page * PAGE_BYTES + at;
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        fs::write(self.path(), damaged).unwrap();
    }

    fn check(&self, trees: &[TreeId]) -> CheckReport {
        let engine = open(self.folder.path()).unwrap();
        engine.check(&CheckRequest { trees, ..CheckRequest::default() }).unwrap()
    }
}

#[test]
fn a_check_tells_a_damaged_page_with_its_tree_and_reads_on() {
    let store = store();
    let leaf = store.leaf_of(store.trees[1], 1_000);
    for (at, bytes, word) in [
        (0, &[0; 16][..], "it says to be page 0"),
        (10, &[0xa5, 0xa5], "its kind is"),
        (12, &[0xff, 0xff], "offsets lie outside"),
        (16, &[0xff, 0x0f], "outside of it"),
        (16, &[0x00, 0x00], "outside of it"),
    ] {
        store.with(leaf, at, bytes);
        let report = store.check(&[]);
        assert_eq!(report.problems.len(), 1, "{at}: {report:?}");
        assert!(report.problems[0].starts_with(&format!("second, page {leaf}: ")), "{report:?}");
        assert!(report.problems[0].contains(word), "{at}: {report:?}");
        assert!(report.entries > u64::from(ENTRIES), "the other pages are read: {report:?}");
        let other = store.check(&store.trees[..1]);
        assert!(other.is_sound() && other.entries == u64::from(ENTRIES), "{other:?}");
    }
}

#[test]
fn a_check_tells_keys_in_the_wrong_place_and_values_without_their_pages() {
    let store = store();
    let leaf = store.leaf_of(store.trees[0], 1_500);
    let key = [&store.trees[0].get().to_be_bytes()[..], &1_500_u32.to_be_bytes()].concat();
    let at = store.whole[leaf * PAGE_BYTES..].windows(key.len()).position(|window| window == key).unwrap();
    store.with(leaf, at + 4, &9_u32.to_be_bytes());
    let report = store.check(&[]);
    assert!(report.problems.len() == 1 && report.problems[0].contains("do not ascend"), "{report:?}");

    let large = store.pages_with(&[LARGE as u8; 2_000])[0];
    store.with(large, 10, &[2, 0]);
    let report = store.check(&[]);
    assert!(report.problems.len() == 1 && report.problems[0].contains("a value on page"), "{report:?}");
}

#[test]
fn damage_of_any_page_is_told_or_harmless_and_never_ends_the_process() {
    let store = store();
    let random = SeededRandom::new(5);
    let pages = store.whole.len() / PAGE_BYTES;
    let mut told = 0;
    for _ in 0..120 {
        let page = 2 + random.below(pages as u64 - 2) as usize;
        let bytes: Vec<u8> = (0..random.below(24) + 1).map(|_| random.below(256) as u8).collect();
        store.with(page, random.below(200) as usize, &bytes);
        match open(store.folder.path()) {
            Ok(engine) => {
                let report = engine.check(&CheckRequest::default()).unwrap();
                told += u32::from(!report.is_sound());
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                assert!(error.to_string().contains("restore"), "{error}");
                told += 1;
            }
        }
    }
    assert!(told > 12, "only {told} of 120 were told: the test has tested little");
}

#[test]
fn a_store_whose_records_are_damaged_is_refused_with_the_cure() {
    let store = store();
    for page in store.pages_with(b"\0\0\0\0tree:") {
        store.with(page, 0, &[0xa5; 64]);
        match open(store.folder.path()) {
            // A page of an earlier state, which nobody reads any more.
            Ok(engine) => assert!(engine.check(&CheckRequest::default()).unwrap().is_sound()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                assert!(error.to_string().contains("restore the store from a backup"), "{error}");
                return;
            }
        }
    }
    panic!("no page with records was refused");
}
