//! Reads of blocks: one device call for exactly the sectors of a block, then checksum, header check and
//! decompression.
//!
//! Several blocks are read with as few calls as possible, one after the other or all at once.
//!
//! A block that fails a check is never returned. The error names the block that was found instead, because a
//! lost or misdirected write has another cause than decay.

use std::ops::Range;

use bytes::Bytes;
use pando_environment::{AlignedBuffer, ReadRange, read_together};
use pando_storage::{DeviceAccount, DeviceReads, TreeId};
use xxhash_rust::xxh3::xxh3_64;

use crate::base::BLOCK_HEADER_BYTES;
use crate::base::{FileId, Pointer};
use crate::memory::ObjectPool;
use crate::space::block_header::BlockHeader;
use crate::space::stored_payload::StoredPayload;
use crate::space::traffic::Passage;
use crate::space::{BlockProblem, BlockStore, SpaceError};

/// A longer buffer is freed after use, in bytes.
const KEPT_BUFFER_BYTES: usize = 2 * 1024 * 1024;

/// Neighbouring blocks are read together up to this many bytes.
const NEIGHBOURS_BYTES_MAX: u64 = 1024 * 1024;

/// Blocks this far apart, in bytes, are still read together: reading the gap costs less than a second call.
const GAP_BYTES_MAX: u64 = 16 * 1024;

/// A range of the file, widened to the file's alignment.
pub(crate) struct Sectors {
    /// The first byte to read.
    pub(crate) start: u64,
    /// The part of them that is the range.
    pub(crate) length: usize,
    /// Where the range lies in them.
    within: Range<usize>,
}

/// Calls to the device, and the bytes that they brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NeighbourReads {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
}

/// The shortest buffer in bytes: enough for most pages.
const BUFFER_BYTES_MIN: usize = 16 * 1024;
/// Longer buffers, in bytes, have a pool of their own. Flushes and long scans use them, and one for each
/// reader would take too much memory.
const SHORT_BYTES_MAX: usize = 64 * 1024;

/// Buffers that blocks are read into. Each is in use while the device reads, so there are as many as
/// concurrent readers.
static BUFFERS: ObjectPool<AlignedBuffer, 128> = ObjectPool::new();
static LONG_BUFFERS: ObjectPool<AlignedBuffer, 4> = ObjectPool::new();

impl BlockStore {
    /// The payload of a block.
    pub(crate) fn read_block(&self, pointer: &Pointer) -> Result<Bytes, SpaceError> {
        self.with_sectors(pointer, pointer_range(pointer), |bytes| {
            self.decompress(pointer, &self.verify(pointer, bytes, Passage::First)?)
        })
    }

    /// Reads a block and gives its payload to `use_payload` as stored, after the checks.
    pub(crate) fn with_stored<T>(
        &self,
        pointer: &Pointer,
        use_payload: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, SpaceError> {
        self.with_sectors(pointer, pointer_range(pointer), |bytes| {
            Ok(use_payload(&self.verify(pointer, bytes, Passage::First)?))
        })
    }

    /// Gives the payloads of several blocks as stored, in their order. Near neighbours, ascending, are read
    /// with one call. Returns the calls and bytes.
    pub(crate) fn read_neighbours(
        &self,
        pointers: &[Pointer],
        mut use_payload: impl FnMut(&Pointer, &[u8]),
    ) -> Result<NeighbourReads, SpaceError> {
        let mut reads = NeighbourReads::default();
        let mut rest = pointers;
        while let Some(first) = rest.first() {
            let (count, range) = neighbours(first, rest);
            let (together, later) = rest.split_at(count);
            self.with_sectors(first, range.clone(), |bytes| {
                self.check_blocks(together, range.start, bytes, |_, pointer, payload| {
                    use_payload(pointer, payload)
                })
            })?;
            rest = later;
            reads.calls += 1;
            reads.bytes += range.end - range.start;
        }
        Ok(reads)
    }

    /// Gives the payloads of several blocks as stored, each with its place among the pointers, in any order.
    /// Near neighbours, ascending, are read with one call. All calls are in flight at once.
    pub(crate) fn read_scattered(
        &self,
        pointers: &[Pointer],
        mut use_payload: impl FnMut(usize, &Pointer, &[u8]),
    ) -> Result<(), SpaceError> {
        if let Some(first) = pointers.first()
            && neighbours(first, pointers).0 == pointers.len()
        {
            // One call suffices: it uses a pooled buffer.
            let mut place = 0;
            let _one_call = self.read_neighbours(pointers, |pointer, payload| {
                use_payload(place, pointer, payload);
                place += 1;
            })?;
            return Ok(());
        }
        let (mut groups, mut ranges) = (Vec::new(), Vec::new());
        let mut first = 0;
        while let Some(pointer) = pointers.get(first) {
            let (count, range) = neighbours(pointer, &pointers[first..]);
            let Sectors { start, length, within } = self.widen(pointer, range)?;
            ranges.push(ReadRange { offset: start, length });
            groups.push((first..first + count, within));
            first += count;
        }
        let mut outcome = Ok(());
        let together = ranges.iter().map(|range| range.length as u64).sum();
        let take = |at: usize, bytes: &[u8]| {
            self.count_read(bytes.len());
            if outcome.is_err() {
                return;
            }
            let (places, within) = &groups[at];
            let start = ranges[at].offset + within.start as u64;
            outcome = self.check_blocks(
                &pointers[places.clone()],
                start,
                &bytes[within.clone()],
                |place, pointer, payload| {
                    use_payload(places.start + place, pointer, payload);
                },
            );
        };
        self.charged(together, || Ok(read_together(self.shared_file(), &ranges, take)?))?;
        outcome
    }

    /// Checks the blocks of one call, whose bytes begin at `start`, and gives their payloads.
    fn check_blocks(
        &self,
        pointers: &[Pointer],
        start: u64,
        bytes: &[u8],
        mut use_payload: impl FnMut(usize, &Pointer, &[u8]),
    ) -> Result<(), SpaceError> {
        for (place, pointer) in pointers.iter().enumerate() {
            let at = (pointer.address().byte_offset() - start) as usize;
            let block = &bytes[at..at + pointer.disk_length() as usize];
            use_payload(place, pointer, &self.verify(pointer, block, Passage::of(place))?);
        }
        Ok(())
    }

    /// Decompresses a checked payload.
    pub(crate) fn decompress(&self, pointer: &Pointer, payload: &[u8]) -> Result<Bytes, SpaceError> {
        let raw = pointer.codec().decompress(payload, pointer.raw_length() as usize);
        raw.ok_or_else(|| self.undecodable(pointer))
    }

    /// The error for a payload that does not decompress.
    pub(crate) fn undecodable(&self, pointer: &Pointer) -> SpaceError {
        self.corrupt(pointer, BlockProblem::Decompression)
    }

    /// Checks a block's bytes against its pointer and returns the payload as compression left it.
    fn verify<'b>(
        &self,
        pointer: &Pointer,
        bytes: &'b [u8],
        passage: Passage,
    ) -> Result<StoredPayload<'b>, SpaceError> {
        let header = BlockHeader::decode(bytes);
        let found = xxh3_64(bytes);
        if found != pointer.checksum() {
            let found_block = header.map_or_else(
                || "no block stands there".to_owned(),
                |header| {
                    let BlockHeader { kind, tree, birth, address, .. } = header;
                    format!("a {kind:?} of {tree} stands there, born {birth:?}, for {address:?}")
                },
            );
            let problem = BlockProblem::Checksum { expected: pointer.checksum(), found, found_block };
            return Err(self.corrupt(pointer, problem));
        }
        let contradiction = match header {
            None => Some("magic"),
            Some(header) if header.kind != pointer.kind() => Some("kind"),
            Some(header) if header.codec != pointer.codec() => Some("codec"),
            Some(header) if header.address != pointer.address() => Some("address"),
            Some(header) if header.birth != pointer.birth() => Some("birth"),
            Some(header) if header.disk_length != pointer.disk_length() => Some("length on disk"),
            Some(header) if header.raw_length != pointer.raw_length() => Some("raw length"),
            Some(_) => None,
        };
        let tree = header.map_or(TreeId::new(0), |header| header.tree);
        self.traffic().read(tree, pointer, passage);
        DeviceAccount::charge(DeviceReads { pages: 1, ..DeviceReads::NONE });
        match contradiction {
            Some(field) => Err(self.corrupt(pointer, BlockProblem::Header { field })),
            None => self.unsealed(pointer, bytes),
        }
    }

    /// The payload of a block whose bytes are as they were written, decrypted where the store is encrypted.
    fn unsealed<'b>(&self, pointer: &Pointer, bytes: &'b [u8]) -> Result<StoredPayload<'b>, SpaceError> {
        let (header, payload) = bytes.split_at(BLOCK_HEADER_BYTES);
        match self.vault() {
            None => Ok(StoredPayload::plain(payload)),
            Some(vault) => {
                let opened = StoredPayload::unsealed(vault, header, payload);
                opened.map_err(|_broken| self.corrupt(pointer, BlockProblem::Seal))
            }
        }
    }

    /// Reads a range of the file, widened to the file's alignment, and gives exactly the range to
    /// `use_bytes`.
    fn with_sectors<T>(
        &self,
        pointer: &Pointer,
        range: Range<u64>,
        use_bytes: impl FnOnce(&[u8]) -> Result<T, SpaceError>,
    ) -> Result<T, SpaceError> {
        let Sectors { start, length, within } = self.widen(pointer, range)?;
        let is_short = length <= SHORT_BYTES_MAX;
        let kept = if is_short { BUFFERS.take() } else { LONG_BUFFERS.take() };
        let mut buffer = kept.unwrap_or_else(|| AlignedBuffer::zeroed(length.max(BUFFER_BYTES_MIN)));
        buffer.ensure_length(length);
        let result = self.read(&mut buffer, start).and_then(|()| use_bytes(&buffer[within]));
        if is_short {
            BUFFERS.put(buffer);
        } else if buffer.capacity() <= KEPT_BUFFER_BYTES {
            LONG_BUFFERS.put(buffer);
        }
        result
    }

    /// The bytes to read for a block. An error if its pointer leads out of the file.
    pub(crate) fn sectors(&self, pointer: &Pointer) -> Result<Sectors, SpaceError> {
        self.widen(pointer, pointer_range(pointer))
    }

    /// The payload, as stored and checked, of a block whose [`sectors`](BlockStore::sectors) the caller has
    /// read.
    pub(crate) fn stored_in<'b>(
        &self,
        pointer: &Pointer,
        sectors: &Sectors,
        bytes: &'b [u8],
    ) -> Result<StoredPayload<'b>, SpaceError> {
        assert_eq!(bytes.len(), sectors.length, "the sectors of a block are read whole");
        self.count_read(bytes.len());
        self.verify(pointer, &bytes[sectors.within.clone()], Passage::First)
    }

    fn widen(&self, pointer: &Pointer, range: Range<u64>) -> Result<Sectors, SpaceError> {
        let file_bytes = self.file_bytes();
        if range.end > file_bytes || pointer.file() != FileId::FIRST {
            return Err(self.corrupt(pointer, BlockProblem::Range { file_bytes }));
        }
        let alignment = self.file().alignment() as u64;
        let start = range.start - range.start % alignment;
        let length = (range.end.next_multiple_of(alignment) - start) as usize;
        let within = (range.start - start) as usize..(range.end - start) as usize;
        Ok(Sectors { start, length, within })
    }

    pub(crate) fn corrupt(&self, pointer: &Pointer, problem: BlockProblem) -> SpaceError {
        SpaceError::Corrupt {
            path: self.folder().join(pointer.file().name()),
            offset: pointer.address().byte_offset(),
            bytes: pointer.disk_length(),
            kind: format!("{:?}", pointer.kind()),
            problem,
        }
    }
}

fn pointer_range(pointer: &Pointer) -> Range<u64> {
    let start = pointer.address().byte_offset();
    start..start + u64::from(pointer.disk_length())
}

/// The number of pointers, from the first on, that one call reads, and the range that they cover.
fn neighbours(first: &Pointer, pointers: &[Pointer]) -> (usize, Range<u64>) {
    let mut range = pointer_range(first);
    let mut count = 1;
    for next in pointers[1..].iter().map(pointer_range) {
        let is_near = next.start >= range.end && next.start - range.end <= GAP_BYTES_MAX;
        if !is_near || next.end - range.start > NEIGHBOURS_BYTES_MAX {
            break;
        }
        range.end = next.end;
        count += 1;
    }
    (count, range)
}
