//! Large value writer: writes large values into blocks of their own, before a flush takes their messages down
//! the tree.
//!
//! 1. A value longer than the tree's `largeValueSize` is cut into pieces of at most 1 MiB. They are
//!    compressed and collected until one device write is worthwhile. So no large contiguous space is needed,
//!    and memory is bounded.
//! 2. From then on the message holds a reference. Runs and leaves copy the reference; the value stays in
//!    place.
//!
//! Each value begins at a unit boundary and shares no unit. So it can be freed alone when a flush drops its
//! version, or when its tree is reclaimed. If the flush fails, the caller frees the blocks written here.
//!
//! Large values are written as the first step of a flush, not when a buffer is frozen. So a value that is
//! overwritten in its buffer is never written here, and a flush that fails leaves no state behind.

use std::collections::VecDeque;

use pando_storage::TreeId;

use super::messages::Messages;
use crate::base::{BlockKind, Extent, Pointer, UNIT_BYTES, extents_of};
use crate::error::BetreeError;
use crate::format::content::{Content, LargeReference, PIECE_BYTES};
use crate::options::tree_settings::TreeSettings;
use crate::space::{BlockIndex, ExtentWriter};
use crate::tree::tree_blocks::Blocks;

/// Stored bytes after which pieces are written to the device.
const WRITE_BYTES: u64 = 1 << 20;

/// The large values that a flush wrote.
#[derive(Debug, Default)]
pub(crate) struct LargeValues {
    /// The extents that they take.
    pub(crate) written: Vec<Extent>,
    pub(crate) count: u64,
}

impl LargeValues {
    /// Bytes of the data file that they take.
    pub(crate) fn bytes(&self) -> u64 {
        self.written.iter().map(|extent| (extent.end() - extent.start()) * UNIT_BYTES).sum()
    }
}

/// Writes the large values of messages, and puts references in their place. After an error the extents that
/// were written are free again.
pub(crate) fn write_large_values(
    messages: &mut Messages,
    blocks: &Blocks,
    tree: TreeId,
    settings: TreeSettings,
) -> Result<LargeValues, BetreeError> {
    let mut values = LargeValues::default();
    let is_large = |content: &Content<_>| settings.is_large(content);
    values.count = messages.contents_mut().filter(|content| is_large(content)).count() as u64;
    if values.count == 0 {
        return Ok(values);
    }
    let mut writer = LargeValueWriter::new(blocks, tree, settings);
    let outcome = messages
        .contents_mut()
        .filter(|content| is_large(content))
        .try_for_each(|content| writer.add(content.in_page()))
        .and_then(|()| writer.finish());
    if let Err(error) = outcome {
        writer.written().iter().for_each(|extent| blocks.store().abandon(*extent));
        return Err(error);
    }
    for content in messages.contents_mut().filter(|content| is_large(content)) {
        *content = Content::Large(writer.take(content.in_page().len()));
    }
    values.written = writer.into_written();
    Ok(values)
}

/// See the module's head.
pub(crate) struct LargeValueWriter<'s> {
    blocks: &'s Blocks,
    tree: TreeId,
    settings: TreeSettings,
    /// Pieces that are not written yet.
    extent: Option<ExtentWriter<'s>>,
    pending: Vec<BlockIndex>,
    /// Written pieces of values whose references were not taken yet.
    pieces: VecDeque<Pointer>,
    written: Vec<Extent>,
}

impl<'s> LargeValueWriter<'s> {
    pub(crate) fn new(blocks: &'s Blocks, tree: TreeId, settings: TreeSettings) -> LargeValueWriter<'s> {
        let (pending, pieces, written) = (Vec::new(), VecDeque::new(), Vec::new());
        LargeValueWriter { blocks, tree, settings, extent: None, pending, pieces, written }
    }

    /// Adds a value that is not empty. It is written at the latest by [`finish`](LargeValueWriter::finish).
    pub(crate) fn add(&mut self, value: &[u8]) -> Result<(), BetreeError> {
        assert!(!value.is_empty(), "an empty value is not large");
        for (number, piece) in value.chunks(PIECE_BYTES).enumerate() {
            let (blocks, tree) = (self.blocks, self.tree);
            let extent = self.extent.get_or_insert_with(|| blocks.store().extent_writer(tree));
            if number == 0 {
                extent.next_unit();
            }
            self.pending.push(extent.append(BlockKind::LargeValue, self.settings.compression, piece)?);
            if extent.stored_bytes() >= WRITE_BYTES {
                self.finish()?;
            }
        }
        Ok(())
    }

    /// Writes the pending pieces.
    pub(crate) fn finish(&mut self) -> Result<(), BetreeError> {
        let Some(extent) = self.extent.take() else { return Ok(()) };
        let kept: Vec<_> =
            self.pending.drain(..).map(|block| self.blocks.new_piece(extent.stored(block))).collect();
        let pointers = extent.place()?.finish()?;
        self.written.extend(extents_of(&pointers));
        for (pointer, kept) in pointers.iter().zip(kept) {
            if let Some(kept) = kept {
                self.blocks.keep_page(pointer, kept);
            }
        }
        self.pieces.extend(pointers);
        Ok(())
    }

    /// The reference to the next written value, whose length is given.
    pub(crate) fn take(&mut self, length: usize) -> LargeReference<bytes::Bytes> {
        let pieces: Vec<Pointer> = self.pieces.drain(..length.div_ceil(PIECE_BYTES)).collect();
        LargeReference::of_pieces(&pieces)
    }

    /// The extents written so far, which the caller frees after an error.
    pub(crate) fn written(&self) -> &[Extent] {
        &self.written
    }

    /// All extents that were written.
    pub(crate) fn into_written(self) -> Vec<Extent> {
        self.written
    }
}
