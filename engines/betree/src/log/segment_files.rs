//! The files of the log's folder: spare files for the next segments, and the recycling of released ones.
//!
//! Spare files have the numbers after the active segment's, in order. They are created, or renamed from
//! released segments, with their space reserved and the folder synced. So taking one needs no device call.
//! Their headers are blank or name another number, so recovery skips them.
//!
//! ```text
//!  00000007.wal  00000008.wal  00000009.wal  00000010.wal  00000011.wal
//!  [ released ]  [   live   ]  [  active  ]  [  spare   ]  [  spare   ]
//!       |                                                                  a checkpoint releases 7:
//!       +--- renamed, new salt at its next use ----------------------------> 00000012.wal
//! ```
//!
//! One thread takes the next spare while another creates, renames and removes files, which takes device time.
//! The spares therefore have a lock of their own ([`ReadySegments`]), which is never held during a device
//! call. Taking a spare does not change the numbers of the others, nor the number of the next one to be made.
//!
//! The first file is short. Each further one is [`GROWTH`] times as long as the one before, up to the usual
//! length. So an idle log takes little space, and a busy one changes its segment seldom. On a nearly full
//! device files are as short as they have to be, so that all of its room can be used.

use pando_environment::sync::Mutex;
use pando_environment::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use pando_environment::{Access, Environment, EnvironmentError, File, FileSystem, FolderIdentity, OpenMode};

use super::LogError;
use super::segment::{SEGMENT_HEADER_BYTES, Segment, file_name, number_of, segment_path};

/// File lengths are multiples of this many bytes.
const LENGTH_UNIT: u64 = 4_096;
/// A segment is this many times as long as the one before.
const GROWTH: u64 = 4;
/// No file is shorter, however full the device is.
const SEGMENT_BYTES_MIN: u64 = 2 * LENGTH_UNIT;
/// The divisor of the usual length that gives the first one.
const FIRST_DIVISOR: u64 = 64;

/// See the [module](self).
pub(super) struct SegmentFiles {
    environment: Environment,
    folder: PathBuf,
    /// Of the folder at the opening; `None` where files are only read.
    identity: Option<FolderIdentity>,
    spares_max: usize,
    ready: Arc<ReadySegments>,
}

/// The spare files. One thread at a time takes them, and one at a time works on the folder.
pub(super) struct ReadySegments {
    /// The usual length of a file.
    segment_bytes: u64,
    waiting: Mutex<Waiting>,
}

struct Waiting {
    /// The length of the next file to be made.
    next_bytes: u64,
    /// The active segment.
    active: u64,
    spares: VecDeque<Arc<Segment>>,
}

impl ReadySegments {
    fn new(segment_bytes: u64, next_bytes: u64) -> Arc<ReadySegments> {
        let waiting = Mutex::new(Waiting { next_bytes, active: 0, spares: VecDeque::new() });
        Arc::new(ReadySegments { segment_bytes, waiting })
    }

    /// Takes the next spare if it has room for this many bytes, without a device call.
    pub(super) fn take(&self, bytes: u64) -> Option<Arc<Segment>> {
        let mut waiting = self.waiting.lock();
        let taken = waiting.spares.pop_front_if(|spare| spare.length >= bytes)?;
        waiting.active += 1;
        waiting.next_bytes =
            (taken.length * GROWTH).clamp(first_bytes(self.segment_bytes), self.segment_bytes);
        assert_eq!(taken.number, waiting.active, "spare segments bear the next numbers");
        Some(taken)
    }

    /// Bytes of the spare files.
    pub(super) fn bytes(&self) -> u64 {
        self.waiting.lock().spares.iter().map(|spare| spare.length).sum()
    }

    fn push(&self, spare: Segment) {
        self.waiting.lock().spares.push_back(Arc::new(spare));
    }

    fn count(&self) -> usize {
        self.waiting.lock().spares.len()
    }

    fn next_bytes(&self) -> u64 {
        self.waiting.lock().next_bytes
    }

    /// The number of the next file to be made.
    fn next_spare(&self) -> u64 {
        let waiting = self.waiting.lock();
        waiting.active + 1 + waiting.spares.len() as u64
    }
}

impl SegmentFiles {
    /// The files of a folder, which is created if it is missing. No spare is known yet.
    pub(super) fn new(
        environment: &Environment,
        folder: PathBuf,
        segment_bytes: u64,
        spares_max: usize,
    ) -> Result<SegmentFiles, LogError> {
        if !environment.files().exists(&folder)? {
            environment.files().create_dir(&folder)?;
            if let Some(parent) = folder.parent() {
                environment.files().sync_dir(parent)?;
            }
        }
        let segment_bytes = segment_bytes.next_multiple_of(LENGTH_UNIT).max(SEGMENT_BYTES_MIN);
        let environment = environment.clone();
        let ready = ReadySegments::new(segment_bytes, first_bytes(segment_bytes));
        let identity = Some(environment.files().identity(&folder)?);
        Ok(SegmentFiles { environment, folder, identity, spares_max, ready })
    }

    /// The files of a folder that is only read and may be missing.
    pub(super) fn existing(environment: &Environment, folder: PathBuf) -> SegmentFiles {
        let environment = environment.clone();
        SegmentFiles { environment, folder, identity: None, spares_max: 0, ready: ReadySegments::new(0, 0) }
    }

    /// The spare files.
    pub(super) fn ready(&self) -> &Arc<ReadySegments> {
        &self.ready
    }

    fn files(&self) -> &dyn FileSystem {
        self.environment.files().as_ref()
    }

    /// The files, to change their names. The folder may have been moved since the opening, and another store
    /// made in its place: its files are not ours.
    fn files_to_name(&self) -> Result<&dyn FileSystem, LogError> {
        if let Some(opened) = self.identity
            && self.files().identity(&self.folder)? != opened
        {
            return Err(EnvironmentError::Replaced { path: self.folder.clone() }.into());
        }
        Ok(self.files())
    }

    /// The numbers of all segment files in the folder, ascending.
    pub(super) fn list(&self) -> Result<Vec<u64>, LogError> {
        if !self.files().exists(&self.folder)? {
            return Ok(Vec::new());
        }
        let mut numbers: Vec<u64> =
            self.files().list(&self.folder)?.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Opens a segment's file, to read it and to sync it.
    pub(super) fn open(&self, number: u64) -> Result<Arc<dyn File>, LogError> {
        let mode = if self.identity.is_none() { OpenMode::ReadOnly } else { OpenMode::Existing };
        Ok(self.files().open(&segment_path(&self.folder, number), mode, Access::Buffered)?)
    }

    /// After recovery: begins the segment `active`, to which records are appended. Files that recovery did
    /// not read become spares or are removed.
    pub(super) fn begin(&mut self, active: u64, live: &[u64]) -> Result<Arc<Segment>, LogError> {
        self.ready.waiting.lock().active = active - 1;
        let unused: Vec<u64> = self.list()?.into_iter().filter(|number| !live.contains(number)).collect();
        let mut wanted = active;
        // A file with the wanted name stays. Others are renamed to it, and excess files are removed.
        let (mut named, mut others): (VecDeque<u64>, Vec<u64>) = (VecDeque::new(), Vec::new());
        for number in unused {
            if number >= active { named.push_back(number) } else { others.push(number) }
        }
        while self.ready.count() < self.spares_max.max(1) {
            if named.front() == Some(&wanted) {
                named.pop_front();
            } else if let Some(other) = others.pop().or_else(|| named.pop_back()) {
                self.files_to_name()?
                    .rename(&segment_path(&self.folder, other), &segment_path(&self.folder, wanted))?;
            } else {
                break;
            }
            self.ready.push(self.open_spare(wanted)?);
            wanted += 1;
        }
        for number in others.into_iter().chain(named) {
            self.files_to_name()?.remove(&segment_path(&self.folder, number))?;
        }
        self.files().sync_dir(&self.folder)?;
        self.take(SEGMENT_HEADER_BYTES)
    }

    /// Removes the files that are not segments of the log.
    pub(super) fn remove_unused(&self, live: &[u64]) -> Result<(), LogError> {
        let unused = self.list()?.into_iter().filter(|number| !live.contains(number));
        for number in unused {
            self.files_to_name()?.remove(&segment_path(&self.folder, number))?;
        }
        Ok(())
    }

    /// After recovery: appending continues in the last segment. Later files become spares when needed.
    pub(super) fn continue_at(&mut self, number: u64) {
        let mut waiting = self.ready.waiting.lock();
        waiting.active = number;
        waiting.spares.clear();
    }

    /// The next segment, with room for at least this many bytes. It is made or lengthened if no spare
    /// suffices. Without room nothing has changed.
    pub(super) fn take(&mut self, bytes: u64) -> Result<Arc<Segment>, LogError> {
        self.prepare()?;
        let length = bytes.next_multiple_of(LENGTH_UNIT);
        // No other thread takes it meanwhile.
        let first = self.ready.waiting.lock().spares.front().cloned();
        if let Some(spare) = first.filter(|spare| spare.length < length) {
            let longer = self.lengthen(&spare, length)?;
            self.ready.waiting.lock().spares[0] = longer;
        }
        Ok(self.ready.take(length).expect("a spare was made, and lengthened, where there was none"))
    }

    /// Makes a spare if there is none, so that the next [`take`](SegmentFiles::take) is fast.
    pub(super) fn prepare(&mut self) -> Result<(), LogError> {
        if self.ready.count() == 0 { self.make_spare() } else { Ok(()) }
    }

    /// The length of the first segment of a log.
    pub(super) fn short_bytes(&self) -> u64 {
        first_bytes(self.ready.segment_bytes)
    }

    /// Removes the spares. The next segment is as short as the first.
    pub(super) fn shorten(&mut self) -> Result<(), LogError> {
        self.ready.waiting.lock().next_bytes = self.short_bytes();
        if self.ready.count() == 0 {
            return Ok(());
        }
        let last = || self.ready.waiting.lock().spares.pop_back();
        while let Some(spare) = last() {
            self.files_to_name()?.remove(&segment_path(&self.folder, spare.number))?;
        }
        Ok(self.files().sync_dir(&self.folder)?)
    }

    /// Recycles a segment that is no longer part of the log, or removes it.
    pub(super) fn release(&mut self, number: u64, length: u64) -> Result<(), LogError> {
        let path = segment_path(&self.folder, number);
        // A segment above the usual length was made for one long record.
        let is_usual = (self.ready.next_bytes()..=self.ready.segment_bytes).contains(&length);
        if self.ready.count() >= self.spares_max || !is_usual {
            self.files_to_name()?.remove(&path)?;
            return Ok(self.files().sync_dir(&self.folder)?);
        }
        let next = self.ready.next_spare();
        self.files_to_name()?.rename(&path, &segment_path(&self.folder, next))?;
        self.files().sync_dir(&self.folder)?;
        let file = self.open(next)?;
        self.ready.push(Segment { number: next, file, length, written_to: AtomicU64::new(length) });
        Ok(())
    }

    /// Makes a spare of the wanted length, or of the longest one for which a nearly full device has room.
    fn make_spare(&mut self) -> Result<(), LogError> {
        let mut length = self.ready.next_bytes();
        loop {
            match self.make_spare_of(length) {
                Err(LogError::NoSpace { .. }) if length > SEGMENT_BYTES_MIN => {
                    length = (length / GROWTH).next_multiple_of(LENGTH_UNIT).max(SEGMENT_BYTES_MIN);
                }
                outcome => return outcome,
            }
        }
    }

    fn make_spare_of(&mut self, length: u64) -> Result<(), LogError> {
        let number = self.ready.next_spare();
        let path = segment_path(&self.folder, number);
        let file = self
            .files_to_name()?
            .open(&path, OpenMode::CreateOrOpen, Access::Buffered)
            .map_err(|error| self.no_space(length, error))?;
        if let Err(error) = file.allocate(0, length) {
            // An empty file under the next number would not be taken for a segment, but it would be in the
            // way.
            drop(file);
            self.files_to_name()?.remove(&path)?;
            return Err(self.no_space(length, error));
        }
        self.files().sync_dir(&self.folder)?;
        self.ready.push(Segment { number, file, length, written_to: AtomicU64::new(0) });
        Ok(())
    }

    /// Opens an existing file as a spare. Its header does not make it part of the log, whatever the file
    /// holds.
    fn open_spare(&self, number: u64) -> Result<Segment, LogError> {
        let file = self.open(number)?;
        let mut length = file.length()? / LENGTH_UNIT * LENGTH_UNIT;
        let short = self.short_bytes();
        if length < short {
            match file.allocate(0, short).map_err(|error| self.no_space(short, error)) {
                Ok(()) => length = short,
                // A nearly full device: the file was made as short as it is for want of room.
                Err(LogError::NoSpace { .. }) if length >= SEGMENT_BYTES_MIN => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Segment { number, file, length, written_to: AtomicU64::new(0) })
    }

    fn lengthen(&self, spare: &Segment, length: u64) -> Result<Arc<Segment>, LogError> {
        spare.file.allocate(0, length).map_err(|error| self.no_space(length, error))?;
        let written_to = AtomicU64::new(spare.written_to.load(Ordering::Relaxed));
        Ok(Arc::new(Segment { number: spare.number, file: Arc::clone(&spare.file), length, written_to }))
    }

    fn no_space(&self, wanted_bytes: u64, error: EnvironmentError) -> LogError {
        if error.is_no_space() {
            LogError::NoSpace { wanted_bytes, folder: self.folder.clone(), source: error }
        } else {
            error.into()
        }
    }

    /// The path of a segment, for messages.
    pub(super) fn path(&self, number: u64) -> PathBuf {
        self.folder.join(file_name(number))
    }
}

fn first_bytes(segment_bytes: u64) -> u64 {
    (segment_bytes / FIRST_DIVISOR).next_multiple_of(LENGTH_UNIT).max(SEGMENT_BYTES_MIN)
}
