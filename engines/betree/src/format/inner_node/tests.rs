//! Inner nodes: round trip, golden bytes, hostile bytes.

use pando_environment::{Random, SeededRandom};

use super::{StoredChild, StoredInnerNode};
use crate::space::{BlockAddress, BlockKind, Codec, FileId, Generation, Pointer, PointerFields};

fn child(pivot: &[u8], kind: BlockKind) -> StoredChild {
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
    StoredChild { pivot: pivot.into(), pointer: pointer.unwrap(), entries: 300, content_bytes: 5 }
}

fn example() -> StoredInnerNode {
    let children = [&b""[..], b"k", b"m"].map(|pivot| child(pivot, BlockKind::LeafDirectory));
    StoredInnerNode { height: 1, children: children.into() }
}

#[test]
fn a_node_comes_back() {
    let bytes = example().encode();
    let node = StoredInnerNode::decode(&bytes).unwrap();
    assert_eq!((node.height, node.children.len()), (1, 3));
    assert_eq!(node.encode(), bytes);
}

/// The bytes of docs/data-file.md: a change here is a change of the format.
#[test]
fn golden_a_node_of_one_child() {
    let node = StoredInnerNode { height: 2, children: vec![child(b"", BlockKind::InnerNode)] };
    let pointer = node.children[0].pointer.encode();
    let expected = [&[0_u8, 2, 1, 0, 0][..], &[0], &pointer, &[0xAC, 0x02, 5, 0, 0]].concat();
    assert_eq!(node.encode(), expected);
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
