//! The tree catalog: round trip, golden bytes, hostile bytes.

use pando_environment::{Random, SeededRandom};
use pando_storage::{CommitTimestamp, Lsn, TreeId};

use crate::base::KeySpan;

use super::{DeletedRanges, StoredPartition, StoredState, StoredTree, decode, encode};

fn example() -> Vec<StoredTree> {
    let partition =
        |lower: &[u8], persisted| StoredPartition { lower: lower.into(), persisted: Lsn::new(persisted) };
    let tree = |id, name: &str, state| StoredTree {
        id: TreeId::new(id),
        state,
        name: name.to_owned(),
        options: vec![("pageSize".to_owned(), "8KB".to_owned())],
        root: None,
        entries: 0,
        content_bytes: 0,
        reach: 0,
        partitions: vec![partition(b"", 9), partition(b"m", 300)],
        ranges: DeletedRanges::default().with_all(
            [KeySpan::all()].iter(),
            CommitTimestamp::new(8),
            Lsn::new(8),
        ),
    };
    vec![tree(1, "first", StoredState::Live), tree(7, "", StoredState::Dropped)]
}

#[test]
fn a_catalog_comes_back() {
    let bytes = encode(&example());
    let trees = decode(&bytes).unwrap();
    assert_eq!(trees.len(), 2);
    assert_eq!(
        (trees[1].id, trees[1].state, trees[1].partitions.len()),
        (TreeId::new(7), StoredState::Dropped, 2)
    );
    assert_eq!(encode(&trees), bytes);
}

/// The bytes of docs/data-file.md: a change here is a change of the format.
#[test]
fn golden_a_catalog_of_one_tree() {
    let mut trees = example();
    trees.truncate(1);
    let expected = [
        &[1_u8, 1][..], // version, trees
        &[1, 0],        // number, state
        b"\x05first",
        b"\x01\x08pageSize\x038KB",      // one option
        &[0, 0, 0, 0],                   // no root, entries, content bytes, reach
        &[2, 0, 9, 1, b'm', 0xAC, 0x02], // two partitions
        &[8, 1, 0, 0, 1, 8],             // a range delete of everything, in record 8
    ]
    .concat();
    assert_eq!(encode(&trees), expected);
}

#[test]
fn changed_bytes_never_panic() {
    let random = SeededRandom::new(5);
    let bytes = encode(&example());
    for _ in 0..5_000 {
        let mut changed = bytes.clone();
        let at = random.next_u64() as usize % changed.len();
        changed[at] = random.next_u64() as u8;
        changed.truncate(1 + random.next_u64() as usize % changed.len());
        let _result = decode(&changed);
    }
}
