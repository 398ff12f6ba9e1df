//! Payloads of log records: round trip, golden bytes, hostile bytes.

use pando_environment::{Random, SeededRandom};
use pando_storage::TreeId;

use super::{
    CommitWriter, read_commit, read_create_tree, read_drop_tree, write_create_tree, write_drop_tree,
};
use crate::format::FormatError;

fn example() -> Vec<u8> {
    let mut writer = CommitWriter::with_capacity(64);
    writer.group(TreeId::new(300), 2);
    writer.write(b"key", Some(b"value"));
    writer.write(b"gone", None);
    writer.group(TreeId::new(2), 1);
    writer.write(b"", Some(b""));
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
    assert_eq!(writes, [(300, &b"key"[..], Some(&b"value"[..])), (300, b"gone", None), (2, b"", Some(b""))]);
}

/// The bytes of docs/data-file.md: a change here is a change of the format.
#[test]
fn golden_a_commit_and_a_tree() {
    assert_eq!(example(), b"\xAC\x02\x02\x06key\x05value\x09gone\x02\x01\x00\x00");
    let options = [("a".to_owned(), "b".to_owned())];
    assert_eq!(write_create_tree(TreeId::new(3), "name", &options), b"\x03\x04name\x01\x01a\x01b");
    assert_eq!(write_drop_tree(TreeId::new(3)), b"\x03");
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
