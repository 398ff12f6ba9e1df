//! A door for the fuzzer, which is there only when it is at work (`cfg(fuzzing)`): every decoder of the engine's blocks and records,
//! and what readers do with the result.
//!
//! None may panic or take more memory than a small multiple of what it was given, whatever the bytes; what is decoded and encoded
//! again is the same.

use bytes::Bytes;
use pando_storage::SnapshotTimestamp;

use crate::format::directory::Directory;
use crate::format::filter::KeyHash;
use crate::format::inner_node::StoredInnerNode;
use crate::format::page::Page;
use crate::format::slice_index::SliceIndex;
use crate::format::{FormatError, catalog, record};
use crate::space;
use crate::tree::node::InnerNode;

/// Decodes the bytes in every way that there is.
pub fn decode_all(bytes: &[u8]) {
    page(bytes);
    if let Ok(directory) = Directory::decode(bytes) {
        let again = Directory::decode(&directory.encode()).expect("what was encoded can be decoded");
        assert_eq!(again.pages().len(), directory.pages().len());
        assert!(directory.page_of(bytes) < directory.pages().len());
    }
    if let Ok(index) = SliceIndex::decode(bytes) {
        let again = SliceIndex::decode(&index.encode()).expect("what was encoded can be decoded");
        assert_eq!(again.filter, index.filter);
        assert!(index.pages.page_of(bytes) < index.pages.pages().len());
        let _passes = index.filter.may_contain(KeyHash::of(bytes));
    }
    if let Ok(node) = StoredInnerNode::decode(bytes) {
        let again = StoredInnerNode::decode(&node.encode()).expect("what was encoded can be decoded");
        assert_eq!(again.children.len(), node.children.len());
        let node = InnerNode::from_stored(node);
        assert!(node.pivots().covering(bytes) < node.children().len());
    }
    let _trees = catalog::decode(bytes);
    let _commit = record::read_commit::<FormatError>(bytes, |_, _, _| Ok(()));
    let _created = record::read_create_tree(bytes);
    let _laid_out = record::read_lay_out_tree(bytes);
    let _dropped = record::read_drop_tree(bytes);
    crate::log::unpack_for_fuzzing(bytes);
    space::decode_all(bytes);
    crate::backup::decode_for_fuzzing(bytes);
}

fn page(bytes: &[u8]) {
    let Ok(page) = Page::decode(Bytes::copy_from_slice(bytes)) else { return };
    let _order = page.check_order();
    let mut key = Vec::new();
    for at in 0..page.len() {
        let entry = page.entry(at);
        page.key_into(at, &mut key);
        let content = page.content(&entry);
        let _lengths = (content.in_page().len(), content.value_bytes());
        assert!(page.lower_bound(&key) <= page.len() && page.upper_bound(&key) <= page.len());
    }
    let _found = page.find(&key, SnapshotTimestamp::MAX);
}
