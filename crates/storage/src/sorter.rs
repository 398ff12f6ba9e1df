//! The external merge sorter: orders more entries than memory holds, stable by arrival.
//!
//! # Terms
//! - *Entry*: key and value, both bytes. Keys compare as unsigned bytes; entries with equal keys stay in the
//!   order in which they came.
//! - *Piece*: so many entries in memory that one sort of them takes milliseconds ([`arena`]).
//! - *Run*: sorted entries in a scratch file ([`crate::run`]).
//!
//! # Algorithm
//! 1. Entries gather in memory. Each full piece is sorted at once, so no step is long.
//! 2. When the reservation cannot grow, a merge of all pieces writes a run, and memory is empty again.
//! 3. [`finish`](Sorter::finish) ends the input. Without runs a merge of the pieces gives the entries, and no
//!    file was made.
//! 4. With runs, the last entries stay in memory if there is room to read all runs as well; else they become
//!    a run, too.
//! 5. A merge reads a block of each run. While there are more runs than the reservation has room for blocks,
//!    neighbouring runs are merged into one; those with the fewest bytes first.
//! 6. [`next`](Sorter::next) merges what is left.
//!
//! # Invariants
//! - The reservation covers the entries in memory and the blocks of readers. Only an entry that is longer
//!   than the reservation takes more, and counts.
//! - `check` is called before each sort of a piece and each block. Its error ends the sort.
//! - The files go with the sorter.
//!
//! # Not here
//! Limits of how many entries are wanted, and error codes: crate `query`.

mod arena;
mod merge;

use self::arena::Arena;
use self::merge::Merge;
use crate::error::StorageError;
use crate::query_memory::{QueryAccount, Reservation};
use crate::run::{Run, RunFiles, RunLayout, RunValue, RunWriter, read_far};

/// Raw bytes of a block: the least and the most.
const BLOCK_BYTES: std::ops::RangeInclusive<usize> = (1 << 10)..=(64 << 10);
/// Bytes written at once: the least and the most.
const WRITE_BYTES: std::ops::RangeInclusive<usize> = (4 << 10)..=(256 << 10);
/// The divisors of the memory for a block, and for what is written at once.
const BLOCK_SHARE: usize = 64;
const WRITE_SHARE: usize = 16;
/// Runs that one merge reads: the least, however little memory there is, and the most.
const FAN_IN: std::ops::RangeInclusive<usize> = 4..=1024;
/// Memory of a reader beside its block.
const READER_BYTES: usize = 256;

/// See the module's head.
pub struct Sorter {
    reservation: Reservation,
    arena: Arena,
    entries: u64,
    /// In the order of arrival.
    runs: Vec<Run>,
    files: Option<RunFiles>,
    /// The present layout of runs; fixed with the first run.
    layout: Option<RunLayout>,
    /// `Some` once the input has ended.
    merge: Option<Merge>,
    /// A far value that was given.
    far: Vec<u8>,
    /// Bytes of the reservation beside `far`.
    merging_bytes: usize,
}

impl Sorter {
    /// An empty sorter of a query.
    pub fn new(account: &QueryAccount) -> Sorter {
        Sorter {
            reservation: account.reserve(),
            arena: Arena::default(),
            entries: 0,
            runs: Vec::new(),
            files: None,
            layout: None,
            merge: None,
            far: Vec::new(),
            merging_bytes: 0,
        }
    }

    /// Entries taken.
    pub fn len(&self) -> u64 {
        self.entries
    }

    /// Whether no entry was taken.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Whether some entries lie in files.
    pub fn has_spilled(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Whether an entry of so many bytes fits into memory.
    pub fn has_room(&mut self, bytes: usize) -> bool {
        if self.arena.is_piece_full() {
            self.arena.end_piece();
        }
        self.arena.make_room(bytes, &mut self.reservation)
    }

    /// Takes an entry. May write a run.
    ///
    /// # Errors
    /// The device refused; `check` failed. The sorter is of no more use then.
    pub fn push<E: From<StorageError>>(
        &mut self,
        key: &[u8],
        value: &[u8],
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        self.push_parts(key, &[value], check)
    }

    /// The same with a value of several parts, one behind the other.
    ///
    /// # Errors
    /// As for [`push`](Sorter::push).
    pub fn push_parts<E: From<StorageError>>(
        &mut self,
        key: &[u8],
        value: &[&[u8]],
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        if self.arena.is_piece_full() {
            check()?;
            self.arena.end_piece();
        }
        let bytes = key.len() + value.iter().map(|part| part.len()).sum::<usize>();
        if !self.arena.make_room(bytes, &mut self.reservation) {
            self.spill(check)?;
            self.arena.make_room_anyway(bytes, &mut self.reservation);
        }
        self.arena.push(key, value);
        self.entries += 1;
        Ok(())
    }

    /// Sorts the entries in memory that are not sorted yet: what one thread can do before another one
    /// [absorbs](Sorter::absorb) them.
    pub fn sort_last(&mut self) {
        self.arena.end_piece();
    }

    /// Takes in the entries of another sorter, which come behind all that this one has taken. Both still take
    /// entries. In memory no entry is copied.
    ///
    /// # Errors
    /// As for [`push`](Sorter::push).
    pub fn absorb<E: From<StorageError>>(
        &mut self,
        later: &mut Sorter,
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        assert!(self.merge.is_none() && later.merge.is_none(), "the input of both goes on");
        if !self.has_spilled() && !later.has_spilled() && !later.is_empty() {
            let arena = std::mem::take(&mut later.arena);
            let reserved = later.reservation.bytes();
            later.reservation.hold(0);
            if self.reservation.grow_to(self.arena.memory_bytes() + arena.memory_bytes()) {
                self.arena.absorb(arena);
                self.entries += std::mem::take(&mut later.entries);
                return Ok(());
            }
            later.arena = arena;
            later.reservation.hold(reserved);
        }
        later.finish(check)?;
        while let Some((key, value)) = later.next(check)? {
            self.push(key, value, check)?;
        }
        Ok(())
    }

    /// Writes the entries in memory as a run, so that their memory is free.
    ///
    /// # Errors
    /// As for [`push`](Sorter::push).
    pub fn spill<E: From<StorageError>>(
        &mut self,
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        if self.arena.is_empty() {
            return Ok(());
        }
        check()?;
        self.arena.end_piece();
        let layout = *self.layout.get_or_insert_with(|| layout_for(self.arena.memory_bytes()));
        let files = match self.files.take() {
            Some(files) => files,
            None => self.reservation.account().create_files()?,
        };
        let files = self.files.insert(files);
        let before = files.written_bytes();
        let mut writer = RunWriter::new(files, layout);
        let mut merge = Merge::new(&self.arena, &[], files)?;
        while let Some(source) = merge.next(&self.arena, files, check)? {
            let (key, value) = merge.entry(&self.arena, source);
            if writer.push(files, key, value)? {
                check()?;
            }
        }
        self.runs.extend(writer.finish(files)?);
        self.reservation.account().add_spilled(files.written_bytes() - before);
        // The reservation stays: the next run fills as much memory.
        self.arena = Arena::default();
        Ok(())
    }

    /// Ends the input.
    ///
    /// # Errors
    /// As for [`push`](Sorter::push).
    pub fn finish<E: From<StorageError>>(
        &mut self,
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        if self.merge.is_some() {
            return Ok(());
        }
        if self.has_spilled() {
            self.reduce_runs(check)?;
        }
        check()?;
        self.arena.end_piece();
        self.merging_bytes = self.reservation.bytes();
        self.merge = Some(match &self.files {
            Some(files) => Merge::new(&self.arena, &self.runs, files)?,
            None => Merge::of_memory(&self.arena),
        });
        Ok(())
    }

    /// Makes room for a block of each run, or fewer runs.
    fn reduce_runs<E: From<StorageError>>(
        &mut self,
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let with_rest = self.arena.memory_bytes() + self.readers_bytes(self.runs.len());
        if !self.arena.is_empty() && !self.reservation.grow_to(with_rest) {
            self.spill(check)?;
        }
        let wanted = self.arena.memory_bytes() + self.readers_bytes(self.runs.len());
        // A refusal leaves what was there, for the fan-in that it suffices for.
        let _is_enough = self.reservation.grow_to(wanted);
        self.reservation.shrink_to(wanted);
        loop {
            let room =
                self.reservation.bytes().saturating_sub(self.arena.memory_bytes() + self.readers_bytes(0));
            let fan_in = (room / self.reader_bytes()).clamp(*FAN_IN.start(), *FAN_IN.end());
            if self.runs.len() <= fan_in {
                let needed = self.arena.memory_bytes() + self.readers_bytes(self.runs.len());
                self.reservation.hold(needed);
                return Ok(());
            }
            let count = fan_in.min(self.runs.len() + 1 - fan_in);
            self.unite_runs(count, check)?;
        }
    }

    /// Merges so many neighbouring runs into one in their place: those with the fewest bytes.
    fn unite_runs<E: From<StorageError>>(
        &mut self,
        count: usize,
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let (Some(files), Some(layout)) = (&mut self.files, self.layout) else { return Ok(()) };
        let bytes_of = |runs: &[Run]| runs.iter().map(Run::bytes).sum::<u64>();
        let windows = self.runs.windows(count).enumerate();
        let first = windows.min_by_key(|(_, runs)| bytes_of(runs)).map_or(0, |(first, _)| first);
        let united: Vec<Run> = self.runs.drain(first..first + count).collect();
        let before = files.written_bytes();
        let nothing = Arena::default();
        let mut merge = Merge::new(&nothing, &united, files)?;
        let mut writer = RunWriter::new(files, layout);
        while let Some(source) = merge.next(&nothing, files, check)? {
            let (key, value) = merge.entry(&nothing, source);
            writer.push(files, key, value)?;
        }
        if let Some(run) = writer.finish(files)? {
            self.runs.insert(first, run);
        }
        self.reservation.account().add_spilled(files.written_bytes() - before);
        united.iter().for_each(|run| files.free(run));
        Ok(())
    }

    /// Memory to read so many runs at once, and to write another.
    fn readers_bytes(&self, runs: usize) -> usize {
        let layout = self.layout.unwrap_or(layout_for(0));
        runs * self.reader_bytes() + 3 * layout.block_bytes + layout.write_bytes
    }

    fn reader_bytes(&self) -> usize {
        self.runs.iter().map(|run| run.block_bytes_max).max().unwrap_or(0) + READER_BYTES
    }

    /// The next entry in order; `None` at the end, where nothing is held any more. Comes after
    /// [`finish`](Sorter::finish).
    ///
    /// # Errors
    /// As for [`push`](Sorter::push); a damaged block is [`Corrupt`](crate::ErrorKind::Corrupt).
    pub fn next<E: From<StorageError>>(
        &mut self,
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Option<(&[u8], &[u8])>, E> {
        let Some(source) = self.advance(check)? else {
            self.release();
            return Ok(None);
        };
        let Some(merge) = &self.merge else { return Ok(None) };
        let (key, value) = merge.entry(&self.arena, source);
        match (value, &self.files) {
            (RunValue::Far(place), Some(files)) => {
                read_far(files, place, &mut self.far)?;
                let held = self.merging_bytes + self.far.capacity();
                if held > self.reservation.bytes() {
                    self.reservation.hold(held);
                }
                Ok(Some((key, &self.far)))
            }
            (RunValue::Near(value) | RunValue::Far(value), _) => Ok(Some((key, value))),
        }
    }

    fn advance<E: From<StorageError>>(
        &mut self,
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        let Some(merge) = &mut self.merge else { return Ok(None) };
        match &self.files {
            Some(files) => merge.next(&self.arena, files, check),
            None => Ok(merge.next_of_memory(&self.arena)),
        }
    }

    /// Lets memory and files go. It has no entries afterwards.
    pub fn release(&mut self) {
        self.merge = None;
        self.arena = Arena::default();
        self.runs = Vec::new();
        self.files = None;
        self.far = Vec::new();
        self.reservation.hold(0);
    }
}

impl std::fmt::Debug for Sorter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sorter({} entries, {} runs, {:?})", self.entries, self.runs.len(), self.reservation)
    }
}

/// Runs of a sort with so much memory.
fn layout_for(memory_bytes: usize) -> RunLayout {
    RunLayout {
        block_bytes: (memory_bytes / BLOCK_SHARE).clamp(*BLOCK_BYTES.start(), *BLOCK_BYTES.end()),
        write_bytes: (memory_bytes / WRITE_SHARE).clamp(*WRITE_BYTES.start(), *WRITE_BYTES.end()),
    }
}

#[cfg(test)]
mod tests;
