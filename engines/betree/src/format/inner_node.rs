//! An inner node: its children with the keys they cover, and the slices of runs that are pending for each
//! child.
//!
//! # Layout
//! ```text
//! u8      format version
//! u8      height: 1 above leaves, one more with each level
//! varint  children
//! varint  slices of all children together
//! varint  range deletes of this node, 0 (reserved)
//! per child:
//!   varint  length of the pivot, then its bytes; empty for the first child
//!   40 B    pointer: a leaf directory at height 1, else an inner node
//!   varint  entries, varint bytes of keys and values in the whole subtree, without the slices of this node
//!   varint  reach of the subtree's large values, in units (`content`), without these slices
//!   varint  slices, newest first; per slice:
//!     40 B    pointer of the slice's index
//!     varint  entries, varint bytes of keys and values, varint those of them that stand in its pages
//!     varint  reach of its large values
//!     varint  oldest timestamp, varint newest timestamp − oldest
//! ```
//! Child `i` covers the keys from its pivot up to the next one:
//!
//! ```text
//!  pivots    ""               "g"              "p"
//!  child     0: keys < "g"    1: "g" .. "p"    2: keys ≥ "p"
//!  slices    [9][4]           [9]              -                  newest first
//! ```

use pando_storage::CommitTimestamp;

use super::directory::decode_pointer;
use crate::base::{BlockKind, Pointer};
use crate::base::{FORMAT_VERSION, Fields, FormatError, write_bytes, write_varint};

const BLOCK: &str = "inner node";

/// The greatest height that a decoder accepts. With fanout 2 such a tree has more leaves than pointers can
/// address.
pub(crate) const HEIGHT_MAX: u8 = 64;

/// A slice, as its node stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredSlice {
    pub(crate) index: Pointer,
    pub(crate) entries: u64,
    pub(crate) content_bytes: u64,
    /// Bytes of keys, values and references as they stand in its pages.
    pub(crate) in_page_bytes: u64,
    pub(crate) reach: u64,
    pub(crate) oldest: CommitTimestamp,
    pub(crate) newest: CommitTimestamp,
}

/// A child as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredChild {
    pub(crate) pivot: Box<[u8]>,
    pub(crate) pointer: Pointer,
    pub(crate) entries: u64,
    pub(crate) content_bytes: u64,
    pub(crate) reach: u64,
    /// Newest first.
    pub(crate) slices: Vec<StoredSlice>,
}

/// An inner node as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredInnerNode {
    pub(crate) height: u8,
    pub(crate) children: Vec<StoredChild>,
}

impl StoredInnerNode {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let slices: usize = self.children.iter().map(|child| child.slices.len()).sum();
        let pointers = self.children.len() + slices;
        let mut out = Vec::with_capacity(16 + pointers * (Pointer::ENCODED_BYTES + 32));
        out.extend_from_slice(&[FORMAT_VERSION, self.height]);
        write_varint(&mut out, self.children.len() as u64);
        write_varint(&mut out, slices as u64);
        out.push(0);
        for child in &self.children {
            write_bytes(&mut out, &child.pivot);
            out.extend_from_slice(&child.pointer.encode());
            write_varint(&mut out, child.entries);
            write_varint(&mut out, child.content_bytes);
            write_varint(&mut out, child.reach);
            write_varint(&mut out, child.slices.len() as u64);
            for slice in &child.slices {
                out.extend_from_slice(&slice.index.encode());
                write_varint(&mut out, slice.entries);
                write_varint(&mut out, slice.content_bytes);
                write_varint(&mut out, slice.in_page_bytes);
                write_varint(&mut out, slice.reach);
                write_varint(&mut out, slice.oldest.get());
                write_varint(&mut out, slice.newest.get() - slice.oldest.get());
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<StoredInnerNode, FormatError> {
        let mut fields = Fields::new(BLOCK, bytes);
        fields.version()?;
        let height = fields.u8("height")?;
        if !(1..=HEIGHT_MAX).contains(&height) {
            let limit = u64::from(HEIGHT_MAX);
            return Err(FormatError::OutOfRange {
                block: BLOCK,
                field: "height",
                found: height.into(),
                limit,
            });
        }
        let count = fields.count("child count", bytes.len() / Pointer::ENCODED_BYTES)?;
        if count == 0 {
            return Err(FormatError::Truncated { block: BLOCK, field: "children" });
        }
        let slices = fields.count("slice count", bytes.len() / Pointer::ENCODED_BYTES)?;
        fields.reserved("range delete count")?;
        let mut children = Vec::<StoredChild>::with_capacity(count);
        for at in 0..count {
            let child = decode_child(&mut fields, at, height)?;
            let ordered = match children.last() {
                None => child.pivot.is_empty(),
                Some(last) => last.pivot < child.pivot,
            };
            if !ordered {
                return Err(FormatError::Disorder { block: BLOCK, field: "pivot", at });
            }
            children.push(child);
        }
        fields.finish()?;
        let limit = children.iter().map(|child| child.slices.len()).sum::<usize>() as u64;
        if limit != slices as u64 {
            let found = slices as u64;
            return Err(FormatError::OutOfRange { block: BLOCK, field: "slice count", found, limit });
        }
        Ok(StoredInnerNode { height, children })
    }

    /// A node must be one level below its parent, else a cycle of pointers could trap a reader.
    pub(crate) fn check_height(self, expected: u8) -> Result<StoredInnerNode, FormatError> {
        if self.height == expected {
            return Ok(self);
        }
        let (found, limit) = (u64::from(self.height), u64::from(expected));
        Err(FormatError::OutOfRange { block: BLOCK, field: "height", found, limit })
    }
}

fn decode_child(fields: &mut Fields<'_>, at: usize, height: u8) -> Result<StoredChild, FormatError> {
    let pivot = fields.sized_bytes("pivot", fields.remaining())?.into();
    let expected = if height == 1 { BlockKind::LeafDirectory } else { BlockKind::InnerNode };
    let pointer = decode_pointer_of(fields, at, expected, "block kind of a child")?;
    let entries = fields.varint("entries of a child")?;
    let content_bytes = fields.varint("content bytes of a child")?;
    let reach = fields.varint("reach of a child")?;
    let count = fields.count("slices of a child", fields.remaining() / Pointer::ENCODED_BYTES)?;
    let slices = (0..count).map(|_| decode_slice(fields, at)).collect::<Result<_, _>>()?;
    Ok(StoredChild { pivot, pointer, entries, content_bytes, reach, slices })
}

fn decode_slice(fields: &mut Fields<'_>, at: usize) -> Result<StoredSlice, FormatError> {
    let index = decode_pointer_of(fields, at, BlockKind::RunIndex, "block kind of a slice")?;
    let entries = fields.varint("entries of a slice")?;
    let content_bytes = fields.varint("content bytes of a slice")?;
    let in_page_bytes = fields.varint("bytes in pages of a slice")?;
    let reach = fields.varint("reach of a slice")?;
    let oldest = fields.varint("oldest time of a slice")?;
    let found = fields.varint("newest time of a slice")?;
    let Some(newest) = oldest.checked_add(found) else {
        let limit = u64::MAX - oldest;
        return Err(FormatError::OutOfRange { block: BLOCK, field: "newest time of a slice", found, limit });
    };
    let (oldest, newest) = (CommitTimestamp::new(oldest), CommitTimestamp::new(newest));
    Ok(StoredSlice { index, entries, content_bytes, in_page_bytes, reach, oldest, newest })
}

fn decode_pointer_of(
    fields: &mut Fields<'_>,
    at: usize,
    kind: BlockKind,
    field: &'static str,
) -> Result<Pointer, FormatError> {
    let pointer = decode_pointer(BLOCK, fields, at)?;
    if pointer.kind() == kind {
        return Ok(pointer);
    }
    Err(FormatError::Unknown { block: BLOCK, field, found: pointer.kind() as u64 })
}

#[cfg(test)]
mod tests;
