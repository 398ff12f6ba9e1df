//! A segment of the log: a file with a header of 512 bytes, and records after it. Little-endian.
//!
//! ```text
//!   0            8         12     16      32       40     48          56      60     64         72
//!   | "PANDOLOG" | version | zero | store | number | salt | first LSN | chain | zero | checksum | zeros |
//!   | 8 B        | u32     | u32  | 16 B  | u64    | u64  | u64       | u32   | u32  | u64      |
//!
//!   512
//!   | record 41 | record 42 | record 43 | zeros, or old records under another salt ...
//! ```
//!
//! A file with an invalid header, or with the number of another file, is not part of the log: it is a spare.

use pando_environment::sync::atomic::AtomicU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_environment::File;
use pando_storage::Lsn;
use xxhash_rust::xxh3::xxh3_64;

use crate::base::LogPosition;
use crate::base::StoreId;

/// Where the records of a segment begin, in bytes.
pub(super) const SEGMENT_HEADER_BYTES: u64 = 512;

const MAGIC: [u8; 8] = *b"PANDOLOG";
const VERSION: u32 = 1;
const FIELD_BYTES: usize = 64;

/// A random number for each use of a segment's file. It seeds the checksums of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Salt(u64);

impl Salt {
    pub(super) const fn new(number: u64) -> Salt {
        Salt(number)
    }

    pub(super) const fn bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}

/// The content of a segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) store: StoreId,
    pub(super) number: u64,
    pub(super) salt: Salt,
    pub(super) first: Lsn,
    pub(super) chain: u32,
}

/// The bytes in place of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundHeader {
    Valid(SegmentHeader),
    OtherVersion(u32),
    None,
}

impl SegmentHeader {
    /// The header of a segment whose records begin at this position.
    pub(super) fn at(start: LogPosition, store: StoreId, salt: Salt) -> SegmentHeader {
        SegmentHeader { store, number: start.segment(), salt, first: start.lsn(), chain: start.chain() }
    }

    pub(super) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES as usize] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.store.bytes());
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.salt.bytes());
        bytes[48..56].copy_from_slice(&self.first.get().to_le_bytes());
        bytes[56..60].copy_from_slice(&self.chain.to_le_bytes());
        let checksum = xxh3_64(&bytes[..FIELD_BYTES]);
        bytes[FIELD_BYTES..FIELD_BYTES + 8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES as usize]) -> FoundHeader {
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        if bytes[0..8] != MAGIC || xxh3_64(&bytes[..FIELD_BYTES]) != u64_at(FIELD_BYTES) {
            return FoundHeader::None;
        }
        if u32_at(8) != VERSION {
            return FoundHeader::OtherVersion(u32_at(8));
        }
        FoundHeader::Valid(SegmentHeader {
            store: StoreId::new(std::array::from_fn(|at| bytes[16 + at])),
            number: u64_at(32),
            salt: Salt::new(u64_at(40)),
            first: Lsn::new(u64_at(48)),
            chain: u32_at(56),
        })
    }
}

/// The name of a segment's file.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:08}.wal")
}

/// The number of a segment by its file's name; `None` for other files.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".wal")?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}

/// An open segment.
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) file: Arc<dyn File>,
    pub(super) length: u64,
    /// The end of the bytes that were written since the file was made. Overwriting them spares a sync the
    /// change of the file's extents. Only the writer changes it.
    pub(super) written_to: AtomicU64,
}

pub(super) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(file_name(number))
}

#[cfg(test)]
mod tests {
    use pando_environment::{Random, SeededRandom};

    use super::*;

    fn example() -> SegmentHeader {
        SegmentHeader {
            store: StoreId::new(*b"0123456789abcdef"),
            number: 0x11,
            salt: Salt::new(0x2233_4455_6677_8899),
            first: Lsn::new(0x1000),
            chain: 0xaabb_ccdd,
        }
    }

    #[test]
    fn a_segment_header_has_the_bytes_that_the_format_says() {
        let bytes = example().encode();
        let hex: String = bytes[..72].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, include_str!("golden/segment_header.hex").replace('\n', ""));
        assert!(bytes[72..].iter().all(|byte| *byte == 0));
        assert_eq!(SegmentHeader::decode(&bytes), FoundHeader::Valid(example()));
    }

    #[test]
    fn damaged_headers_and_random_bytes_are_none() {
        let random = SeededRandom::new(0x7365_676d);
        for _ in 0..5_000 {
            let mut bytes = example().encode();
            bytes[random.below(72) as usize] ^= 1 << random.below(8);
            assert_eq!(SegmentHeader::decode(&bytes), FoundHeader::None);
            random.fill(&mut bytes);
            assert_eq!(SegmentHeader::decode(&bytes), FoundHeader::None);
        }
        assert_eq!(SegmentHeader::decode(&[0; 512]), FoundHeader::None);
    }

    #[test]
    fn only_names_of_segments_have_a_number() {
        assert_eq!(number_of("00000017.wal"), Some(17));
        assert_eq!(number_of(&file_name(123_456_789_012)), Some(123_456_789_012));
        for name in ["17.wal", "000000017.wal", "0000001x.wal", "00000017.log", "+0000017.wal", ""] {
            assert_eq!(number_of(name), None, "{name}");
        }
    }
}
