//! Payloads of log records: round trip, golden bytes, hostile bytes.

use pando_environment::{Random, SeededRandom};
use pando_storage::{Change, Merges, TreeId};

use super::{
    CommitWriter, read_commit, read_create_tree, read_drop_tree, write_create_tree, write_drop_tree,
};
use crate::base::FormatError;

const MAX: &[u8] = b"\x02\x02\0\0\0mx";

fn example() -> Vec<u8> {
    let mut writer = CommitWriter::with_capacity(64);
    writer.group(TreeId::new(300), 2);
    writer.write(b"key", Change::Put(b"value"));
    writer.write(b"gone", Change::Delete);
    writer.group(TreeId::new(2), 2);
    writer.write(b"", Change::Put(b""));
    writer.write(b"max", Change::Merge(Merges::decode(MAX).unwrap()));
    writer.finish()
}

#[test]
fn a_commit_comes_back_in_its_order() {
    let payload = example();
    let mut writes = Vec::new();
    let outcome = read_commit::<FormatError>(&payload, |tree, key, value| {
        writes.push((tree.get(), key, value));
        Ok(())
    });
    outcome.unwrap();
    let max = Change::Merge(Merges::decode(MAX).unwrap());
    let first = [(300, &b"key"[..], Change::Put(b"value")), (300, b"gone", Change::Delete)];
    assert_eq!(writes, [&first[..], &[(2, b"", Change::Put(b"")), (2, b"max", max)]].concat());
}

/// The bytes of docs/data-file.md: a change here is a change of the format.
#[test]
fn golden_a_commit_and_a_tree() {
    assert_eq!(
        example(),
        b"\xAC\x02\x02\x06key\x05value\x09gone\0\x02\x02\0\0\x07max\x01\x07\x02\x02\0\0\0mx"
    );
    let options = [("a".to_owned(), "b".to_owned())];
    assert_eq!(write_create_tree(TreeId::new(3), "name", &options), b"\x03\x04name\x01\x01a\x01b");
    assert_eq!(write_drop_tree(TreeId::new(3)), b"\x03");
}

#[test]
fn a_write_that_is_nothing_known_is_refused() {
    let read = |payload: &[u8]| read_commit::<FormatError>(payload, |_, _, _| Ok(()));
    assert_eq!(read(b"\x02\x01\x03k\x00"), Ok(()));
    assert!(read(b"\x02\x01\x03k\x02").is_err(), "neither a delete nor merges");
    assert!(read(b"\x02\x01\x03k\x01\x00").is_err(), "merges of nothing");
    assert!(read(b"\x02\x01\x03k\x01\x01\x01").is_err(), "a sum without a number");
}

#[test]
fn trees_come_back() {
    let options = vec![("a".to_owned(), "b".to_owned())];
    let payload = write_create_tree(TreeId::new(3), "ümlaut", &options);
    assert_eq!(read_create_tree(&payload), Ok((TreeId::new(3), "ümlaut".to_owned(), options)));
    assert_eq!(read_drop_tree(&write_drop_tree(TreeId::new(9))), Ok(TreeId::new(9)));
}

#[test]
fn changed_bytes_never_panic() {
    let random = SeededRandom::new(6);
    let payload = example();
    for _ in 0..5_000 {
        let mut changed = payload.clone();
        let at = random.next_u64() as usize % changed.len();
        changed[at] = random.next_u64() as u8;
        changed.truncate(1 + random.next_u64() as usize % changed.len());
        let _commit = read_commit::<FormatError>(&changed, |_, _, _| Ok(()));
        let _create = read_create_tree(&changed);
        let _drop = read_drop_tree(&changed);
    }
}
