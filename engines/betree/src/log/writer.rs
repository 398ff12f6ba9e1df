//! The log itself: append, write through, sync, wait.
//!
//! Locks, in the order in which they may be taken:
//!
//! | lock | held |
//! |---|---|
//! | `sync_turn` | never during a device call |
//! | `writer` | while batches are written |
//! | `device_sync` | for one sync of a segment, until its failure stops the log |
//! | `appender` | for the copy of a record, and while a segment is begun |
//! | `files` | during device calls; an append takes it only if no segment is ready |
//! | `table` | for look-ups and changes in memory |
//!
//! The lock of the ready segments is taken within `appender` and `files`, and no other lock within it.

use pando_environment::sync::OnceLock;
use pando_environment::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pando_encryption::Vault;
use pando_environment::sync::{Condvar, Mutex, MutexGuard};
use pando_environment::{Environment, Task, TaskWaker};
use pando_storage::{Lsn, StorageError};

use super::appender::{Appender, Batch};
use super::packed::{Encoding, Packed};
use super::record::{RECORD_BYTES_MAX, Stored};
use super::segment::{SEGMENT_HEADER_BYTES, Salt, Segment};
use super::segment_files::{ReadySegments, SegmentFiles};
use super::segment_table::{HeaderState, SegmentTable};
use super::wakers::{LogWaker, Wakers};
use super::{LogError, sync_task};
use crate::base::LogPosition;
use crate::base::RecordKind;
use crate::base::{LockWaits, WaitFor};

/// Settings of the log. The defaults suit everything but tests.
#[derive(Clone, Debug)]
pub(crate) struct LogOptions {
    /// Length of a segment's file, in bytes. The first ones are shorter. A longer record gets a longer file.
    pub(crate) segment_bytes: u64,
    /// The longest time that a record stays unsynced.
    pub(crate) sync_interval: Duration,
    /// Released segments that are kept for recycling.
    pub(crate) spare_segments_max: usize,
    /// An append writes through by itself beyond this many unwritten bytes.
    pub(crate) unwritten_bytes_max: usize,
    /// In a new file zeros are written this far ahead of the records. A sync that only overwrites is 2.6
    /// times as fast as one that also changes the file's extents (1.1 against 2.9 ms on ext4).
    pub(crate) zero_ahead_bytes: u64,
    /// The data keys, if the store is encrypted.
    pub(crate) vault: Option<Arc<Vault>>,
}

impl LogOptions {
    /// A log that stays within this many bytes: sixteen segments, of 64 KiB to 64 MiB each.
    pub(crate) fn for_budget(bytes: u64, vault: Option<&Arc<Vault>>) -> LogOptions {
        let segment_bytes = (bytes / 16).clamp(64 << 10, 64 << 20);
        LogOptions { segment_bytes, vault: vault.cloned(), ..LogOptions::default() }
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            segment_bytes: 64 << 20,
            sync_interval: Duration::from_millis(100),
            spare_segments_max: 2,
            unwritten_bytes_max: 4 << 20,
            zero_ahead_bytes: 1 << 20,
            vault: None,
        }
    }
}

/// Counts since the log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogStatistics {
    pub(crate) syncs: u64,
    pub(crate) sync_nanos: u64,
    pub(crate) writes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) live_bytes: u64,
    /// Bytes of all its files.
    pub(crate) file_bytes: u64,
}

#[derive(Default)]
struct Counters {
    syncs: AtomicU64,
    sync_nanos: AtomicU64,
    writes: AtomicU64,
    write_bytes: AtomicU64,
}

/// A record that was appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appended {
    /// The LSN of the record before it.
    pub(crate) before: Lsn,
    pub(crate) lsn: Lsn,
    /// Its position, once it is written.
    pub(crate) place: LogPosition,
}

/// The state of writing: the segment that was written last.
struct Writer {
    segment: Arc<Segment>,
}

/// See the [module](self) and the [log](super).
pub(crate) struct Log {
    environment: Environment,
    options: LogOptions,
    pub(super) appender: Mutex<Appender>,
    writer: Mutex<Writer>,
    pub(super) files: Mutex<SegmentFiles>,
    pub(super) ready: Arc<ReadySegments>,
    table: Mutex<SegmentTable>,
    logged: AtomicU64,
    durable: AtomicU64,
    /// Whether a sync is in flight.
    sync_turn: Mutex<bool>,
    sync_ended: Condvar,
    /// Held for a sync of the device and the note of its failure. The kernel tells a failed sync to one
    /// caller only: a second sync beside it would succeed without the lost bytes.
    device_sync: Mutex<()>,
    /// Records from which on the log is held, each with the number of holds.
    pub(super) holds: Mutex<BTreeMap<Lsn, usize>>,
    logged_wakers: Wakers,
    durable_wakers: Wakers,
    poison: OnceLock<Arc<LogError>>,
    is_closed: AtomicBool,
    /// Whether a record was appended since the sync task last looked.
    pub(super) is_dirty: AtomicBool,
    sync_task: Mutex<Option<Task>>,
    sync_task_waker: OnceLock<TaskWaker>,
    /// The number of durable wakers with which a new one wakes the sync task.
    wake_from: AtomicUsize,
    counters: Counters,
    waits: LockWaits,
}

impl Log {
    /// Starts a log in `segment`, with its sync task. The segment's header and everything before it are
    /// durable.
    pub(super) fn begin(
        environment: &Environment,
        options: LogOptions,
        appender: Appender,
        segment: Arc<Segment>,
        files: SegmentFiles,
        table: SegmentTable,
    ) -> Result<Arc<Log>, LogError> {
        let last = appender.end().lsn().get() - 1;
        let log = Arc::new(Log {
            environment: environment.clone(),
            options,
            appender: Mutex::new(appender),
            writer: Mutex::new(Writer { segment }),
            ready: Arc::clone(files.ready()),
            files: Mutex::new(files),
            table: Mutex::new(table),
            logged: AtomicU64::new(last),
            durable: AtomicU64::new(last),
            sync_turn: Mutex::new(false),
            sync_ended: Condvar::new(),
            device_sync: Mutex::new(()),
            holds: Mutex::default(),
            logged_wakers: Wakers::default(),
            durable_wakers: Wakers::default(),
            poison: OnceLock::new(),
            is_closed: AtomicBool::new(false),
            is_dirty: AtomicBool::new(false),
            sync_task: Mutex::new(None),
            sync_task_waker: OnceLock::new(),
            wake_from: AtomicUsize::new(1),
            counters: Counters::default(),
            waits: LockWaits::new(environment.clock()),
        });
        sync_task::start(&log)?;
        Ok(log)
    }

    /// Appends a record and returns its LSN. The payload is the concatenation of the parts. The call touches
    /// only memory, unless a segment must be made or too many bytes are unwritten. After an error no LSN has
    /// been given out. A failed write of earlier bytes is no error of this call: it stops the log.
    pub(crate) fn append(&self, kind: RecordKind, payload: &[&[u8]]) -> Result<Lsn, LogError> {
        let record = Stored { kind, encoding: Encoding::Plain, payload, gap_to: None };
        Ok(self.append_stored(record)?.lsn)
    }

    /// Appends a record whose LSN follows a gap, after every LSN that was given out.
    pub(crate) fn append_after_gap(
        &self,
        kind: RecordKind,
        payload: &[u8],
        to: Lsn,
    ) -> Result<Appended, LogError> {
        let payload = [payload];
        self.append_stored(Stored { kind, encoding: Encoding::Plain, payload: &payload, gap_to: Some(to) })
    }

    /// Appends a record with a packed payload, as [`append`](Log::append) does.
    pub(crate) fn append_packed(&self, kind: RecordKind, packed: &Packed) -> Result<Appended, LogError> {
        let payload: [&[u8]; 1] = [&packed.bytes];
        self.append_stored(Stored { kind, encoding: packed.encoding, payload: &payload, gap_to: None })
    }

    fn append_stored(&self, record: Stored<'_>) -> Result<Appended, LogError> {
        let length: usize = record.payload.iter().map(|part| part.len()).sum();
        if length > RECORD_BYTES_MAX {
            return Err(LogError::TooLong { bytes: length, limit: RECORD_BYTES_MAX });
        }
        let (appended, unwritten) = {
            let mut appender = self.waits.lock(WaitFor::LogAppend, &self.appender);
            self.check_open()?;
            if let Some(bytes) = appender.needs_segment(length) {
                self.begin_segment(&mut appender, bytes)?;
            }
            let place = appender.end();
            let before = Lsn::new(place.lsn().get() - 1);
            let lsn = appender.append(record, self.durable_lsn());
            self.table.lock().advance(appender.end());
            (Appended { before, lsn, place }, appender.unwritten_bytes())
        };
        if !self.is_dirty.swap(true, Ordering::SeqCst) {
            self.wake_sync_task();
        }
        if unwritten > self.options.unwritten_bytes_max {
            // The record has its LSN, so the caller must publish it: later commits wait for that. After an
            // error the log is stopped, and the caller's next call of the log reports it.
            let _stopped = self.write_through(appended.lsn);
        }
        Ok(appended)
    }

    fn begin_segment(&self, appender: &mut Appender, bytes: u64) -> Result<(), LogError> {
        let segment = match self.ready.take(bytes) {
            Some(segment) => segment,
            None => self.waits.timed(WaitFor::LogSegment, || self.files.lock().take(bytes))?,
        };
        let salt = Salt::new(self.environment.random().next_u64());
        let length = segment.length;
        let start = appender.begin_segment(segment, salt);
        self.table.lock().begin_segment(start, length, HeaderState::WithRecords);
        Ok(())
    }

    /// Returns when every record up to `lsn` is in the kernel, so that it survives a killed process.
    pub(crate) fn write_through(&self, lsn: Lsn) -> Result<(), LogError> {
        let lsn = lsn.min(self.appended_lsn());
        if self.logged_lsn() < lsn {
            let writer = self.waits.lock(WaitFor::LogWrite, &self.writer);
            // The thread that held the lock may have written this record too.
            if self.logged_lsn() < lsn {
                self.write_batches(writer)?;
            }
        }
        self.check_poison()
    }

    /// Writes everything appended so far.
    fn write_batches(&self, mut writer: MutexGuard<'_, Writer>) -> Result<(), LogError> {
        self.check_poison()?;
        let batches = self.appender.lock().take_batches();
        for mut batch in batches {
            if batch.segment.number != writer.segment.number {
                // Recovery relies on this: a segment is durable before the next one begins.
                self.waits.timed(WaitFor::LogSegment, || self.sync_segment(&writer.segment))?;
                self.durable.fetch_max(self.logged.load(Ordering::SeqCst), Ordering::SeqCst);
                writer.segment = Arc::clone(&batch.segment);
            }
            self.write_batch(&mut batch).map_err(|error| self.poison(error))?;
            self.logged.fetch_max(batch.last.get(), Ordering::SeqCst);
            self.appender.lock().give_back(batch.bytes);
        }
        drop(writer);
        self.serve_wakers();
        Ok(())
    }

    fn write_batch(&self, batch: &mut Batch) -> Result<(), LogError> {
        let record_bytes = batch.bytes.len() as u64;
        let end = batch.fill_page();
        let segment = &batch.segment;
        segment.file.write_all_at(&batch.bytes, batch.offset)?;
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        self.counters.write_bytes.fetch_add(record_bytes, Ordering::Relaxed);
        if end > segment.written_to.load(Ordering::Relaxed) {
            let zeros = self.options.zero_ahead_bytes.min(segment.length - end);
            if zeros > 0 {
                segment.file.write_all_at(&vec![0; zeros as usize], end)?;
            }
            segment.written_to.store(end + zeros, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns when every record up to `lsn` is on the device, so that it survives a power cut. Callers share
    /// syncs.
    pub(crate) fn sync(&self, lsn: Lsn) -> Result<(), LogError> {
        let lsn = lsn.min(self.appended_lsn());
        if self.durable_lsn() >= lsn {
            return self.check_poison();
        }
        self.waits.timed(WaitFor::LogSync, || self.sync_up_to(lsn))
    }

    fn sync_up_to(&self, lsn: Lsn) -> Result<(), LogError> {
        while self.durable_lsn() < lsn {
            self.check_poison()?;
            let mut is_in_flight = self.sync_turn.lock();
            if self.durable_lsn() >= lsn {
                break;
            }
            if *is_in_flight {
                self.sync_ended.wait(&mut is_in_flight);
                continue;
            }
            *is_in_flight = true;
            drop(is_in_flight);
            let result = self.sync_once();
            *self.sync_turn.lock() = false;
            self.sync_ended.notify_all();
            self.durable_wakers.serve(self.durable_lsn());
            result?;
        }
        self.check_poison()
    }

    /// Writes and syncs all records that are appended at this moment.
    fn sync_once(&self) -> Result<(), LogError> {
        self.write_through(self.appended_lsn())?;
        let (segment, target) = {
            let writer = self.writer.lock();
            (Arc::clone(&writer.segment), self.logged_lsn())
        };
        self.sync_segment(&segment)?;
        self.durable.fetch_max(target.get(), Ordering::SeqCst);
        Ok(())
    }

    fn sync_segment(&self, segment: &Segment) -> Result<(), LogError> {
        let _alone = self.device_sync.lock();
        self.check_poison()?;
        let start = self.environment.clock().monotonic();
        segment.file.sync_data().map_err(|error| self.poison(error.into()))?;
        let nanos = self.environment.clock().monotonic().since(start).as_nanos();
        self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        self.counters.sync_nanos.fetch_add(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
        // Where a write of another thread has failed meanwhile, the sync proves nothing.
        self.check_poison()
    }

    /// Calls the waker when the record is in the kernel, or at once if it is. It does not wait for another
    /// thread's write.
    pub(crate) fn on_logged(&self, lsn: Lsn, waker: LogWaker) {
        let lsn = lsn.min(self.appended_lsn());
        if self.logged_lsn() < lsn
            && let Some(writer) = self.writer.try_lock()
        {
            // A failure poisons the log. The waker is told below.
            let _poisoned = self.write_batches(writer);
        }
        self.logged_wakers.add(lsn, waker);
        self.logged_wakers.serve(self.logged_lsn());
        self.after_registration(&self.logged_wakers);
    }

    /// Calls the waker when the record is on the device, or at once if it is. The sync task starts a sync
    /// that all waiters share.
    pub(crate) fn on_durable(&self, lsn: Lsn, waker: LogWaker) {
        let lsn = lsn.min(self.appended_lsn());
        let count = self.durable_wakers.add(lsn, waker);
        self.durable_wakers.serve(self.durable_lsn());
        if count < self.wake_from.load(Ordering::SeqCst) && self.check_open().is_ok() {
            // The sync task lets commits gather, and looks again by itself.
            return;
        }
        self.after_registration(&self.durable_wakers);
    }

    /// Makes sure that a waker that was just added is served.
    fn after_registration(&self, wakers: &Wakers) {
        if let Err(error) = self.check_open() {
            self.fail_wakers(&error);
        } else if !wakers.is_empty() {
            self.wake_sync_task();
        }
    }

    /// The newest record that has an LSN.
    pub(crate) fn appended_lsn(&self) -> Lsn {
        Lsn::new(self.appender.lock().end().lsn().get() - 1)
    }

    /// The newest record in the kernel.
    pub(crate) fn logged_lsn(&self) -> Lsn {
        Lsn::new(self.logged.load(Ordering::SeqCst))
    }

    /// The newest record on the device.
    pub(crate) fn durable_lsn(&self) -> Lsn {
        Lsn::new(self.durable.load(Ordering::SeqCst))
    }

    /// The position at which replay must begin to meet every record after `lsn`. It may meet earlier ones
    /// too.
    pub(crate) fn position_of(&self, lsn: Lsn) -> LogPosition {
        let durable = self.durable_lsn();
        let table = self.table.lock();
        table.position_after(lsn, durable).expect("records are released only when no replay needs them")
    }

    /// Bytes of records since the start of the log's replay, with those that recovery read. It only grows.
    pub(crate) fn appended_bytes(&self) -> u64 {
        self.appender.lock().appended_bytes()
    }

    /// Bytes of records in live segments.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.table.lock().live_bytes()
    }

    /// Releases the segments before that of this position, in which no replay will begin any more. They are
    /// recycled or removed.
    pub(crate) fn release_before(&self, position: LogPosition) -> Result<(), LogError> {
        let held = self.holds.lock().keys().next().copied();
        let released = self.table.lock().release_before(position, held);
        let mut outcome = Ok(());
        for (number, length) in released {
            // One by one, because an append that finds no segment ready waits while `files` is held. A
            // segment that cannot be removed does not keep the others. The next open tries again.
            let is_released = self.files.lock().release(number, length);
            outcome = outcome.and(is_released);
        }
        outcome
    }

    /// Whether a checkpoint of everything appended could release a segment.
    pub(crate) fn has_older_segments(&self) -> bool {
        self.holds.lock().is_empty() && self.table.lock().has_older()
    }

    /// Continues in a short segment, if everything appended is durable and the files are longer than a short
    /// one. Returns whether it did. Once checkpoints have released the long segments, the log takes little
    /// space.
    pub(crate) fn shorten(&self) -> Result<bool, LogError> {
        let writer = self.writer.lock();
        let segment = {
            let mut appender = self.appender.lock();
            self.check_open()?;
            let short = self.files.lock().short_bytes();
            let is_at_rest = self.durable_lsn() == Lsn::new(appender.end().lsn().get() - 1);
            if !is_at_rest || self.file_bytes() <= short {
                return Ok(false);
            }
            self.files.lock().shorten()?;
            if appender.segment().length <= short {
                return Ok(true);
            }
            self.begin_segment(&mut appender, SEGMENT_HEADER_BYTES)?;
            Arc::clone(appender.segment())
        };
        self.write_batches(writer)?;
        self.sync_segment(&segment)?;
        self.table.lock().header_is_durable(segment.number);
        Ok(true)
    }

    fn file_bytes(&self) -> u64 {
        self.ready.bytes() + self.table.lock().file_bytes()
    }

    /// Statistics of lock waits.
    pub(crate) fn waits(&self) -> &LockWaits {
        &self.waits
    }

    /// Counts and sizes.
    pub(crate) fn statistics(&self) -> LogStatistics {
        let file_bytes = self.file_bytes();
        let table = self.table.lock();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LogStatistics {
            syncs: count(&self.counters.syncs),
            sync_nanos: count(&self.counters.sync_nanos),
            writes: count(&self.counters.writes),
            write_bytes: count(&self.counters.write_bytes),
            live_bytes: table.live_bytes(),
            file_bytes,
        }
    }

    /// Syncs the appended records and ends the sync task. Later appends fail.
    pub(crate) fn close(&self) -> Result<(), LogError> {
        if self.is_closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        // Dropped outside the lock, because the sync task may be about to take it.
        let sync_task = self.sync_task.lock().take();
        drop(sync_task);
        let result = self.sync(self.appended_lsn());
        self.logged_wakers.fail(|| LogError::Closed);
        self.durable_wakers.fail(|| LogError::Closed);
        result
    }

    pub(super) fn set_sync_task(&self, task: Task) {
        // There is only one sync task, so this is the first call.
        let _first = self.sync_task_waker.set(task.waker());
        *self.sync_task.lock() = Some(task);
    }

    fn wake_sync_task(&self) {
        if let Some(waker) = self.sync_task_waker.get() {
            waker.wake();
        }
    }

    /// Calls the wakers whose record has been reached.
    pub(super) fn serve_wakers(&self) {
        self.logged_wakers.serve(self.logged_lsn());
        self.durable_wakers.serve(self.durable_lsn());
    }

    /// Registrations of durable wakers wake the sync task when there are so many.
    pub(super) fn wake_sync_task_from(&self, wakers: usize) {
        self.wake_from.store(wakers, Ordering::SeqCst);
    }

    pub(super) fn durable_waker_count(&self) -> usize {
        self.durable_wakers.len()
    }

    pub(super) fn has_wakers(&self) -> bool {
        !self.durable_wakers.is_empty() || !self.logged_wakers.is_empty()
    }

    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }

    pub(super) const fn sync_interval(&self) -> Duration {
        self.options.sync_interval
    }

    /// Makes the next segment ready if the active one is half full.
    pub(super) fn prepare_segment(&self) -> Result<(), LogError> {
        let is_half_full = self.appender.lock().is_half_full();
        if is_half_full { self.files.lock().prepare() } else { Ok(()) }
    }

    /// Stops the log, because a logged record cannot be applied.
    pub(crate) fn stop(&self, lsn: Lsn, source: StorageError) -> LogError {
        self.poison(LogError::Replay { lsn, source })
    }

    fn poison(&self, cause: LogError) -> LogError {
        let cause = match cause {
            LogError::Poisoned { cause } => cause,
            cause => Arc::new(cause),
        };
        let error = LogError::Poisoned { cause: Arc::clone(self.poison.get_or_init(|| cause)) };
        self.fail_wakers(&error);
        error
    }

    fn fail_wakers(&self, error: &LogError) {
        let same = || match error {
            LogError::Poisoned { cause } => LogError::Poisoned { cause: Arc::clone(cause) },
            _ => LogError::Closed,
        };
        self.logged_wakers.fail(same);
        self.durable_wakers.fail(same);
    }

    /// Fails after a failed write or sync: the log takes no more records.
    pub(crate) fn check_poison(&self) -> Result<(), LogError> {
        match self.poison.get() {
            None => Ok(()),
            Some(cause) => Err(LogError::Poisoned { cause: Arc::clone(cause) }),
        }
    }

    fn check_open(&self) -> Result<(), LogError> {
        self.check_poison()?;
        if self.is_closed.load(Ordering::SeqCst) { Err(LogError::Closed) } else { Ok(()) }
    }
}
