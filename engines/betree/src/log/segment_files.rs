//! The files of the log's folder: those that wait to become the next segments, and how they are made and used again.
//!
//! Spare files carry the numbers after the active segment's, in order. They are made (or renamed from released segments)
//! with their room reserved and the folder synced, so that taking one needs no call to the device; their headers are
//! blank or name another number, so recovery passes them over.
//!
//! Whoever appends takes the next one while others make, rename and remove files, which takes a device's time: what waits stands behind a
//! lock of its own ([`ReadySegments`]), which nobody holds during a call to the device. Taking one changes the number of no other: the
//! number of the next that is made stays what it was.
//!
//! The first file is short, and each further one [`GROWTH`] times as long as the one before, up to the usual length: a log that is
//! hardly written takes little room, and one that is written much changes its segment seldom.

use pando_environment::sync::Mutex;
use pando_environment::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use pando_environment::{Access, Environment, EnvironmentError, File, FileSystem, OpenMode};

use super::LogError;
use super::segment::{SEGMENT_HEADER_BYTES, Segment, file_name, number_of, segment_path};

/// Files are as long as a multiple of this many bytes.
const LENGTH_UNIT: u64 = 4_096;
/// A segment is so many times as long as the one before.
const GROWTH: u64 = 4;
/// The first is this part of the usual length.
const FIRST_PART: u64 = 64;

/// See the [module](self).
pub(super) struct SegmentFiles {
    environment: Environment,
    folder: PathBuf,
    spares_max: usize,
    ready: Arc<ReadySegments>,
}

/// The files that wait to become the next segments. One thread at a time takes them, one at a time sees to the folder.
pub(super) struct ReadySegments {
    /// The usual length of a file.
    segment_bytes: u64,
    waiting: Mutex<Waiting>,
}

struct Waiting {
    /// The length of the next one that is made.
    next_bytes: u64,
    /// The segment that records are appended to.
    active: u64,
    spares: VecDeque<Arc<Segment>>,
}

impl ReadySegments {
    fn new(segment_bytes: u64, next_bytes: u64) -> Arc<ReadySegments> {
        let waiting = Mutex::new(Waiting { next_bytes, active: 0, spares: VecDeque::new() });
        Arc::new(ReadySegments { segment_bytes, waiting })
    }

    /// The next segment, if one waits that has room for so many bytes: without a call to the device.
    pub(super) fn take(&self, bytes: u64) -> Option<Arc<Segment>> {
        let mut waiting = self.waiting.lock();
        let taken = waiting.spares.pop_front_if(|spare| spare.length >= bytes)?;
        waiting.active += 1;
        waiting.next_bytes =
            (taken.length * GROWTH).clamp(first_bytes(self.segment_bytes), self.segment_bytes);
        assert_eq!(taken.number, waiting.active, "spare segments bear the next numbers");
        Some(taken)
    }

    /// Bytes of the files that wait.
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

    /// The number of the next file that is made.
    fn next_spare(&self) -> u64 {
        let waiting = self.waiting.lock();
        waiting.active + 1 + waiting.spares.len() as u64
    }
}

impl SegmentFiles {
    /// The files of a folder, which is created where it is not there. No spare is known yet.
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
        let segment_bytes = segment_bytes.next_multiple_of(LENGTH_UNIT).max(2 * LENGTH_UNIT);
        let environment = environment.clone();
        let ready = ReadySegments::new(segment_bytes, first_bytes(segment_bytes));
        Ok(SegmentFiles { environment, folder, spares_max, ready })
    }

    /// The files of a folder that is only read, whether it is there or not.
    pub(super) fn existing(environment: &Environment, folder: PathBuf) -> SegmentFiles {
        let environment = environment.clone();
        SegmentFiles { environment, folder, spares_max: 0, ready: ReadySegments::new(0, 0) }
    }

    /// The files that wait.
    pub(super) fn ready(&self) -> &Arc<ReadySegments> {
        &self.ready
    }

    fn files(&self) -> &dyn FileSystem {
        self.environment.files().as_ref()
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
        Ok(self.files().open(&segment_path(&self.folder, number), OpenMode::Existing, Access::Buffered)?)
    }

    /// After recovery: `active` is the first segment to append to. Files that recovery did not read become spares, or go.
    pub(super) fn begin(&mut self, active: u64, live: &[u64]) -> Result<Arc<Segment>, LogError> {
        self.ready.waiting.lock().active = active - 1;
        let unused: Vec<u64> = self.list()?.into_iter().filter(|number| !live.contains(number)).collect();
        let mut wanted = active;
        // A file that bears the wanted name stays; others are renamed to it, and what is too many is removed.
        let (mut named, mut others): (VecDeque<u64>, Vec<u64>) = (VecDeque::new(), Vec::new());
        for number in unused {
            if number >= active { named.push_back(number) } else { others.push(number) }
        }
        while self.ready.count() < self.spares_max.max(1) {
            if named.front() == Some(&wanted) {
                named.pop_front();
            } else if let Some(other) = others.pop().or_else(|| named.pop_back()) {
                self.files()
                    .rename(&segment_path(&self.folder, other), &segment_path(&self.folder, wanted))?;
            } else {
                break;
            }
            self.ready.push(self.open_spare(wanted)?);
            wanted += 1;
        }
        for number in others.into_iter().chain(named) {
            self.files().remove(&segment_path(&self.folder, number))?;
        }
        self.files().sync_dir(&self.folder)?;
        self.take(SEGMENT_HEADER_BYTES)
    }

    /// Removes the files that are no segments of the log.
    pub(super) fn remove_unused(&self, live: &[u64]) -> Result<(), LogError> {
        let unused = self.list()?.into_iter().filter(|number| !live.contains(number));
        for number in unused {
            self.files().remove(&segment_path(&self.folder, number))?;
        }
        Ok(())
    }

    /// After recovery, where appending goes on in the last segment. Files behind it come to be used when there is need.
    pub(super) fn continue_at(&mut self, number: u64) {
        let mut waiting = self.ready.waiting.lock();
        waiting.active = number;
        waiting.spares.clear();
    }

    /// The next segment, with room for at least so many bytes, made or lengthened where none is ready. Without room nothing has changed.
    pub(super) fn take(&mut self, bytes: u64) -> Result<Arc<Segment>, LogError> {
        self.prepare()?;
        let length = bytes.next_multiple_of(LENGTH_UNIT);
        // Nobody else takes it meanwhile.
        let first = self.ready.waiting.lock().spares.front().cloned();
        if let Some(spare) = first.filter(|spare| spare.length < length) {
            let longer = self.lengthen(&spare, length)?;
            self.ready.waiting.lock().spares[0] = longer;
        }
        Ok(self.ready.take(length).expect("a spare was made, and lengthened, where there was none"))
    }

    /// Has a spare ready, so that the next [`take`](SegmentFiles::take) is quick.
    pub(super) fn prepare(&mut self) -> Result<(), LogError> {
        if self.ready.count() == 0 { self.make_spare() } else { Ok(()) }
    }

    /// The length of the first segment of a log.
    pub(super) fn short_bytes(&self) -> u64 {
        first_bytes(self.ready.segment_bytes)
    }

    /// Removes the files that wait; the next segment is as short as the first.
    pub(super) fn shorten(&mut self) -> Result<(), LogError> {
        self.ready.waiting.lock().next_bytes = self.short_bytes();
        if self.ready.count() == 0 {
            return Ok(());
        }
        let last = || self.ready.waiting.lock().spares.pop_back();
        while let Some(spare) = last() {
            self.files().remove(&segment_path(&self.folder, spare.number))?;
        }
        Ok(self.files().sync_dir(&self.folder)?)
    }

    /// A segment that is not part of the log any more: a spare, or removed.
    pub(super) fn release(&mut self, number: u64, length: u64) -> Result<(), LogError> {
        let path = segment_path(&self.folder, number);
        // One that is longer than usual was made for one record.
        let is_usual = (self.ready.next_bytes()..=self.ready.segment_bytes).contains(&length);
        if self.ready.count() >= self.spares_max || !is_usual {
            self.files().remove(&path)?;
            return Ok(self.files().sync_dir(&self.folder)?);
        }
        let next = self.ready.next_spare();
        self.files().rename(&path, &segment_path(&self.folder, next))?;
        self.files().sync_dir(&self.folder)?;
        let file = self.open(next)?;
        self.ready.push(Segment { number: next, file, length, written_to: AtomicU64::new(length) });
        Ok(())
    }

    fn make_spare(&mut self) -> Result<(), LogError> {
        let (number, length) = (self.ready.next_spare(), self.ready.next_bytes());
        let path = segment_path(&self.folder, number);
        let file = self
            .files()
            .open(&path, OpenMode::CreateOrOpen, Access::Buffered)
            .map_err(|error| self.no_space(length, error))?;
        if let Err(error) = file.allocate(0, length) {
            // An empty file under the next number would be taken for a segment's beginning by nobody, but it would be
            // in the way.
            drop(file);
            self.files().remove(&path)?;
            return Err(self.no_space(length, error));
        }
        self.files().sync_dir(&self.folder)?;
        self.ready.push(Segment { number, file, length, written_to: AtomicU64::new(0) });
        Ok(())
    }

    /// A file that was there before: whatever it holds, its header does not make it part of the log.
    fn open_spare(&self, number: u64) -> Result<Segment, LogError> {
        let file = self.open(number)?;
        let mut length = file.length()? / LENGTH_UNIT * LENGTH_UNIT;
        let short = self.short_bytes();
        if length < short {
            file.allocate(0, short).map_err(|error| self.no_space(short, error))?;
            length = short;
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
    (segment_bytes / FIRST_PART).next_multiple_of(LENGTH_UNIT).max(2 * LENGTH_UNIT)
}
