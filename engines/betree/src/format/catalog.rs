//! The tree catalog: every tree of the store, its root, and how far the log has reached each part of it.
//!
//! # Layout
//! ```text
//! u8      format version
//! varint  trees, ascending by number
//! per tree:
//!   varint  number
//!   u8      state: 0 live, 1 dropped (its space is still to be freed)
//!   varint  length of the name, then its bytes (UTF-8)
//!   varint  options; per option: name and value, each with its length before it
//!   u8      root: 0 none (empty tree); else its height + 1 (a leaf has height 0), and its pointer (40 B)
//!           follows
//!   varint  entries, varint bytes of keys and values below the root, varint reach of its large values
//!   varint  root partitions
//!   per partition: lower bound with its length before it (empty for the first), varint persisted LSN
//!   range deletes that are not applied yet: see `range_deletes::encoding`
//! ```
//! *Persisted LSN* of a partition: the tree on disk has every write to the partition's keys up to this log
//! record, and none after it. Replay skips the writes that the tree has. The list of range deletes is cut in
//! the same way. It has those up to the record that it names and none after it, without those that are
//! applied already.

use pando_storage::{KEY_BYTES_MAX, Lsn, TreeId};

use super::directory::decode_pointer;
use super::inner_node::HEIGHT_MAX;
use crate::base::{BlockKind, Pointer};
use crate::base::{FORMAT_VERSION, Fields, FormatError, write_bytes, write_varint};
use crate::range_deletes::DeletedRanges;
use crate::range_deletes::encoding::{read_list, write_list};

const BLOCK: &str = "tree catalog";

/// The life stage of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredState {
    Live = 0,
    Dropped = 1,
}

/// A root partition as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredPartition {
    pub(crate) lower: Box<[u8]>,
    pub(crate) persisted: Lsn,
}

/// The root of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredRoot {
    /// 0 for a leaf.
    pub(crate) height: u8,
    pub(crate) pointer: Pointer,
}

/// A tree as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredTree {
    pub(crate) id: TreeId,
    pub(crate) state: StoredState,
    pub(crate) name: String,
    pub(crate) options: Vec<(String, String)>,
    pub(crate) root: Option<StoredRoot>,
    pub(crate) entries: u64,
    pub(crate) content_bytes: u64,
    pub(crate) reach: u64,
    pub(crate) partitions: Vec<StoredPartition>,
    pub(crate) ranges: DeletedRanges,
}

/// Writes the whole catalog.
pub(crate) fn encode(trees: &[StoredTree]) -> Vec<u8> {
    let mut out = vec![FORMAT_VERSION];
    write_varint(&mut out, trees.len() as u64);
    for tree in trees {
        write_varint(&mut out, u64::from(tree.id.get()));
        out.push(tree.state as u8);
        write_bytes(&mut out, tree.name.as_bytes());
        write_varint(&mut out, tree.options.len() as u64);
        for (name, value) in &tree.options {
            write_bytes(&mut out, name.as_bytes());
            write_bytes(&mut out, value.as_bytes());
        }
        match &tree.root {
            None => out.push(0),
            Some(root) => {
                out.push(root.height + 1);
                out.extend_from_slice(&root.pointer.encode());
            }
        }
        write_varint(&mut out, tree.entries);
        write_varint(&mut out, tree.content_bytes);
        write_varint(&mut out, tree.reach);
        write_varint(&mut out, tree.partitions.len() as u64);
        for partition in &tree.partitions {
            write_bytes(&mut out, &partition.lower);
            write_varint(&mut out, partition.persisted.get());
        }
        write_list(&mut out, &tree.ranges);
    }
    out
}

/// Reads the whole catalog.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<StoredTree>, FormatError> {
    let mut fields = Fields::new(BLOCK, bytes);
    fields.version()?;
    let count = fields.count("tree count", bytes.len())?;
    let mut trees = Vec::<StoredTree>::new();
    for at in 0..count {
        let tree = decode_tree(&mut fields, at)?;
        if trees.last().is_some_and(|last| last.id >= tree.id) {
            return Err(FormatError::Disorder { block: BLOCK, field: "tree", at });
        }
        trees.push(tree);
    }
    fields.finish()?;
    Ok(trees)
}

fn decode_tree(fields: &mut Fields<'_>, at: usize) -> Result<StoredTree, FormatError> {
    let id = TreeId::new(fields.count("tree number", u32::MAX as usize)? as u32);
    let state = match fields.u8("tree state")? {
        0 => StoredState::Live,
        1 => StoredState::Dropped,
        found => return Err(FormatError::Unknown { block: BLOCK, field: "tree state", found: found.into() }),
    };
    let name = decode_text(fields, at, "tree name")?;
    let mut options = Vec::new();
    for _ in 0..fields.count("option count", fields.remaining())? {
        options.push((decode_text(fields, at, "option name")?, decode_text(fields, at, "option value")?));
    }
    let root = match fields.u8("root height")? {
        0 => None,
        above => Some(decode_root(fields, at, above - 1)?),
    };
    let entries = fields.varint("entries")?;
    let content_bytes = fields.varint("content bytes")?;
    let reach = fields.varint("reach")?;
    let partitions = decode_partitions(fields)?;
    let ranges = read_list(fields, BLOCK)?;
    Ok(StoredTree { id, state, name, options, root, entries, content_bytes, reach, partitions, ranges })
}

fn decode_root(fields: &mut Fields<'_>, at: usize, height: u8) -> Result<StoredRoot, FormatError> {
    let pointer = decode_pointer(BLOCK, fields, at)?;
    let expected = if height == 0 { BlockKind::LeafDirectory } else { BlockKind::InnerNode };
    if height > HEIGHT_MAX || pointer.kind() != expected {
        return Err(FormatError::Unknown {
            block: BLOCK,
            field: "block kind of a root",
            found: pointer.kind() as u64,
        });
    }
    Ok(StoredRoot { height, pointer })
}

fn decode_partitions(fields: &mut Fields<'_>) -> Result<Vec<StoredPartition>, FormatError> {
    let count = fields.count("partition count", fields.remaining())?;
    let mut partitions = Vec::<StoredPartition>::new();
    for at in 0..count {
        let lower: Box<[u8]> = fields.sized_bytes("lower bound", KEY_BYTES_MAX)?.into();
        let ordered = match partitions.last() {
            None => lower.is_empty(),
            Some(last) => last.lower < lower,
        };
        if !ordered {
            return Err(FormatError::Disorder { block: BLOCK, field: "partition", at });
        }
        let persisted = Lsn::new(fields.varint("persisted LSN")?);
        partitions.push(StoredPartition { lower, persisted });
    }
    if partitions.is_empty() {
        return Err(FormatError::Truncated { block: BLOCK, field: "partitions" });
    }
    Ok(partitions)
}

fn decode_text(fields: &mut Fields<'_>, at: usize, field: &'static str) -> Result<String, FormatError> {
    let bytes = fields.sized_bytes(field, fields.remaining())?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(FormatError::Disorder { block: BLOCK, field, at }),
    }
}

#[cfg(test)]
mod tests;
