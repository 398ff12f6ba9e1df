//! Copies of a part of the log, while the log goes on: the part that a replay between two records would read.
//!
//! 1. A [`LogHold`] keeps the segments from being recycled.
//! 2. The records are read one by one, as in a replay, up to the last wanted one. That finds its end.
//! 3. Each segment is copied up to its last wanted record. Later records are not in the copy, so its log ends
//!    there.
//!
//! [`adopt`] makes a copy the log of another store: it gives the segments that store's id.

use std::path::Path;
use std::sync::Arc;

use pando_environment::{Access, Environment, EnvironmentError, File, OpenMode};
use pando_storage::Lsn;
use xxhash_rust::xxh3::Xxh3Default;

use super::log_recovery::FOLDER;
use super::reader::{SegmentReader, read_header};
use super::segment::{FoundHeader, SEGMENT_HEADER_BYTES, SegmentHeader, file_name, segment_path};
use super::{Log, LogError, RecordProblem};
use crate::base::LogPosition;
use crate::base::StoreId;

/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// Keeps the log from a record on; see [`Log::hold`].
pub(crate) struct LogHold {
    log: Arc<Log>,
    from: Lsn,
}

impl Drop for LogHold {
    fn drop(&mut self) {
        let mut holds = self.log.holds.lock();
        if let Some(count) = holds.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                holds.remove(&self.from);
            }
        }
    }
}

/// A segment's part in a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopiedSegment {
    /// The number of the segment.
    pub(crate) number: u64,
    /// Bytes that were copied, from the start of the segment.
    pub(crate) bytes: u64,
    /// xxh3-64 of them.
    pub(crate) checksum: u64,
}

/// A segment with the end of its wanted part.
struct Part {
    number: u64,
    file: Arc<dyn File>,
    end: u64,
}

impl Log {
    /// Keeps the segments that a replay from `from` on reads, until the result is dropped. The caller keeps
    /// checkpoints away meanwhile, so that none of these segments is gone already.
    pub(crate) fn hold(self: &Arc<Log>, from: Lsn) -> LogHold {
        *self.holds.lock().entry(from).or_default() += 1;
        LogHold { log: Arc::clone(self), from }
    }

    /// Copies the records from `from` to `to` into a folder, and syncs it. The log is durable up to `to`, and
    /// held.
    pub(crate) fn copy(
        &self,
        environment: &Environment,
        folder: &Path,
        from: LogPosition,
        to: Lsn,
    ) -> Result<Vec<CopiedSegment>, LogError> {
        environment.files().create_dir(folder)?;
        let mut copied = Vec::new();
        for part in self.parts(from, to)? {
            let path = folder.join(file_name(part.number));
            let target = environment.files().open(&path, OpenMode::CreateOrOpen, Access::Buffered)?;
            target.set_length(0)?;
            let checksum = copy_bytes(part.file.as_ref(), target.as_ref(), part.end)?;
            target.sync_data()?;
            copied.push(CopiedSegment { number: part.number, bytes: part.end, checksum });
        }
        environment.files().sync_dir(folder)?;
        Ok(copied)
    }

    /// The segments from `from` on, each with the end of its last record up to `to`.
    fn parts(&self, from: LogPosition, to: Lsn) -> Result<Vec<Part>, LogError> {
        let mut parts = Vec::new();
        let (mut lsn, mut chain) = (from.lsn(), from.chain());
        let mut offset = from.offset().max(SEGMENT_HEADER_BYTES);
        let mut number = from.segment();
        // Even a store without any record has a segment.
        while lsn <= to || parts.is_empty() {
            let (file, header) = self.segment_to_copy(number, lsn)?;
            let is_first = parts.is_empty();
            if !is_first && (header.first != lsn || header.chain != chain) {
                return Err(self.missing(number, lsn));
            }
            let mut reader = SegmentReader::new(Arc::clone(&file), &header)?;
            while lsn <= to
                && let Some(record) = reader.record(offset, lsn, chain)?
            {
                (offset, lsn, chain) = (record.end, record.lsn.next(), record.checksum);
            }
            parts.push(Part { number, file, end: offset });
            (number, offset) = (number + 1, SEGMENT_HEADER_BYTES);
        }
        Ok(parts)
    }

    fn segment_to_copy(&self, number: u64, lsn: Lsn) -> Result<(Arc<dyn File>, SegmentHeader), LogError> {
        let file = self.files.lock().open(number)?;
        match read_header(file.as_ref())? {
            FoundHeader::Valid(header) if header.number == number => Ok((file, header)),
            _ => Err(self.missing(number, lsn)),
        }
    }

    fn missing(&self, number: u64, lsn: Lsn) -> LogError {
        let path = self.files.lock().path(number);
        LogError::Corrupt { path, offset: SEGMENT_HEADER_BYTES, lsn, problem: RecordProblem::NoSegment }
    }
}

/// Copies the first bytes of a file and returns their checksum.
fn copy_bytes(source: &dyn File, target: &dyn File, bytes: u64) -> Result<u64, EnvironmentError> {
    let mut hash = Xxh3Default::new();
    let mut buffer = vec![0; PIECE_BYTES.min(bytes as usize)];
    let mut at = 0;
    while at < bytes {
        let piece = &mut buffer[..(bytes - at).min(PIECE_BYTES as u64) as usize];
        source.read_exact_at(piece, at)?;
        hash.update(piece);
        target.write_all_at(piece, at)?;
        at += piece.len() as u64;
    }
    Ok(hash.digest())
}

/// The defect of a copied segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyProblem {
    /// It is shorter than the manifest says.
    Truncated,
    /// Its checksum is wrong.
    Checksum,
    /// It has no valid header.
    Header,
}

/// Copies a segment of a copy (its file is `source`) into the log of a store folder, under the id of that
/// store.
pub(crate) fn adopt(
    environment: &Environment,
    source: &dyn File,
    segment: CopiedSegment,
    store_folder: &Path,
    store: StoreId,
) -> Result<Result<(), CopyProblem>, EnvironmentError> {
    let folder = store_folder.join(FOLDER);
    environment.files().create_dir(&folder)?;
    if source.length()? < segment.bytes {
        return Ok(Err(CopyProblem::Truncated));
    }
    let header = match read_header(source)? {
        FoundHeader::Valid(header) if header.number == segment.number => header,
        _ => return Ok(Err(CopyProblem::Header)),
    };
    let path = segment_path(&folder, segment.number);
    let target = environment.files().open(&path, OpenMode::CreateOrOpen, Access::Buffered)?;
    target.set_length(0)?;
    if copy_bytes(source, target.as_ref(), segment.bytes)? != segment.checksum {
        return Ok(Err(CopyProblem::Checksum));
    }
    target.write_all_at(&SegmentHeader { store, ..header }.encode(), 0)?;
    target.sync_data()?;
    environment.files().sync_dir(&folder)?;
    Ok(Ok(()))
}
