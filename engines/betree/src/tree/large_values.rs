//! Writes large values into blocks of their own, before the messages that bring them go down the tree.
//!
//! 1. A value longer than the tree's `largeValueSize` is cut into pieces of at most 1 MiB, compressed, and collected with its
//!    neighbours until they are worth a call to the device. So room is never wanted in one long stretch, and memory is bounded.
//! 2. Its message has the reference from then on. Runs and leaves take the reference along; the value stays where it is.
//!
//! Each value begins a unit and has its units to itself, so that it is freed by itself: when a merge leaves its version out, or
//! its tree is taken apart. What is written here and then not used (the flush fails) is given back by the caller.
//!
//! It is done as the first step of a flush, not when a buffer is frozen: a value that is overwritten in its buffer is never written
//! here at all, and a flush that fails has nothing to remember.

use std::collections::VecDeque;

use pando_storage::TreeId;

use super::messages::Messages;
use crate::base::{BlockKind, Extent, Pointer, UNIT_BYTES, extents_of};
use crate::error::BetreeError;
use crate::format::content::{Content, LargeReference, PIECE_BYTES};
use crate::options::tree_settings::TreeSettings;
use crate::space::{BlockIndex, ExtentWriter};
use crate::tree::blocks::Blocks;

/// Stored bytes that are written with one call, as long as no piece is longer.
const WRITE_BYTES: u64 = 1 << 20;

/// What was written of large values.
#[derive(Debug, Default)]
pub(crate) struct LargeValues {
    /// The room that they took.
    pub(crate) written: Vec<Extent>,
    pub(crate) count: u64,
}

impl LargeValues {
    /// Bytes of the file that they took.
    pub(crate) fn bytes(&self) -> u64 {
        self.written.iter().map(|extent| (extent.end() - extent.start()) * UNIT_BYTES).sum()
    }
}

/// Puts the large values of messages out of line. After an error nothing of it remains.
pub(crate) fn put_out(
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
    /// Pieces that are written, of values that were not taken yet.
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

    /// Writes what is pending.
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

    /// The reference to the next value, which has so many bytes and is written.
    pub(crate) fn take(&mut self, length: usize) -> LargeReference<bytes::Bytes> {
        let pieces: Vec<Pointer> = self.pieces.drain(..length.div_ceil(PIECE_BYTES)).collect();
        LargeReference::of_pieces(&pieces)
    }

    /// What was written so far, to be given up after an error.
    pub(crate) fn written(&self) -> &[Extent] {
        &self.written
    }

    /// Everything that was written.
    pub(crate) fn into_written(self) -> Vec<Extent> {
        self.written
    }
}
