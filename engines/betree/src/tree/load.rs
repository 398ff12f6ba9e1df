//! Tree load: fills an empty tree from sorted entries, with full leaves and the inner nodes over them.
//!
//! # Steps
//! 1. [`push`](TreeLoad::push) writes each leaf when it is full. No pointer leads to it yet and no space map
//!    has it, so its space is free after a crash.
//! 2. [`into_flushed`](TreeLoad::into_flushed) makes the inner nodes, as full as the leaves. The result is
//!    installed like that of a flush. A load that is dropped before then frees its space.
//!
//! Entries have no timestamps: every transaction sees them, and later writes to the tree lie above them.

use pando_storage::{CommitTimestamp, TreeId};

use super::flush::{FlushFigures, Flushed, leaf_parts, nodes_over};
use super::large_value_writer::LargeValueWriter;
use super::leaf_merge::LeafFigures;
use super::leaf_writer::{LeafWriter, NewLeaf, Residency};
use super::node::Child;
use crate::base::{Extent, UNIT_BYTES};
use crate::error::BetreeError;
use crate::format::content::Content;
use crate::options::tree_settings::TreeSettings;
use crate::tree::tree_blocks::Blocks;

const UNTIL_THE_END: &str = "the writers are there until the load ends";

/// See the module's head.
pub(crate) struct TreeLoad<'s> {
    blocks: &'s Blocks,
    settings: TreeSettings,
    /// Both writers are `None` once the load has succeeded: its drop frees nothing then.
    writer: Option<LeafWriter<'s>>,
    large: Option<LargeValueWriter<'s>>,
    large_values: u64,
    tree: TreeId,
    last_key: Option<Vec<u8>>,
    entries: u64,
}

impl<'s> TreeLoad<'s> {
    pub(crate) fn new(blocks: &'s Blocks, tree: TreeId, settings: TreeSettings) -> TreeLoad<'s> {
        let mut writer = LeafWriter::new(blocks, tree, settings);
        writer.begin(&[], settings.leaf_bytes);
        let large = LargeValueWriter::new(blocks, tree, settings);
        let (writer, large) = (Some(writer), Some(large));
        TreeLoad { blocks, settings, writer, large, large_values: 0, tree, last_key: None, entries: 0 }
    }

    /// Adds an entry. Its key is greater than that of the entry before.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), BetreeError> {
        if self.last_key.as_deref().is_some_and(|last| last >= key) {
            return Err(BetreeError::LoadOrder { tree: self.tree, entry: self.entries });
        }
        let writer = self.writer.as_mut().expect(UNTIL_THE_END);
        let mut content = Content::Value(value);
        let reference;
        if self.settings.is_large(&content) {
            let large = self.large.as_mut().expect(UNTIL_THE_END);
            large.add(value)?;
            large.finish()?;
            reference = large.take(value.len());
            content = Content::Large(reference.as_ref());
            self.large_values += 1;
        }
        writer.push(key, CommitTimestamp::ZERO, content, Residency::Leave)?;
        let last = self.last_key.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        self.entries += 1;
        Ok(())
    }

    /// Entries so far.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Ends the load and makes the root over all leaves.
    pub(crate) fn into_flushed(mut self) -> Result<Flushed, BetreeError> {
        let writer = self.writer.as_mut().expect(UNTIL_THE_END);
        let leaves = writer.end()?;
        let entries = writer.entries;
        let mut written = self.writer.take().map(LeafWriter::into_written).unwrap_or_default();
        let large = self.large.take().map(LargeValueWriter::into_written).unwrap_or_default();
        let bytes = |extents: &[Extent]| {
            extents.iter().map(|extent| (extent.end() - extent.start()) * UNIT_BYTES).sum::<u64>()
        };
        let figures = FlushFigures {
            leaves: LeafFigures { leaves: leaves.len() as u64, entries, ..LeafFigures::default() },
            leaf_bytes: bytes(&written),
            large_values: self.large_values,
            large_bytes: bytes(&large),
            ..FlushFigures::default()
        };
        written.extend(large);
        Ok(Flushed { root: root_over(leaves, self.settings.fanout), written, figures, ..Flushed::default() })
    }
}

impl Drop for TreeLoad<'_> {
    fn drop(&mut self) {
        let leaves = self.writer.iter().flat_map(|writer| writer.written());
        for extent in leaves.chain(self.large.iter().flat_map(|large| large.written())) {
            self.blocks.store().abandon(*extent);
        }
    }
}

fn root_over(leaves: Vec<NewLeaf>, fanout: usize) -> Option<Child> {
    let mut parts = leaf_parts(leaves);
    let mut height = 0;
    while parts.len() > 1 {
        height += 1;
        parts = nodes_over(fanout, height, parts);
    }
    parts.pop().map(|part| part.child)
}
