//! The reader of one segment's records, which tells the end of the log from damage.

use std::sync::Arc;

use pando_encryption::Vault;
use pando_environment::{EnvironmentError, File};
use pando_storage::Lsn;

use super::RecordProblem;
use super::packed::Encoding;
use super::record::{ALIGNMENT, BOUND_BYTES, HEADER_BYTES, RecordHeader, record_bytes};
use super::segment::{FoundHeader, SEGMENT_HEADER_BYTES, Salt, SegmentHeader};
use crate::base::RecordKind;
use crate::log::lsn_gap::{GAP_GROUPS, Groups};

/// Bytes that are read at once; more where one record needs more.
const WINDOW_BYTES: usize = 1024 * 1024;

/// The header of a segment's file; a file too short for one has none.
pub(super) fn read_header(file: &dyn File) -> Result<FoundHeader, EnvironmentError> {
    let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => Ok(SegmentHeader::decode(&bytes)),
        Err(error) if error.is_past_end() => Ok(FoundHeader::None),
        Err(error) => Err(error),
    }
}

/// A record that has passed its checks.
pub(super) struct ReadRecord<'a> {
    pub(super) lsn: Lsn,
    pub(super) kind: RecordKind,
    encoding: Encoding,
    /// Its payload as it is stored.
    stored: &'a [u8],
    bound: [u8; BOUND_BYTES],
    /// Its checksum, which is the chain of the next record.
    pub(super) checksum: u32,
    /// The start of the next record.
    pub(super) end: u64,
}

/// Room for payloads that are decrypted and decompressed.
#[derive(Default)]
pub(super) struct PayloadRooms {
    unsealed: Vec<u8>,
    unpacked: Vec<u8>,
}

impl<'r> ReadRecord<'r> {
    /// The payload, decrypted and decompressed.
    pub(super) fn payload<'a>(
        &self,
        vault: Option<&Vault>,
        rooms: &'a mut PayloadRooms,
    ) -> Result<&'a [u8], RecordProblem>
    where
        'r: 'a,
    {
        let lsn = self.lsn;
        let packed = match vault {
            None => self.stored,
            Some(vault) => {
                rooms.unsealed.clear();
                rooms.unsealed.extend_from_slice(self.stored);
                let opened = vault.unseal(&self.bound, &mut rooms.unsealed);
                opened.map_err(|_broken| RecordProblem::Seal { lsn })?
            }
        };
        self.encoding.unpack(packed, &mut rooms.unpacked).ok_or(RecordProblem::Payload { lsn })
    }
}

/// A segment that is read from front to back.
pub(super) struct SegmentReader {
    file: Arc<dyn File>,
    number: u64,
    salt: Salt,
    length: u64,
    window: Vec<u8>,
    window_start: u64,
}

impl SegmentReader {
    pub(super) fn new(
        file: Arc<dyn File>,
        header: &SegmentHeader,
    ) -> Result<SegmentReader, EnvironmentError> {
        let length = file.length()?;
        let SegmentHeader { number, salt, .. } = *header;
        Ok(SegmentReader { file, number, salt, length, window: Vec::new(), window_start: 0 })
    }

    /// The length of the file.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// The record at this place, if it has this LSN or one after a gap, and this chain.
    pub(super) fn record(
        &mut self,
        offset: u64,
        lsn: Lsn,
        chain: u32,
    ) -> Result<Option<ReadRecord<'_>>, EnvironmentError> {
        let Some(header) = self.header(offset)? else { return Ok(None) };
        if !header.follows(lsn) || header.chain != chain {
            return Ok(None);
        }
        let (salt, number) = (self.salt, self.number);
        let length = header.length as usize;
        let Some(bytes) = self.bytes(offset, HEADER_BYTES + length)? else { return Ok(None) };
        let stored = &bytes[HEADER_BYTES..];
        if !header.holds(salt, stored) {
            return Ok(None);
        }
        let end = offset + record_bytes(length) as u64;
        let bound = header.bound(number, salt);
        let RecordHeader { lsn, kind, encoding, checksum, .. } = header;
        Ok(Some(ReadRecord { lsn, kind, encoding, stored, bound, checksum, end }))
    }

    /// Searches behind a bad record for a valid one that says that `lsn` was durable before it was written.
    pub(super) fn find_witness(&mut self, offset: u64, lsn: Lsn) -> Result<Option<Lsn>, EnvironmentError> {
        // At most this many records fit behind the place. A greater LSN is invalid, unless it follows a gap.
        let records = (self.length - offset.min(self.length)) / HEADER_BYTES as u64;
        let is_possible = |later: Lsn| {
            later.get() <= lsn.get().saturating_add(records)
                || later.in_group() <= records && later.group() - lsn.group() <= GAP_GROUPS * records
        };
        let mut at = offset + ALIGNMENT as u64;
        while at + HEADER_BYTES as u64 <= self.length {
            if let Some(header) = self.header(at)? {
                let is_later = header.lsn > lsn && is_possible(header.lsn) && header.durable_before() >= lsn;
                if is_later && self.is_whole(at, &header)? {
                    return Ok(Some(header.lsn));
                }
            }
            at += ALIGNMENT as u64;
        }
        Ok(None)
    }

    fn is_whole(&mut self, offset: u64, header: &RecordHeader) -> Result<bool, EnvironmentError> {
        let salt = self.salt;
        let bytes = self.bytes(offset, HEADER_BYTES + header.length as usize)?;
        Ok(bytes.is_some_and(|bytes| header.holds(salt, &bytes[HEADER_BYTES..])))
    }

    fn header(&mut self, offset: u64) -> Result<Option<RecordHeader>, EnvironmentError> {
        Ok(self.bytes(offset, HEADER_BYTES)?.and_then(RecordHeader::decode))
    }

    /// This many bytes from this place on, if the file has them.
    fn bytes(&mut self, offset: u64, count: usize) -> Result<Option<&[u8]>, EnvironmentError> {
        if offset.saturating_add(count as u64) > self.length {
            return Ok(None);
        }
        let is_loaded = offset >= self.window_start
            && offset + count as u64 <= self.window_start + self.window.len() as u64;
        if !is_loaded {
            let wanted = (count.max(WINDOW_BYTES) as u64).min(self.length - offset) as usize;
            self.window.resize(wanted, 0);
            self.file.read_exact_at(&mut self.window, offset)?;
            self.window_start = offset;
        }
        let at = (offset - self.window_start) as usize;
        Ok(Some(&self.window[at..at + count]))
    }
}
