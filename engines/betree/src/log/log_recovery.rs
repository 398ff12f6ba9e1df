//! Recovery of the log: it reads the records from a position on, finds the end, and continues there.
//!
//! 1. Read the segment of the position record by record. Each must continue LSN and chain.
//! 2. If a record does not, the next segment must begin with exactly that LSN and chain. Reading goes on
//!    there.
//! 3. Otherwise this is the end of the log, a torn tail. If a later record or segment proves that more was
//!    durable, it is damage instead.
//! 4. Sync the last segment, because a killed process leaves records that only the kernel has. Begin a new
//!    segment.

use pando_environment::sync::atomic::AtomicU64;
use std::path::Path;
use std::sync::Arc;

use pando_encryption::Vault;
use pando_environment::{Environment, File};
use pando_storage::{Lsn, StorageError};

use super::appender::Appender;
use super::reader::{PayloadRooms, SegmentReader, read_header};
use super::segment::{FoundHeader, SEGMENT_HEADER_BYTES, Salt, Segment, SegmentHeader};
use super::segment_files::SegmentFiles;
use super::segment_table::{HeaderState, SegmentTable};
use super::{Log, LogError, LogOptions, RecordProblem};
use crate::base::StoreId;
use crate::base::{LogPosition, RecordKind};

/// The folder of the log within the store's folder.
pub(crate) const FOLDER: &str = "wal";

/// Zeros are written in pieces of this many bytes.
const ZEROS_BYTES: u64 = 1 << 20;

/// A record for replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogRecord<'a> {
    pub(crate) lsn: Lsn,
    pub(crate) kind: RecordKind,
    pub(crate) payload: &'a [u8],
    /// Its place, for [`ReadBack`](super::ReadBack).
    pub(crate) place: LogPosition,
}

/// The callback that gets the records while a log is opened.
pub(crate) type Replay<'r> = dyn FnMut(LogRecord<'_>) -> Result<(), StorageError> + 'r;

impl Log {
    /// Begins the log of a new store.
    pub(crate) fn create(
        environment: &Environment,
        store_folder: &Path,
        store: StoreId,
        options: LogOptions,
    ) -> Result<Arc<Log>, LogError> {
        let no_records = &mut |_record: LogRecord<'_>| Ok(());
        Log::open(environment, store_folder, store, options, LogPosition::START, Lsn::ZERO, no_records)
    }

    /// Opens the log of a store. It gives every record from `from` on to `replay`, in order, and continues
    /// after the last. A log that ends before `must_reach` is damaged.
    pub(crate) fn open(
        environment: &Environment,
        store_folder: &Path,
        store: StoreId,
        options: LogOptions,
        from: LogPosition,
        must_reach: Lsn,
        replay: &mut Replay<'_>,
    ) -> Result<Arc<Log>, LogError> {
        let folder = store_folder.join(FOLDER);
        let mut files =
            SegmentFiles::new(environment, folder, options.segment_bytes, options.spare_segments_max)?;
        let vault = options.vault.clone();
        let mut recovery = Recovery::new(&files, store, vault.as_deref(), from)?;
        recovery.read_all(replay)?;
        recovery.check_end(must_reach)?;
        // From here on this process may write to the log.
        let Recovery { mut table, end, last, bytes, .. } = recovery;
        if let Some((file, _)) = &last {
            file.sync_data()?;
        }
        // Else each open without a write would leave another empty segment.
        if let Some((file, salt)) = &last
            && end.offset() == SEGMENT_HEADER_BYTES
            && file.length()? <= files.short_bytes()
        {
            files.remove_unused(&table.numbers())?;
            let segment = continue_segment(&mut files, Arc::clone(file), end)?;
            let appender = Appender::new(store, vault, Arc::clone(&segment), *salt, end, bytes);
            return Log::begin(environment, options, appender, segment, files, table);
        }
        let first = last.as_ref().map_or(from.segment(), |_| end.segment() + 1);
        let (segment, salt, start) = match files.begin(first, &table.numbers()) {
            Ok(segment) => {
                let salt = Salt::new(environment.random().next_u64());
                let start = LogPosition::new(segment.number, SEGMENT_HEADER_BYTES, end.lsn(), end.chain());
                table.begin_segment(start, segment.length, HeaderState::Durable);
                write_header(&segment, SegmentHeader::at(start, store, salt))?;
                (segment, salt, start)
            }
            Err(error @ LogError::NoSpace { .. }) => {
                let (file, salt) = last.ok_or(error)?;
                (continue_segment(&mut files, file, end)?, salt, end)
            }
            Err(error) => return Err(error),
        };
        let appender = Appender::new(store, vault, Arc::clone(&segment), salt, start, bytes);
        Log::begin(environment, options, appender, segment, files, table)
    }

    /// Reads a log as [`open`](Log::open) does, with the keys of an encrypted store, and without a change.
    /// Returns the number of records from `from` on.
    pub(crate) fn check(
        environment: &Environment,
        store_folder: &Path,
        (store, vault): (StoreId, Option<&Vault>),
        from: LogPosition,
        must_reach: Lsn,
    ) -> Result<u64, LogError> {
        let files = SegmentFiles::existing(environment, store_folder.join(FOLDER));
        let mut records = 0;
        let mut recovery = Recovery::new(&files, store, vault, from)?;
        recovery.read_all(&mut |_record| {
            records += 1;
            Ok(())
        })?;
        recovery.check_end(must_reach)?;
        Ok(records)
    }
}

fn write_header(segment: &Segment, header: SegmentHeader) -> Result<(), LogError> {
    segment.file.write_all_at(&header.encode(), 0)?;
    Ok(segment.file.sync_data()?)
}

/// Continues in the last segment. That happens on a full disk, which has no room for a new one; reads go on,
/// and deletes may make room. It also happens if the segment is short and has no record. A torn tail behind
/// the end is overwritten, since the salt stays the same.
fn continue_segment(
    files: &mut SegmentFiles,
    file: Arc<dyn File>,
    end: LogPosition,
) -> Result<Arc<Segment>, LogError> {
    let length = file.length()?;
    let mut at = end.offset();
    while at < length {
        let mut bytes = vec![0; (length - at).min(ZEROS_BYTES) as usize];
        file.read_exact_at(&mut bytes, at)?;
        if bytes.iter().any(|byte| *byte != 0) {
            bytes.fill(0);
            file.write_all_at(&bytes, at)?;
        }
        at += bytes.len() as u64;
    }
    file.sync_data()?;
    files.continue_at(end.segment());
    Ok(Arc::new(Segment { number: end.segment(), file, length, written_to: AtomicU64::new(length) }))
}

struct Recovery<'f> {
    files: &'f SegmentFiles,
    store: StoreId,
    vault: Option<&'f Vault>,
    from: LogPosition,
    numbers: Vec<u64>,
    table: SegmentTable,
    /// The position after the last valid record.
    end: LogPosition,
    /// The segment that was read last, and its salt.
    last: Option<(Arc<dyn File>, Salt)>,
    /// Bytes of the records that were read.
    bytes: u64,
}

impl<'f> Recovery<'f> {
    fn new(
        files: &'f SegmentFiles,
        store: StoreId,
        vault: Option<&'f Vault>,
        from: LogPosition,
    ) -> Result<Recovery<'f>, LogError> {
        let numbers = files.list()?;
        Ok(Recovery {
            files,
            store,
            vault,
            from,
            numbers,
            table: SegmentTable::default(),
            end: from,
            last: None,
            bytes: 0,
        })
    }

    fn read_all(&mut self, replay: &mut Replay<'_>) -> Result<(), LogError> {
        let Some((mut file, mut header)) = self.first_segment()? else { return Ok(()) };
        self.keep_older()?;
        let offset = self.from.offset().max(SEGMENT_HEADER_BYTES);
        self.end = LogPosition::new(self.from.segment(), offset, self.from.lsn(), self.from.chain());
        loop {
            let mut reader = SegmentReader::new(Arc::clone(&file), &header)?;
            self.table.begin_segment(self.end, reader.length(), HeaderState::Durable);
            self.read_segment(&mut reader, replay)?;
            self.last = Some((file, header.salt));
            match self.next_segment()? {
                Some((next_file, next)) => {
                    self.end =
                        LogPosition::new(next.number, SEGMENT_HEADER_BYTES, self.end.lsn(), self.end.chain());
                    (file, header) = (next_file, next);
                }
                None => {
                    let (offset, lsn) = (self.end.offset(), self.end.lsn());
                    return match reader.find_witness(offset, lsn)? {
                        Some(witness) => Err(self.corrupt(RecordProblem::DamagedBefore { witness })),
                        None => Ok(()),
                    };
                }
            }
        }
    }

    /// Keeps the segments before the position unread, because the older superblock may lead to them. A
    /// segment that does not reach up to the position was released before, and a crash has undone its
    /// removal.
    fn keep_older(&mut self) -> Result<(), LogError> {
        let mut older = Vec::new();
        let mut number = self.from.segment();
        while let Some((file, header)) = self.segment(number - 1)? {
            number -= 1;
            let start = LogPosition::new(number, SEGMENT_HEADER_BYTES, header.first, header.chain);
            older.push((start, file.length()?));
        }
        for (start, length) in older.into_iter().rev() {
            self.table.begin_segment(start, length, HeaderState::Durable);
        }
        Ok(())
    }

    fn read_segment(&mut self, reader: &mut SegmentReader, replay: &mut Replay<'_>) -> Result<(), LogError> {
        let mut rooms = PayloadRooms::default();
        while let Some(record) = reader.record(self.end.offset(), self.end.lsn(), self.end.chain())? {
            let place = self.end;
            let begins_at = place.offset();
            self.bytes += record.end - begins_at;
            self.end = LogPosition::new(self.end.segment(), record.end, record.lsn.next(), record.checksum);
            self.table.advance(self.end);
            let (lsn, kind) = (record.lsn, record.kind);
            let payload = match record.payload(self.vault, &mut rooms) {
                Ok(payload) => payload,
                Err(problem) => return Err(self.problem(self.end.segment(), begins_at, problem)),
            };
            replay(LogRecord { lsn, kind, payload, place })
                .map_err(|source| LogError::Replay { lsn, source })?;
        }
        Ok(())
    }

    /// The segment in which replay begins; `None` if no record was ever logged.
    fn first_segment(&self) -> Result<Option<(Arc<dyn File>, SegmentHeader)>, LogError> {
        let number = self.from.segment();
        if let Some(found) = self.segment(number)? {
            return Ok(Some(found));
        }
        if self.from == LogPosition::START {
            // The log is empty, if no later segment has a record.
            return match self.later_segment(number)? {
                None => Ok(None),
                Some(next) => Err(self.corrupt(RecordProblem::MissingBefore { next })),
            };
        }
        Err(self.corrupt(RecordProblem::NoSegment))
    }

    /// The segment that continues at the end, if there is one. A segment that begins later is damage.
    fn next_segment(&self) -> Result<Option<(Arc<dyn File>, SegmentHeader)>, LogError> {
        let number = self.end.segment() + 1;
        match self.segment(number)? {
            Some((file, header)) if header.first == self.end.lsn() && header.chain == self.end.chain() => {
                Ok(Some((file, header)))
            }
            Some((_, header)) => Err(self.corrupt(RecordProblem::MissingBefore { next: header.first })),
            None => match self.later_segment(number)? {
                None => Ok(None),
                Some(next) => Err(self.corrupt(RecordProblem::MissingBefore { next })),
            },
        }
    }

    /// The first record of a segment with a higher number.
    fn later_segment(&self, number: u64) -> Result<Option<Lsn>, LogError> {
        for later in self.numbers.iter().filter(|later| **later > number) {
            if let Some((_, header)) = self.segment(*later)? {
                return Ok(Some(header.first));
            }
        }
        Ok(None)
    }

    /// The segment of this number, if its file exists and its header is valid.
    fn segment(&self, number: u64) -> Result<Option<(Arc<dyn File>, SegmentHeader)>, LogError> {
        if !self.numbers.contains(&number) {
            return Ok(None);
        }
        let file = self.files.open(number)?;
        match read_header(file.as_ref())? {
            FoundHeader::Valid(header) if header.number != number => Ok(None),
            FoundHeader::Valid(header) if header.store != self.store => {
                Err(self.problem(number, 0, RecordProblem::OtherStore))
            }
            FoundHeader::Valid(header) => Ok(Some((file, header))),
            FoundHeader::OtherVersion(found) => {
                Err(self.problem(number, 0, RecordProblem::Version { found }))
            }
            FoundHeader::None => Ok(None),
        }
    }

    fn check_end(&self, must_reach: Lsn) -> Result<(), LogError> {
        if self.end.lsn() <= must_reach {
            return Err(self.corrupt(RecordProblem::EndsEarly { synced_to: must_reach }));
        }
        Ok(())
    }

    fn corrupt(&self, problem: RecordProblem) -> LogError {
        self.problem(self.end.segment(), self.end.offset(), problem)
    }

    fn problem(&self, segment: u64, offset: u64, problem: RecordProblem) -> LogError {
        LogError::Corrupt { path: self.files.path(segment), offset, lsn: self.end.lsn(), problem }
    }
}
