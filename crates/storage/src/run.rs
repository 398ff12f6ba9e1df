//! Runs: entries one behind the other in a scratch file, written once and read in order.
//!
//! # Format
//! ```text
//! payload 0 | header 1 | payload 1 | header 2 | payload 2 | …      the run's owner keeps header 0
//!
//! header: stored bytes u32 | raw bytes u32 | checksum u64          little-endian
//! entry:  key bytes | value bytes · 2 + far | key | value          lengths as LEB128
//! ```
//! 1. Entries gather in a block. A full block is compressed with LZ4, unless that makes it longer.
//! 2. The checksum is of the stored bytes, with the block's place and its raw length as seed. So a block that
//!    landed elsewhere, or that was never written, is found.
//! 3. A block's header stands behind the block before it, so one read brings a payload and the next header.
//! 4. A value longer than a block is *far*: it lies in a second file, and the entry has its place and
//!    checksum. A merge moves the entry and never the value. So readers hold a block each, however long the
//!    documents are.
//!
//! # Not here
//! The order of entries, and which runs there are: `sorter`, `key_set`.

use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::StorageError;
use crate::scratch::{ScratchFile, ScratchSpace};

const HEADER_BYTES: usize = 16;
/// Bytes of a far value's entry: its place, lengths and checksum.
const FAR_BYTES: usize = 24;
/// LZ4 makes bytes at most so many times shorter.
const LZ4_RATIO_MAX: usize = 256;

/// The bytes of a run and of its far values.
pub(crate) struct RunFiles {
    space: Arc<ScratchSpace>,
    blocks: ScratchFile,
    far: Option<Arc<ScratchFile>>,
}

/// Lengths, and the checksum of stored bytes.
#[derive(Clone, Copy, Debug)]
struct Header {
    stored: u32,
    raw: u32,
    checksum: u64,
}

/// The place of a block, from which reading can begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockPlace {
    header: Header,
    offset: u64,
}

/// A run that is written.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    first: BlockPlace,
    end: u64,
    /// The longest block, raw.
    pub block_bytes_max: usize,
}

impl Run {
    /// Bytes of its blocks in the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.end - self.first.offset
    }
}

/// How a run is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLayout {
    /// Raw bytes of a block.
    pub block_bytes: usize,
    /// Bytes that are written at once.
    pub write_bytes: usize,
}

impl Header {
    fn of(stored: &[u8], raw: usize, offset: u64) -> Header {
        let length = |bytes: usize| u32::try_from(bytes).expect("blocks and values are below 4 GiB");
        let raw = length(raw);
        Header { stored: length(stored.len()), raw, checksum: checksum(stored, raw, offset) }
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.stored.to_le_bytes());
        out.extend_from_slice(&self.raw.to_le_bytes());
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Header> {
        let (stored, rest) = bytes.split_first_chunk()?;
        let (raw, rest) = rest.split_first_chunk()?;
        let (checksum, _) = rest.split_first_chunk()?;
        Some(Header {
            stored: u32::from_le_bytes(*stored),
            raw: u32::from_le_bytes(*raw),
            checksum: u64::from_le_bytes(*checksum),
        })
    }

    /// The raw bytes, in `raw`; false if the stored ones are damaged.
    fn unpack(self, stored: &[u8], offset: u64, raw: &mut Vec<u8>) -> bool {
        let length = self.raw as usize;
        if stored.len() != self.stored as usize
            || checksum(stored, self.raw, offset) != self.checksum
            || length > stored.len().saturating_mul(LZ4_RATIO_MAX)
        {
            return false;
        }
        raw.clear();
        if stored.len() == length {
            raw.extend_from_slice(stored);
            return true;
        }
        raw.resize(length, 0);
        lz4_flex::block::decompress_into(stored, raw).is_ok_and(|bytes| bytes == length)
    }
}

fn checksum(stored: &[u8], raw: u32, offset: u64) -> u64 {
    xxh3_64_with_seed(stored, offset.rotate_left(24) ^ u64::from(raw))
}

/// Compresses, where that makes it shorter.
fn pack<'b>(raw: &'b [u8], packed: &'b mut Vec<u8>) -> &'b [u8] {
    packed.resize(lz4_flex::block::get_maximum_output_size(raw.len()), 0);
    match lz4_flex::block::compress_into(raw, packed) {
        Ok(bytes) if bytes < raw.len() => &packed[..bytes],
        Ok(_) | Err(_) => raw,
    }
}

impl RunFiles {
    /// New files.
    pub(crate) fn create(space: &Arc<ScratchSpace>) -> Result<RunFiles, StorageError> {
        Ok(RunFiles { space: Arc::clone(space), blocks: space.create()?, far: None })
    }

    /// Bytes written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.blocks.length() + self.far.as_ref().map_or(0, |far| far.length())
    }

    /// Gives the room of a run back that was merged into another.
    pub(crate) fn free(&self, run: &Run) {
        self.blocks.free(run.first.offset..run.end);
    }

    fn far(&mut self) -> Result<&ScratchFile, StorageError> {
        let far = match self.far.take() {
            Some(far) => far,
            None => Arc::new(self.space.create()?),
        };
        Ok(self.far.insert(far))
    }
}

/// The value of an entry, as a run has it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunValue<'v> {
    Near(&'v [u8]),
    /// The place of a far value.
    Far(&'v [u8]),
}

/// Writes a run.
pub(crate) struct RunWriter {
    layout: RunLayout,
    start: u64,
    raw: Vec<u8>,
    /// Where the key of the last entry lies in `raw`.
    last_key: Range<usize>,
    packed: Vec<u8>,
    unwritten: Vec<u8>,
    first: Option<BlockPlace>,
    block_bytes_max: usize,
}

impl RunWriter {
    /// Begins a run at the end of the files.
    pub(crate) fn new(files: &RunFiles, layout: RunLayout) -> RunWriter {
        RunWriter {
            layout,
            start: files.blocks.length(),
            raw: Vec::with_capacity(layout.block_bytes),
            last_key: 0..0,
            packed: Vec::new(),
            unwritten: Vec::with_capacity(layout.write_bytes + layout.block_bytes),
            first: None,
            block_bytes_max: 0,
        }
    }

    /// Adds an entry. True: it began a block, so this is the moment for whoever keeps an index of blocks, and
    /// for a look whether the work has to end.
    pub(crate) fn push(
        &mut self,
        files: &mut RunFiles,
        key: &[u8],
        value: RunValue<'_>,
    ) -> Result<bool, StorageError> {
        let far;
        let (value, flag) = match value {
            RunValue::Far(place) => (place, 1),
            RunValue::Near(value) if value.len() > self.layout.block_bytes.max(FAR_BYTES) => {
                far = self.write_far(files, value)?;
                (far.as_slice(), 1)
            }
            RunValue::Near(value) => (value, 0),
        };
        let is_full =
            !self.raw.is_empty() && self.raw.len() + key.len() + value.len() > self.layout.block_bytes;
        if is_full {
            self.end_block(files)?;
        }
        let is_first = self.raw.is_empty();
        write_length(key.len() as u64, &mut self.raw);
        write_length(value.len() as u64 * 2 + flag, &mut self.raw);
        self.last_key = self.raw.len()..self.raw.len() + key.len();
        self.raw.extend_from_slice(key);
        self.raw.extend_from_slice(value);
        Ok(is_first)
    }

    /// The last key of the block that is not ended.
    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        (!self.raw.is_empty()).then(|| &self.raw[self.last_key.clone()])
    }

    fn write_far(&mut self, files: &mut RunFiles, value: &[u8]) -> Result<Vec<u8>, StorageError> {
        let file = files.far()?;
        let offset = file.length();
        let stored = pack(value, &mut self.packed);
        let header = Header::of(stored, value.len(), offset);
        file.append(stored)?;
        let mut place = Vec::with_capacity(FAR_BYTES);
        place.extend_from_slice(&offset.to_le_bytes());
        header.write(&mut place);
        // The buffer has grown with the value.
        self.packed = Vec::new();
        Ok(place)
    }

    /// Writes the block. Answers its place.
    pub(crate) fn end_block(&mut self, files: &RunFiles) -> Result<Option<BlockPlace>, StorageError> {
        if self.raw.is_empty() {
            return Ok(None);
        }
        let is_first = self.first.is_none();
        let behind_header = if is_first { 0 } else { HEADER_BYTES };
        let offset = files.blocks.length() + (self.unwritten.len() + behind_header) as u64;
        let stored = pack(&self.raw, &mut self.packed);
        let header = Header::of(stored, self.raw.len(), offset);
        if !is_first {
            header.write(&mut self.unwritten);
        }
        self.unwritten.extend_from_slice(stored);
        let place = BlockPlace { header, offset };
        self.first.get_or_insert(place);
        self.block_bytes_max = self.block_bytes_max.max(self.raw.len());
        self.raw.clear();
        if self.unwritten.len() >= self.layout.write_bytes {
            self.write_out(files)?;
        }
        Ok(Some(place))
    }

    fn write_out(&mut self, files: &RunFiles) -> Result<(), StorageError> {
        files.blocks.append(&self.unwritten)?;
        self.unwritten.clear();
        Ok(())
    }

    /// Ends the run; `None` if it has no entries.
    pub(crate) fn finish(mut self, files: &RunFiles) -> Result<Option<Run>, StorageError> {
        self.end_block(files)?;
        if !self.unwritten.is_empty() {
            self.write_out(files)?;
        }
        debug_assert!(self.first.is_none_or(|first| first.offset == self.start), "no other run lies between");
        let end = files.blocks.length();
        Ok(self.first.map(|first| Run { first, end, block_bytes_max: self.block_bytes_max }))
    }
}

/// Reads a run in order. It stands at an entry, or at the end.
pub(crate) struct RunReader {
    /// The block to read next.
    next: Option<BlockPlace>,
    end: u64,
    block: Vec<u8>,
    /// The entry behind the present one.
    behind: usize,
    key: Range<usize>,
    value: Range<usize>,
    is_far: bool,
    is_at_end: bool,
}

impl RunReader {
    /// Before the first entry of a run.
    pub(crate) fn new(run: &Run) -> RunReader {
        RunReader::at(run, run.first)
    }

    /// Before the first entry of a block of a run.
    pub(crate) fn at(run: &Run, place: BlockPlace) -> RunReader {
        RunReader {
            next: Some(place),
            end: run.end,
            block: Vec::new(),
            behind: 0,
            key: 0..0,
            value: 0..0,
            is_far: false,
            is_at_end: false,
        }
    }

    /// The key of the entry; `None` at the end.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        (!self.is_at_end).then(|| &self.block[self.key.clone()])
    }

    /// The value of the entry.
    pub(crate) fn value(&self) -> RunValue<'_> {
        let value = &self.block[self.value.clone()];
        if self.is_far { RunValue::Far(value) } else { RunValue::Near(value) }
    }

    /// Whether the next step reads a block from the file.
    pub(crate) fn is_at_block_end(&self) -> bool {
        self.behind >= self.block.len()
    }

    /// Steps to the next entry. `stored` is for the bytes of blocks, and shared by all readers of a merge.
    pub(crate) fn step(&mut self, files: &RunFiles, stored: &mut Vec<u8>) -> Result<(), StorageError> {
        if self.is_at_block_end() {
            let Some(place) = self.next.take() else {
                self.is_at_end = true;
                return Ok(());
            };
            self.read_block(files, place, stored)?;
        }
        let Some(entry) = Entry::read(&self.block, self.behind) else {
            return Err(files.blocks.damaged(self.end));
        };
        self.behind = entry.value.end;
        (self.key, self.value, self.is_far) = (entry.key, entry.value, entry.is_far);
        Ok(())
    }

    fn read_block(
        &mut self,
        files: &RunFiles,
        place: BlockPlace,
        stored: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        let BlockPlace { header, offset } = place;
        let damaged = || files.blocks.damaged(offset);
        let length = header.stored as usize;
        let payload_end = offset + u64::from(header.stored);
        let with_header = match payload_end.cmp(&self.end) {
            std::cmp::Ordering::Less => length + HEADER_BYTES,
            std::cmp::Ordering::Equal => length,
            std::cmp::Ordering::Greater => return Err(damaged()),
        };
        stored.resize(with_header, 0);
        files.blocks.read(stored, offset)?;
        if !header.unpack(&stored[..length], offset, &mut self.block) {
            return Err(damaged());
        }
        self.behind = 0;
        self.next = Header::read(&stored[length..])
            .map(|header| BlockPlace { header, offset: payload_end + HEADER_BYTES as u64 });
        Ok(())
    }
}

/// Reads a far value into a buffer.
pub(crate) fn read_far(files: &RunFiles, place: &[u8], value: &mut Vec<u8>) -> Result<(), StorageError> {
    let (Some(file), Some((offset, header))) = (&files.far, place.split_first_chunk()) else {
        return Err(files.blocks.damaged(0));
    };
    let offset = u64::from_le_bytes(*offset);
    let header = Header::read(header).ok_or_else(|| file.damaged(offset))?;
    let mut stored = vec![0; header.stored as usize];
    file.read(&mut stored, offset)?;
    if header.unpack(&stored, offset, value) { Ok(()) } else { Err(file.damaged(offset)) }
}

/// Where an entry lies in its block.
struct Entry {
    key: Range<usize>,
    value: Range<usize>,
    is_far: bool,
}

impl Entry {
    /// `None` where the bytes are no entry: their checksum is right, so only a defect makes them.
    fn read(block: &[u8], start: usize) -> Option<Entry> {
        let mut at = start;
        let key_bytes = usize::try_from(read_length(block, &mut at)?).ok()?;
        let value_bytes = read_length(block, &mut at)?;
        let is_far = value_bytes & 1 == 1;
        let key_end = at.checked_add(key_bytes)?;
        let value_end = key_end.checked_add(usize::try_from(value_bytes / 2).ok()?)?;
        (value_end <= block.len()).then_some(Entry { key: at..key_end, value: key_end..value_end, is_far })
    }
}

fn write_length(mut length: u64, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    out.push(length.to_le_bytes()[0]);
}

fn read_length(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut length = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        length |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(length);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pando_environment::simulated::{Fault, FaultRule};
    use pando_environment::{Environment, Operation, Simulation};

    use super::*;
    use crate::error::ErrorKind;

    const LAYOUT: RunLayout = RunLayout { block_bytes: 256, write_bytes: 600 };

    fn files(simulation: &Simulation) -> RunFiles {
        let space = ScratchSpace::open(&simulation.environment, Path::new("/scratch")).expect("it opens");
        RunFiles::create(&space).expect("there is room")
    }

    fn value(number: usize) -> Vec<u8> {
        // Each tenth is far, each seventh empty.
        let bytes = if number.is_multiple_of(10) { 2_000 } else { number % 7 * 11 };
        (0..bytes).map(|at| (at * number % 251).to_le_bytes()[0]).collect()
    }

    fn write(files: &mut RunFiles, numbers: Range<usize>) -> Result<Run, StorageError> {
        let mut writer = RunWriter::new(files, LAYOUT);
        for number in numbers {
            writer.push(files, &number.to_be_bytes(), RunValue::Near(&value(number)))?;
        }
        Ok(writer.finish(files)?.expect("there are entries"))
    }

    fn read(files: &RunFiles, run: &Run) -> Result<usize, StorageError> {
        let (mut reader, mut stored, mut count) = (RunReader::new(run), Vec::new(), 0);
        let mut far = Vec::new();
        loop {
            reader.step(files, &mut stored)?;
            let Some(key) = reader.key() else { return Ok(count) };
            let number = usize::from_be_bytes(key.try_into().expect("eight bytes"));
            match reader.value() {
                RunValue::Near(near) => assert_eq!(near, value(number)),
                RunValue::Far(place) => {
                    read_far(files, place, &mut far)?;
                    assert_eq!(far, value(number));
                }
            }
            count += 1;
        }
    }

    #[test]
    fn runs_in_one_file_give_back_their_entries_near_and_far() {
        let simulation = Environment::simulated(1);
        let mut files = files(&simulation);
        let first = write(&mut files, 0..300).expect("there is room");
        let second = write(&mut files, 300..301).expect("there is room");
        let third = write(&mut files, 301..900).expect("there is room");
        let counts = [&first, &second, &third].map(|run| read(&files, run).expect("they are there"));
        assert_eq!(counts, [300, 1, 599]);
        files.free(&first);
        assert_eq!(read(&files, &third).expect("they are there"), 599);
        assert!(read(&files, &first).is_err());
    }

    #[test]
    fn damage_of_any_kind_is_found() {
        for (number, fault) in [
            Fault::BitFlip { bit: 77 },
            Fault::BitFlip { bit: 1_999 },
            Fault::LostWrite,
            Fault::MisdirectedWrite { sectors: 1 },
        ]
        .into_iter()
        .enumerate()
        {
            for skip in 0..8 {
                let simulation = Environment::simulated(number as u64);
                simulation.disk.inject(FaultRule::new(Operation::Write, fault).after(skip));
                let mut files = files(&simulation);
                let run = write(&mut files, 0..100).expect("the fault is silent");
                let error = read(&files, &run).expect_err("the bytes are not what was written");
                assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io), "{fault:?}: {error}");
            }
        }
    }
}
