//! The writer of extents: many blocks with one device call, such as the pages of a leaf with their directory.
//!
//! 1. [`append`](ExtentWriter::append) compresses a block into the buffer, at the next grain.
//! 2. [`place`](ExtentWriter::place) allocates one extent, or several fragments where no interval is long
//!    enough and the file cannot grow. From then on every block has its address, header and checksum.
//! 3. [`finish`](PlacedBlocks::finish) writes each fragment with one call, padded to units.
//!
//! A directory needs the addresses of the blocks before it. It can be added as the last block, and the unused
//! part of its reservation is given back. Where several blocks need the addresses of others, their lengths
//! must be known before: [`append_blank`](ExtentWriter::append_blank) reserves their room, and
//! [`fill`](PlacedBlocks::fill) supplies the content.
//!
//! No block is visible before its parent's pointer is. Placed blocks that are dropped unfinished give their
//! extents back.

use std::cell::Cell;

use pando_encryption::SEAL_BYTES;
use pando_environment::AlignedBuffer;
use pando_storage::TreeId;
use xxhash_rust::xxh3::xxh3_64;

use super::allocator::{BlockLength, Fragment, Purpose, block_start};
use super::block_header::BlockHeader;
use super::space_change::extent_of;
use super::traffic::Passage;
use super::{BlockStore, Compression, SpaceError};
use crate::base::{
    BLOCK_BYTES_MAX, BlockKind, Codec, Columns, FileId, GRAIN_BYTES, Generation, Pointer, PointerFields,
    UNIT_BYTES,
};
use crate::base::{BLOCK_HEADER_BYTES, FEATURE_MORE_CODECS};

/// A longer buffer is freed after use, in bytes.
const KEPT_BUFFER_BYTES: usize = 4 * 1024 * 1024;

thread_local! {
    static BUFFER: Cell<Option<AlignedBuffer>> = const { Cell::new(None) };
}

/// The index of an appended block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BlockIndex(usize);

/// Collects blocks; see the [module](self).
pub(crate) struct ExtentWriter<'a> {
    store: &'a BlockStore,
    tree: TreeId,
    birth: Generation,
    purpose: Purpose,
    buffer: Option<AlignedBuffer>,
    /// The end of the last block in the buffer; a multiple of the grain size.
    end: usize,
    blocks: Vec<AppendedBlock>,
    next_begins_unit: bool,
    /// Blank blocks that have no content yet.
    blanks: usize,
}

#[derive(Clone, Copy)]
struct AppendedBlock {
    offset: usize,
    kind: BlockKind,
    codec: Codec,
    disk_length: u32,
    raw_length: u32,
    begins_unit: bool,
}

impl AppendedBlock {
    fn length(&self) -> BlockLength {
        let bytes = u64::from(self.disk_length).next_multiple_of(GRAIN_BYTES);
        BlockLength { bytes, begins_unit: self.begins_unit }
    }
}

impl<'a> ExtentWriter<'a> {
    pub(super) fn new(
        store: &'a BlockStore,
        tree: TreeId,
        birth: Generation,
        purpose: Purpose,
    ) -> ExtentWriter<'a> {
        let buffer = Some(BUFFER.take().unwrap_or_else(|| AlignedBuffer::zeroed(64 * 1024)));
        ExtentWriter {
            store,
            tree,
            birth,
            purpose,
            buffer,
            end: 0,
            blocks: Vec::new(),
            next_begins_unit: false,
            blanks: 0,
        }
    }

    /// Compresses a block and adds it behind the others.
    pub(crate) fn append(
        &mut self,
        kind: BlockKind,
        compression: Compression,
        raw: &[u8],
    ) -> Result<BlockIndex, SpaceError> {
        self.append_rows(kind, compression, raw, None)
    }

    /// Compresses a block that has rows, and adds it behind the others.
    pub(crate) fn append_rows(
        &mut self,
        kind: BlockKind,
        compression: Compression,
        raw: &[u8],
        columns: Option<Columns>,
    ) -> Result<BlockIndex, SpaceError> {
        let block = self.append_block(kind, compression, raw, columns)?;
        self.blocks.push(block);
        Ok(BlockIndex(self.blocks.len() - 1))
    }

    /// Reserves room for an uncompressed block of exactly this length. [`fill`](PlacedBlocks::fill) supplies
    /// its content.
    pub(crate) fn append_blank(&mut self, kind: BlockKind, length: usize) -> Result<BlockIndex, SpaceError> {
        self.blanks += 1;
        self.append(kind, Compression::None, &vec![0; length])
    }

    /// The stored form of an appended block: codec and payload.
    pub(crate) fn stored(&self, block: BlockIndex) -> (Codec, &[u8]) {
        let block = &self.blocks[block.0];
        let buffer = self.buffer.as_ref().expect("a writer keeps its buffer until it is dropped");
        let end = block.offset + block.disk_length as usize - self.store.seal_bytes();
        (block.codec, &buffer[block.offset + BLOCK_HEADER_BYTES..end])
    }

    /// Makes the next block begin a unit of its own, so that it can be freed without the blocks before it.
    pub(crate) fn next_unit(&mut self) {
        self.end = self.end.next_multiple_of(UNIT_BYTES as usize);
        self.next_begins_unit = true;
    }

    /// Bytes that the blocks so far take on disk.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.end as u64
    }

    /// Allocates room for the blocks. Without room the store is unchanged.
    pub(crate) fn place(self) -> Result<PlacedBlocks<'a>, SpaceError> {
        let lengths = self.blocks.iter().map(AppendedBlock::length).collect();
        self.place_lengths(lengths)
    }

    /// Allocates room for the blocks and one more behind them, of at most this raw length.
    pub(crate) fn place_with_directory(
        self,
        directory_raw_bytes_max: usize,
    ) -> Result<PlacedBlocks<'a>, SpaceError> {
        let mut lengths: Vec<BlockLength> = self.blocks.iter().map(AppendedBlock::length).collect();
        let bytes = (BLOCK_HEADER_BYTES + directory_raw_bytes_max + self.store.seal_bytes()) as u64;
        let bytes = bytes.next_multiple_of(GRAIN_BYTES);
        lengths.push(BlockLength { bytes, begins_unit: false });
        self.place_lengths(lengths)
    }

    fn place_lengths(mut self, lengths: Vec<BlockLength>) -> Result<PlacedBlocks<'a>, SpaceError> {
        let fragments = self.store.allocate_for(&lengths, self.purpose)?;
        if self.purpose != Purpose::Checkpoint {
            // After the allocation, so that a block whose birth is at or before a generation is in that
            // generation's map.
            self.birth = self.store.generation();
        }
        let mut placed = PlacedBlocks {
            store: self.store,
            fragments,
            pointers: Vec::with_capacity(lengths.len()),
            lengths,
            writer: None,
        };
        let addresses = placed.addresses();
        for (at, address) in addresses.into_iter().enumerate().take(self.blocks.len()) {
            let block = self.blocks[at];
            placed.pointers.push(self.seal(&block, address / GRAIN_BYTES)?);
        }
        placed.writer = Some(self);
        Ok(placed)
    }

    fn append_block(
        &mut self,
        kind: BlockKind,
        compression: Compression,
        raw: &[u8],
        columns: Option<Columns>,
    ) -> Result<AppendedBlock, SpaceError> {
        if raw.len() > BLOCK_BYTES_MAX {
            return Err(SpaceError::TooLong { bytes: raw.len(), limit: BLOCK_BYTES_MAX });
        }
        let offset = self.end;
        let payload = offset + BLOCK_HEADER_BYTES;
        let seal = self.store.seal_bytes();
        let bound = (payload + compression.bound(raw.len()) + seal).next_multiple_of(UNIT_BYTES as usize);
        let buffer = buffer_of(&mut self.buffer);
        buffer.grow(bound);
        let (codec, stored) = compression.compress_into(raw, columns, &mut buffer[payload..]);
        if codec.is_of_more_codecs() {
            self.store.features().note(FEATURE_MORE_CODECS);
        }
        let end = (payload + stored + seal).next_multiple_of(GRAIN_BYTES as usize);
        buffer[payload + stored..end].fill(0);
        self.end = end;
        let begins_unit = std::mem::take(&mut self.next_begins_unit);
        let disk_length = (BLOCK_HEADER_BYTES + stored + seal) as u32;
        Ok(AppendedBlock { offset, kind, codec, disk_length, raw_length: raw.len() as u32, begins_unit })
    }

    /// Writes the header of a block whose address is known, encrypts its payload where the store is
    /// encrypted, and computes its pointer.
    fn seal(&mut self, block: &AppendedBlock, grain: u64) -> Result<Pointer, SpaceError> {
        let address = crate::base::BlockAddress::new(grain);
        let header = BlockHeader {
            kind: block.kind,
            codec: block.codec,
            tree: self.tree,
            disk_length: block.disk_length,
            birth: self.birth,
            address,
            raw_length: block.raw_length,
        };
        let bytes = &mut buffer_of(&mut self.buffer)[block.offset..block.offset + block.disk_length as usize];
        let (head, rest) = bytes.split_at_mut(BLOCK_HEADER_BYTES);
        head.copy_from_slice(&header.encode());
        if let Some(vault) = self.store.vault() {
            let payload = rest.len() - SEAL_BYTES;
            let (payload, seal) = rest.split_at_mut(payload);
            seal.copy_from_slice(&vault.seal(head, payload));
        }
        let fields = PointerFields {
            file: FileId::FIRST,
            kind: block.kind,
            codec: block.codec,
            address,
            disk_length: block.disk_length,
            raw_length: block.raw_length,
            birth: self.birth,
            checksum: xxh3_64(bytes),
        };
        let length = block.disk_length as usize;
        Pointer::new(fields).map_err(|_reason| SpaceError::TooLong { bytes: length, limit: BLOCK_BYTES_MAX })
    }
}

fn buffer_of(buffer: &mut Option<AlignedBuffer>) -> &mut AlignedBuffer {
    buffer.as_mut().expect("a writer keeps its buffer until it is dropped")
}

impl Drop for ExtentWriter<'_> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take().filter(|buffer| buffer.capacity() <= KEPT_BUFFER_BYTES) {
            BUFFER.set(Some(buffer));
        }
    }
}

/// Blocks that have their addresses and are not written yet. Dropping them gives their room back.
pub(crate) struct PlacedBlocks<'a> {
    store: &'a BlockStore,
    /// Empty once the blocks are written: then no extent is left to give back.
    fragments: Vec<Fragment>,
    pointers: Vec<Pointer>,
    /// Lengths of the blocks, and of the directory if room is reserved for it.
    lengths: Vec<BlockLength>,
    writer: Option<ExtentWriter<'a>>,
}

impl PlacedBlocks<'_> {
    /// The pointer that a block will have.
    pub(crate) fn pointer(&self, index: BlockIndex) -> Pointer {
        self.pointers[index.0]
    }

    /// Supplies the content of a blank block and returns its pointer.
    ///
    /// # Panics
    /// If the content does not have the reserved length.
    pub(crate) fn fill(&mut self, index: BlockIndex, raw: &[u8]) -> Result<Pointer, SpaceError> {
        let address = self.pointers[index.0].address().get();
        let writer = self.writer.as_mut().expect("the writer is there until the blocks are written");
        let block = writer.blocks[index.0];
        assert_eq!(block.raw_length as usize, raw.len(), "a blank block is filled with what was announced");
        assert!(block.codec == Codec::None && writer.blanks > 0, "only a blank block is filled");
        let payload = block.offset + BLOCK_HEADER_BYTES;
        buffer_of(&mut writer.buffer)[payload..payload + raw.len()].copy_from_slice(raw);
        writer.blanks -= 1;
        self.pointers[index.0] = writer.seal(&block, address)?;
        Ok(self.pointers[index.0])
    }

    /// Writes the blocks.
    ///
    /// # Panics
    /// If room is reserved for a directory: call
    /// [`finish_with_directory`](PlacedBlocks::finish_with_directory) then.
    pub(crate) fn finish(mut self) -> Result<Vec<Pointer>, SpaceError> {
        assert_eq!(
            self.lengths.len(),
            self.pointers.len(),
            "room was kept for a directory that is not written"
        );
        self.write()?;
        Ok(std::mem::take(&mut self.pointers))
    }

    /// Adds the directory and writes all blocks. Returns the directory's pointer and those of the blocks.
    ///
    /// # Panics
    /// If no room is reserved, or the directory is longer than the reservation.
    pub(crate) fn finish_with_directory(
        mut self,
        kind: BlockKind,
        compression: Compression,
        raw: &[u8],
    ) -> Result<(Pointer, Vec<Pointer>), SpaceError> {
        assert_eq!(self.lengths.len(), self.pointers.len() + 1, "no room was kept for a directory");
        let address = *self.addresses().last().expect("there is a block at least, the directory");
        let writer = self.writer.as_mut().expect("the writer is there until the blocks are written");
        let block = writer.append_block(kind, compression, raw, None)?;
        let kept = self.lengths.last_mut().expect("there is a block at least, the directory");
        let needed = BlockLength { begins_unit: kept.begins_unit, ..block.length() };
        assert!(
            needed.bytes <= kept.bytes,
            "the directory takes {} bytes, kept were {}",
            needed.bytes,
            kept.bytes
        );
        *kept = needed;
        let directory = writer.seal(&block, address / GRAIN_BYTES)?;
        writer.blocks.push(block);
        self.trim_last_fragment();
        self.write()?;
        Ok((directory, std::mem::take(&mut self.pointers)))
    }

    /// The units of the blocks and of the reservation.
    pub(super) fn reserved_units(&self) -> Vec<std::ops::Range<u64>> {
        self.fragments.iter().map(|fragment| fragment.units.clone()).collect()
    }

    /// The start of each block in the file, in bytes.
    fn addresses(&self) -> Vec<u64> {
        let mut addresses = Vec::with_capacity(self.lengths.len());
        let mut blocks = self.lengths.iter();
        for fragment in &self.fragments {
            let mut end = 0;
            for length in blocks.by_ref().take(fragment.blocks) {
                let start = block_start(end, *length);
                addresses.push(fragment.units.start * UNIT_BYTES + start);
                end = start + length.bytes;
            }
        }
        addresses
    }

    /// Gives back the units behind the last block.
    fn trim_last_fragment(&mut self) {
        let address = *self.addresses().last().expect("there is a block at least");
        let length = self.lengths.last().expect("there is a block at least").bytes;
        let fragment = self.fragments.last_mut().expect("placed blocks have a fragment");
        let end = (address + length).div_ceil(UNIT_BYTES);
        if end < fragment.units.end {
            self.store.abandon(extent_of(end..fragment.units.end));
            fragment.units.end = end;
        }
    }

    fn write(&mut self) -> Result<(), SpaceError> {
        let addresses = self.addresses();
        let mut writer = self.writer.take().expect("blocks are written once");
        assert_eq!(writer.blanks, 0, "every blank block is filled before it is written");
        let blocks = std::mem::take(&mut writer.blocks);
        let mut first = 0;
        for fragment in &self.fragments {
            let units = &fragment.units;
            let bytes = ((units.end - units.start) * UNIT_BYTES) as usize;
            let start = units.start * UNIT_BYTES;
            if self.fragments.len() == 1 {
                // The buffer has the layout of the file.
                let buffer = buffer_of(&mut writer.buffer);
                let used = blocks.last().map_or(0, |block| block.offset + block.length().bytes as usize);
                buffer.grow(bytes);
                buffer[used..bytes].fill(0);
                zero_gaps(buffer, &blocks);
                self.store.write(&buffer[..bytes], start)?;
            } else {
                let mut copy = AlignedBuffer::zeroed(bytes);
                let source = buffer_of(&mut writer.buffer);
                for (block, address) in blocks.iter().zip(&addresses).skip(first).take(fragment.blocks) {
                    let (at, length) = ((address - start) as usize, block.disk_length as usize);
                    copy[at..at + length].copy_from_slice(&source[block.offset..block.offset + length]);
                }
                self.store.write(&copy, start)?;
            }
            for (place, block) in blocks[first..first + fragment.blocks].iter().enumerate() {
                let passage = Passage::of(place);
                self.store.traffic().wrote(writer.tree, block.kind, block.disk_length, passage);
            }
            first += fragment.blocks;
        }
        self.fragments.clear();
        Ok(())
    }
}

/// Zeros the gaps before blocks that begin a unit: the buffer is reused and has bytes of earlier writes
/// there.
fn zero_gaps(buffer: &mut AlignedBuffer, blocks: &[AppendedBlock]) {
    for pair in blocks.windows(2) {
        let end = pair[0].offset + pair[0].length().bytes as usize;
        buffer[end..pair[1].offset].fill(0);
    }
}

impl Drop for PlacedBlocks<'_> {
    fn drop(&mut self) {
        for fragment in self.fragments.drain(..) {
            self.store.abandon(extent_of(fragment.units));
        }
    }
}
