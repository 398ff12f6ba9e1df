//! The stored form of a record's payload: uncompressed, or compressed by LZ4.
//!
//! Commits of many documents repeat field names, and index entries repeat parts of the documents. Compressed
//! they take a quarter to two thirds. A payload that is short, or that does not become shorter by an eighth,
//! is stored uncompressed.
//!
//! Compressed form: `raw length u32`, an LZ4 block without its length before it.

use std::cell::RefCell;

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use super::record::RECORD_BYTES_MAX;

/// A shorter payload is not compressed: the setup costs more than it saves.
const PACKED_MIN: usize = 512;
const LENGTH_BYTES: usize = 4;
/// A small table of LZ4 finds no matches beyond this distance.
const SMALL_TABLE_BYTES: usize = u16::MAX as usize;
/// A longer buffer is freed after use.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// The storage of a payload; the flags of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Encoding {
    Plain = 0,
    Lz4 = 1,
}

impl Encoding {
    pub(super) const fn from_flags(flags: u8) -> Option<Encoding> {
        match flags {
            0 => Some(Encoding::Plain),
            1 => Some(Encoding::Lz4),
            _ => None,
        }
    }

    /// The payload that is stored as these bytes; `None` if they are invalid. `room` is used to decompress.
    pub(super) fn unpack<'a>(self, stored: &'a [u8], room: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        match self {
            Encoding::Plain => Some(stored),
            Encoding::Lz4 => {
                let (length, block) = stored.split_first_chunk::<LENGTH_BYTES>()?;
                let length = u32::from_le_bytes(*length) as usize;
                // An LZ4 block expands at most 255 times.
                if length > RECORD_BYTES_MAX || length / 255 > block.len() {
                    return None;
                }
                room.resize(length, 0);
                let written = lz4_flex::block::decompress_into(block, room).ok()?;
                (written == length).then_some(room.as_slice())
            }
        }
    }
}

/// Whether payloads are compressed; an option of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCompression {
    /// Payloads are stored uncompressed.
    None,
    /// LZ4, for payloads that it makes shorter.
    Lz4,
}

/// A payload that is ready to be appended.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(super) bytes: Vec<u8>,
    pub(super) encoding: Encoding,
}

impl Packed {
    /// Compresses a payload, if that is worth it.
    pub(crate) fn of(payload: Vec<u8>, compression: LogCompression) -> Packed {
        if compression == LogCompression::Lz4
            && (PACKED_MIN..=RECORD_BYTES_MAX).contains(&payload.len())
            && let Some(bytes) = compressed(&payload)
        {
            return Packed { bytes, encoding: Encoding::Lz4 };
        }
        Packed { bytes: payload, encoding: Encoding::Plain }
    }
}

impl Packed {
    /// Bytes of the stored payload.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// Buffers of the compression.
struct Scratch {
    /// One for payloads below 64 KiB, one for longer ones.
    tables: [CompressTable; 2],
    output: Vec<u8>,
}

thread_local! {
    /// One for each thread: clearing tables and zeroing buffers for each commit took a tenth of the
    /// compression time.
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch {
        tables: [CompressTable::small(), CompressTable::large()],
        output: Vec::new(),
    });
}

fn compressed(payload: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(payload.len()).ok()?;
    SCRATCH.with_borrow_mut(|scratch| {
        let Scratch { tables, output } = scratch;
        let room = get_maximum_output_size(payload.len());
        if output.len() < room {
            output.resize(room, 0);
        }
        let table = &mut tables[usize::from(payload.len() >= SMALL_TABLE_BYTES)];
        let block = compress_into_with_table(payload, &mut output[..room], table);
        let packed = block.ok().filter(|written| LENGTH_BYTES + written < payload.len() - payload.len() / 8);
        let bytes = packed.map(|written| [&length.to_le_bytes()[..], &output[..written]].concat());
        if output.len() > KEPT_BYTES_MAX {
            *output = Vec::new();
        }
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &Packed) -> Option<Vec<u8>> {
        packed.encoding.unpack(&packed.bytes, &mut Vec::new()).map(<[u8]>::to_vec)
    }

    #[test]
    fn a_payload_that_becomes_shorter_is_compressed_and_comes_back_as_it_was() {
        let payload: Vec<u8> = (0..3_000_u32).flat_map(|number| (number % 37).to_le_bytes()).collect();
        let packed = Packed::of(payload.clone(), LogCompression::Lz4);
        assert_eq!(packed.encoding, Encoding::Lz4);
        assert!(packed.bytes.len() < payload.len() / 4);
        assert_eq!(unpacked(&packed).as_deref(), Some(&*payload));
        let plain = Packed::of(payload.clone(), LogCompression::None);
        assert_eq!((plain.encoding, &plain.bytes), (Encoding::Plain, &payload));
        assert_eq!(unpacked(&plain).as_deref(), Some(&*payload));
    }

    #[test]
    fn a_payload_that_is_short_or_hardly_becomes_shorter_stays_as_it_is() {
        let noise: Vec<u8> =
            (1..500_u64).flat_map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect();
        for payload in [vec![0; PACKED_MIN - 1], noise] {
            assert_eq!(Packed::of(payload, LogCompression::Lz4).encoding, Encoding::Plain);
        }
    }

    #[test]
    fn a_compressed_payload_has_the_bytes_that_the_format_says() {
        let stored = [5, 0, 0, 0, 0x50, b'h', b'e', b'l', b'l', b'o'];
        assert_eq!(Encoding::Lz4.unpack(&stored, &mut Vec::new()), Some(&b"hello"[..]));
        assert_eq!(Encoding::Lz4 as u8, 1);
        assert_eq!(Encoding::from_flags(1), Some(Encoding::Lz4));
    }

    #[test]
    fn bytes_that_are_no_payload_are_refused_without_room_for_what_they_claim() {
        let mut room = Vec::new();
        assert_eq!(Encoding::Lz4.unpack(&[1, 0], &mut room), None);
        assert_eq!(Encoding::Lz4.unpack(&[255; 40], &mut room), None);
        assert_eq!(Encoding::Lz4.unpack(&[0, 0, 0, 16, 7, 7, 7], &mut room), None);
        assert_eq!(room.capacity(), 0);
        let packed = Packed::of(vec![9; 5_000], LogCompression::Lz4);
        let cut = &packed.bytes[..packed.bytes.len() - 1];
        assert_eq!(packed.encoding.unpack(cut, &mut room), None);
    }
}
