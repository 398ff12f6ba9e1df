//! An inner node: which child covers which keys.
//!
//! # Layout
//! ```text
//! u8      format version
//! u8      height: 1 above leaves, one more with each level
//! varint  children
//! varint  runs of this node, 0 (reserved)
//! varint  range deletes of this node, 0 (reserved)
//! per child:
//!   varint  length of the pivot, then its bytes; empty for the first child
//!   40 B    pointer: a leaf directory at height 1, else an inner node
//!   varint  entries, varint bytes of keys and values in the whole subtree
//!   varint  pending bytes for this child in the runs, 0 (reserved)
//!   varint  LSN up to which this child has everything, 0 (reserved; see the tree catalog)
//! ```
//! Child `i` covers the keys from its pivot up to the next one.

use super::directory::decode_pointer;
use super::{FORMAT_VERSION, Fields, FormatError, write_bytes, write_varint};
use crate::space::{BlockKind, Pointer};

const BLOCK: &str = "inner node";

/// The greatest height that a decoder accepts: with fanout 2 it covers more leaves than the pointers can address.
pub(crate) const HEIGHT_MAX: u8 = 64;

/// A child as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredChild {
    pub(crate) pivot: Box<[u8]>,
    pub(crate) pointer: Pointer,
    pub(crate) entries: u64,
    pub(crate) content_bytes: u64,
}

/// An inner node as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredInnerNode {
    pub(crate) height: u8,
    pub(crate) children: Vec<StoredChild>,
}

impl StoredInnerNode {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + self.children.len() * (Pointer::ENCODED_BYTES + 32));
        out.extend_from_slice(&[FORMAT_VERSION, self.height]);
        write_varint(&mut out, self.children.len() as u64);
        out.extend_from_slice(&[0, 0]);
        for child in &self.children {
            write_bytes(&mut out, &child.pivot);
            out.extend_from_slice(&child.pointer.encode());
            write_varint(&mut out, child.entries);
            write_varint(&mut out, child.content_bytes);
            out.extend_from_slice(&[0, 0]);
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
        fields.reserved("run count")?;
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
        Ok(StoredInnerNode { height, children })
    }

    /// A node must stand one level below its parent, else a cycle of pointers would lead a reader astray.
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
    let pointer = decode_pointer(BLOCK, fields, at)?;
    let expected = if height == 1 { BlockKind::LeafDirectory } else { BlockKind::InnerNode };
    if pointer.kind() != expected {
        return Err(FormatError::Unknown {
            block: BLOCK,
            field: "block kind of a child",
            found: pointer.kind() as u64,
        });
    }
    let entries = fields.varint("entries of a child")?;
    let content_bytes = fields.varint("content bytes of a child")?;
    fields.reserved("pending bytes")?;
    fields.reserved("LSN of a child")?;
    Ok(StoredChild { pivot, pointer, entries, content_bytes })
}

#[cfg(test)]
mod tests;
