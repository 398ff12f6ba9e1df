//! Inner nodes: round trip, golden bytes, hostile bytes.

use pando_environment::{Random, SeededRandom};

use pando_storage::CommitTimestamp;

use super::{StoredChild, StoredInnerNode, StoredSlice};
use crate::base::{BlockAddress, BlockKind, Codec, FileId, Generation, Pointer, PointerFields};

fn pointer(kind: BlockKind) -> Pointer {
    let pointer = Pointer::new(PointerFields {
        file: FileId::FIRST,
        kind,
        codec: Codec::Lz4,
        address: BlockAddress::new(800),
        disk_length: 600,
        raw_length: 700,
        birth: Generation::new(2),
        checksum: 42,
    });
    pointer.unwrap()
}

fn slice(kind: BlockKind) -> StoredSlice {
    let (oldest, newest) = (CommitTimestamp::new(7), CommitTimestamp::new(9));
    let index = pointer(kind);
    StoredSlice { index, entries: 4, content_bytes: 130, in_page_bytes: 90, reach: 6, oldest, newest }
}

fn child(pivot: &[u8], kind: BlockKind) -> StoredChild {
    let pointer = pointer(kind);
    let (pivot, slices) = (pivot.into(), Vec::new());
    StoredChild { pivot, pointer, entries: 300, content_bytes: 5, reach: 8, slices }
}

fn example() -> StoredInnerNode {
    let mut children = [&b""[..], b"k", b"m"].map(|pivot| child(pivot, BlockKind::LeafDirectory));
    children[1].slices = vec![slice(BlockKind::RunIndex); 3];
    StoredInnerNode { height: 1, children: children.into() }
}

#[test]
fn a_node_comes_back() {
    let bytes = example().encode();
    let node = StoredInnerNode::decode(&bytes).unwrap();
    assert_eq!((node.height, node.children.len()), (1, 3));
    assert_eq!(node.children[1].slices, example().children[1].slices);
    assert_eq!(node.encode(), bytes);
}

/// The bytes of docs/data-file.md: a change here is a change of the format.
#[test]
fn golden_a_node_of_one_child_and_one_slice() {
    let mut node = StoredInnerNode { height: 2, children: vec![child(b"", BlockKind::InnerNode)] };
    node.children[0].slices = vec![slice(BlockKind::RunIndex)];
    let expected = [
        &[1_u8, 2, 1, 1, 0][..], // version, height, children, slices, range deletes
        &[0],                    // empty pivot
        &pointer(BlockKind::InnerNode).encode(),
        &[0xAC, 0x02, 5, 8, 1], // entries, content bytes, reach, slices
        &pointer(BlockKind::RunIndex).encode(),
        &[4, 0x82, 0x01, 90, 6, 7, 2], // entries, content bytes, those in pages, reach, oldest time, newest
    ]
    .concat();
    assert_eq!(node.encode(), expected);
}

#[test]
fn a_slice_of_the_wrong_kind_and_a_wrong_count_of_slices_are_refused() {
    let mut node = example();
    node.children[2].slices = vec![slice(BlockKind::RunPage)];
    assert!(StoredInnerNode::decode(&node.encode()).is_err());
    let mut bytes = example().encode();
    assert_eq!(bytes[3], 3);
    bytes[3] = 2;
    assert!(StoredInnerNode::decode(&bytes).is_err());
}

#[test]
fn a_child_of_the_wrong_kind_or_height_is_refused() {
    let mut node = example();
    node.height = 2;
    assert!(StoredInnerNode::decode(&node.encode()).is_err());
    assert!(example().check_height(1).is_ok() && example().check_height(2).is_err());
}

#[test]
fn changed_bytes_never_panic() {
    let random = SeededRandom::new(4);
    let bytes = example().encode();
    for _ in 0..5_000 {
        let mut changed = bytes.clone();
        let at = random.next_u64() as usize % changed.len();
        changed[at] = random.next_u64() as u8;
        changed.truncate(1 + random.next_u64() as usize % changed.len());
        let _result = StoredInnerNode::decode(&changed);
    }
}
