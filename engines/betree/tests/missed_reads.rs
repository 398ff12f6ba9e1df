//! Reads that must not block: each refusal names the missed read. Once its bytes are there, the same read is
//! answered.

use std::path::Path;
use std::sync::Arc;

use pando_betree::{Betree, Options};
use pando_environment::{AlignedBuffer, Environment};
use pando_storage::{
    Begin, BlockingMode, Durability, Engine, ErrorKind, StorageError, Transaction, TreeId, TreeOptions,
};

const KEYS: u32 = 3_000;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn value(number: u32) -> Vec<u8> {
    format!("the value of {number}").into_bytes()
}

fn open(folder: &Path) -> Arc<Betree> {
    let entries = [("pageSize", "1KB"), ("leafSize", "8KB")];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = Options::default().with_entries(&entries).expect("the options are possible");
    Betree::open(&Environment::real(), folder, options).expect("the store opens")
}

/// A store whose tree lies on disk, opened anew with an empty cache.
fn cold(folder: &Path) -> (Arc<Betree>, TreeId) {
    let engine = open(folder);
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("a tree can be made");
    let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
    for number in 0..KEYS {
        writer.put(tree, &key(number), &value(number)).expect("writers write");
    }
    writer.commit(Durability::Synced).expect("commits succeed");
    engine.checkpoint().expect("checkpoints succeed");
    engine.close().expect("the store closes");
    drop(engine);
    (open(folder), tree)
}

/// Reads a key from memory, makes the missed reads, and counts them. Nodes are loaded by a blocking read.
fn get(reader: &dyn Transaction, tree: TreeId, number: u32, reads: &mut u32) -> Option<Vec<u8>> {
    for _ in 0..10 {
        let error: StorageError = match reader.get(tree, &key(number), BlockingMode::CachedOnly) {
            Ok(found) => return found.map(|value| value.to_vec()),
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let Some(missed) = error.missed_read() else {
            let blocking_one = reader.get(tree, &key(number), BlockingMode::MayBlock);
            return blocking_one.expect("blocking_one reads are answered").map(|value| value.to_vec());
        };
        let mut buffer = AlignedBuffer::zeroed(missed.length());
        missed.file().read_exact_at(&mut buffer, missed.offset()).expect("the file can be read");
        missed.fulfil(&buffer);
        *reads += 1;
    }
    panic!("{number} was not found after ten reads");
}

#[test]
fn a_read_that_was_missed_and_made_answers_the_next_try() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (engine, tree) = cold(folder.path());
    let reader = engine.begin(Begin::READ).expect("readers begin");
    let mut reads = 0;
    for number in 0..KEYS {
        assert_eq!(get(&*reader, tree, number, &mut reads), Some(value(number)));
    }
    assert!(reads > 50, "blocks were read one by one: {reads}");
    assert!(reads < KEYS / 2, "a block that was read serves its neighbours: {reads}");
    let mut again = 0;
    for number in (0..KEYS).rev() {
        assert_eq!(get(&*reader, tree, number, &mut again), Some(value(number)));
    }
    assert_eq!(again, 0, "all of it is cached now");
}

#[test]
fn bytes_that_fail_their_checks_are_not_taken() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (engine, tree) = cold(folder.path());
    let reader = engine.begin(Begin::READ).expect("readers begin");
    reader.get(tree, &key(0), BlockingMode::MayBlock).expect("blocking_one reads load the nodes");
    let mut refused = 0;
    for number in (0..KEYS).step_by(50) {
        while let Err(error) = reader.get(tree, &key(number), BlockingMode::CachedOnly) {
            let missed = error.missed_read().expect("pages and directories can be read elsewhere");
            let mut buffer = AlignedBuffer::zeroed(missed.length());
            missed.file().read_exact_at(&mut buffer, missed.offset()).expect("the file can be read");
            buffer[missed.length() / 2] ^= 1;
            missed.fulfil(&buffer);
            let again = reader.get(tree, &key(number), BlockingMode::CachedOnly);
            let same = again.expect_err("damaged bytes answer nothing").missed_read().expect("still missing");
            assert_eq!(same.offset(), missed.offset());
            refused += 1;
            buffer[missed.length() / 2] ^= 1;
            missed.fulfil(&buffer);
        }
        let found = reader.get(tree, &key(number), BlockingMode::CachedOnly).expect("it is cached");
        assert_eq!(found.as_deref(), Some(value(number).as_slice()));
    }
    assert!(refused > 10, "{refused}");
}
