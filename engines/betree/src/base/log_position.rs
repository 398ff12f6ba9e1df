//! A position in the log: segment, byte, the LSN of the record there, and the checksum that this record is
//! chained to.

use pando_storage::Lsn;

/// Every number of a position is below this.
const LIMIT: u64 = 1 << 62;

/// A place between two records, at which reading can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPosition {
    segment: u64,
    offset: u64,
    /// The LSN of the next record at this place.
    lsn: Lsn,
    /// Checksum of the record before.
    chain: u32,
}

impl LogPosition {
    /// Bytes of a position on disk.
    pub(crate) const ENCODED_BYTES: usize = 32;

    /// The beginning of a new log.
    pub(crate) const START: LogPosition = LogPosition { segment: 1, offset: 0, lsn: Lsn::new(1), chain: 0 };

    pub(crate) const fn new(segment: u64, offset: u64, lsn: Lsn, chain: u32) -> LogPosition {
        LogPosition { segment, offset, lsn, chain }
    }

    /// The number of the segment.
    pub(crate) const fn segment(self) -> u64 {
        self.segment
    }

    /// The byte in the segment; 0 stands for its first record.
    pub(crate) const fn offset(self) -> u64 {
        self.offset
    }

    /// The next record at this place.
    pub(crate) const fn lsn(self) -> Lsn {
        self.lsn
    }

    /// The checksum of the record before.
    pub(crate) const fn chain(self) -> u32 {
        self.chain
    }

    /// The position as it stands in the superblock: `segment u64, offset u64, lsn u64, chain u32, zero u32`.
    pub(crate) fn encode(self) -> [u8; LogPosition::ENCODED_BYTES] {
        let mut bytes = [0; LogPosition::ENCODED_BYTES];
        bytes[0..8].copy_from_slice(&self.segment.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.lsn.get().to_le_bytes());
        bytes[24..28].copy_from_slice(&self.chain.to_le_bytes());
        bytes
    }

    /// Decodes a position; `None` if it has numbers that no log reaches. Only reading there shows whether the
    /// place exists.
    pub(crate) fn decode(bytes: &[u8; LogPosition::ENCODED_BYTES]) -> Option<LogPosition> {
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let (segment, offset, lsn) = (u64_at(0), u64_at(8), u64_at(16));
        let is_possible =
            segment > 0 && lsn > 0 && [segment, offset, lsn].iter().all(|number| *number < LIMIT);
        is_possible.then(|| LogPosition {
            segment,
            offset,
            lsn: Lsn::new(lsn),
            chain: u32::from_le_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]),
        })
    }
}
