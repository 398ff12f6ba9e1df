//! Pending slices: the messages that inner nodes hold for a child. A flush takes them down with the child, or
//! merges some of them with newly buffered messages.
//!
//! 1. Before the children of a node change, all slices that will be read are read at once ([`NextBlocks`]).
//! 2. Slices are merged with the arriving messages. Versions that no snapshot needs are left out.
//! 3. The messages buffered for all children are written as one run.

use std::sync::Arc;

use pando_storage::BlockingMode;

use crate::error::BetreeError;
use crate::tree::flush::Flush;
use crate::tree::flush_policy::{ChildAction, slices_to_merge};
use crate::tree::flush_read_ahead::NextBlocks;
use crate::tree::messages::{ENTRY_BYTES, Messages, Span};
use crate::tree::node::{Child, InnerNode, Part};
use crate::tree::run_writer::RunWriter;
use crate::tree::slice::{Slice, Slices, blocks_of_slice};

/// The bytes of messages in slices that are read ahead on each level of the way. Both bounds hold: this
/// number, and this part of the memory limit. Further slices are read when the step visits them.
const AHEAD_BYTES_MAX: usize = 4 << 20;
const AHEAD_DIVISOR: usize = 16;

/// Bytes of messages that compress to about a unit of the device.
const SMALL_SLICE_BYTES: usize = 8 << 10;

/// The messages that are buffered for a child, and the index of the child's part in the new node.
pub(crate) struct BufferedMessages<'m> {
    pub(crate) part: usize,
    pub(crate) messages: PendingMessages<'m>,
}

/// The messages for a child: as they arrived, or merged with slices.
pub(crate) enum PendingMessages<'m> {
    Arrived(Span<'m>),
    Merged(Messages),
}

impl PendingMessages<'_> {
    pub(crate) fn span(&self) -> Span<'_> {
        match self {
            PendingMessages::Arrived(span) => *span,
            PendingMessages::Merged(messages) => messages.span(),
        }
    }
}

impl Flush<'_> {
    /// Reads all blocks that the actions need, at once.
    pub(crate) fn read_ahead(
        &mut self,
        node: &InnerNode,
        arriving: &[Span<'_>],
        actions: &[ChildAction],
    ) -> Result<(), BetreeError> {
        let blocks = self.input.blocks;
        let (mut ahead, mut bytes) = (NextBlocks::default(), 0);
        let bytes_max = AHEAD_BYTES_MAX.min(blocks.cache().limit() as usize / AHEAD_DIVISOR);
        for (at, action) in actions.iter().enumerate() {
            let slices = node.slices(at);
            let taken = match action {
                ChildAction::Keep => 0,
                ChildAction::Buffer => self.merge_count(slices, arriving[at], node.height()),
                ChildAction::Flush => slices.len(),
            };
            for slice in &slices[..taken] {
                bytes += pending_bytes(slice);
                if bytes <= bytes_max {
                    ahead.slices.push(slice);
                }
            }
            match &node.children()[at] {
                Child::Leaf(leaf) if *action == ChildAction::Flush => ahead.directories.push(leaf.directory),
                Child::Inner(slot) if *action == ChildAction::Flush => ahead.nodes.push(slot),
                _ => {}
            }
        }
        blocks.read_next_blocks(&ahead)?;
        blocks.read_slices(&ahead.slices, &mut self.pages_ahead)
    }

    /// The messages that are flushed to a child: those that arrive, and all slices.
    pub(crate) fn merge_with_slices<'m>(
        &mut self,
        slices: &[Arc<Slice>],
        arriving: Span<'m>,
    ) -> Result<PendingMessages<'m>, BetreeError> {
        if slices.is_empty() {
            return Ok(PendingMessages::Arrived(arriving));
        }
        let blocks = self.input.blocks;
        let ahead = &mut self.pages_ahead;
        let merged =
            Messages::merge(arriving, slices, blocks, ahead, self.input.retained, &mut self.dropped)?;
        for slice in slices {
            let index = blocks.slice_index(slice, BlockingMode::MayBlock)?;
            self.replaced.push(blocks_of_slice(slice, index));
        }
        Ok(PendingMessages::Merged(merged))
    }

    /// The messages of a new slice of a child. The slices that are merged with it are taken out.
    pub(crate) fn merge_into_new_slice<'m>(
        &mut self,
        slices: &mut Slices,
        arriving: Span<'m>,
        height: u8,
    ) -> Result<PendingMessages<'m>, BetreeError> {
        let older = slices.split_off(self.merge_count(slices, arriving, height));
        let newest = std::mem::replace(slices, older);
        self.merge_with_slices(&newest, arriving)
    }

    /// The number of a child's newest slices that are merged with the arriving messages.
    fn merge_count(&self, slices: &[Arc<Slice>], arriving: Span<'_>, height: u8) -> usize {
        let sizes: Vec<usize> = slices.iter().map(|slice| pending_bytes(slice)).collect();
        let small = SMALL_SLICE_BYTES.min(self.pending_target(height) / 8);
        slices_to_merge(&sizes, arriving.bytes(), small)
    }

    /// Writes the messages buffered for children as one run.
    pub(crate) fn write_run(
        &mut self,
        parts: &mut [Part],
        buffered: Vec<BufferedMessages<'_>>,
    ) -> Result<(), BetreeError> {
        if buffered.is_empty() {
            return Ok(());
        }
        let mut writer = RunWriter::new(self.input.blocks, self.input.tree, self.input.settings);
        let added = buffered.iter().try_for_each(|buffered| writer.add(buffered.messages.span()));
        let slices = added.and_then(|()| writer.finish());
        self.run_extents.extend(writer.written());
        for (buffered, slice) in buffered.iter().zip(slices?) {
            self.figures.slices += 1;
            self.figures.slice_entries += slice.entries();
            parts[buffered.part].slices.insert(0, Arc::new(slice));
        }
        Ok(())
    }
}

/// The size of a slice, measured as messages are.
pub(crate) fn pending_bytes(slice: &Slice) -> usize {
    let bytes = slice.entries().saturating_mul(ENTRY_BYTES as u64).saturating_add(slice.in_page_bytes());
    // Counters come from disk: wrong ones must not overflow a sum.
    bytes.min(1 << 40) as usize
}
