//! Return of space to the device: the free end of the file is cut off, and long free runs inside become
//! holes.
//!
//! 1. [`cut_free_end`](BlockStore::cut_free_end) cuts the free end, but for the part that the file would soon
//!    grow by again.
//! 2. [`punch_next`](BlockStore::punch_next) takes a free run of 128 KiB or more out of the allocator,
//!    punches a hole, and returns it as free and *unbacked*. The space of unbacked units is reserved again
//!    before they are written. So a full device shows at the allocation and not in the middle of a write.
//! 3. [`give_back_all`](BlockStore::give_back_all) does so with all runs from 8 KiB on, before a store is
//!    closed or left idle.
//! 4. If much of the file is free but its end is not, a *ceiling* is set. Everything behind the ceiling is
//!    moved away, step by step.
//!
//! No superblock, no pinned generation and no reader reaches a free unit. So no step needs an order of syncs:
//! a crash may undo any of it. The file does not record holes. After an open every long free run therefore
//! counts as *doubted*, and is punched (again) in due course.
//!
//! # Invariants
//! - The reserve for checkpoints keeps its space on the device.
//! - Unbacked units are free. Units that are being punched are neither, since several threads may punch at
//!   once.
//! - An error, such as a file system that cannot punch holes, leaves everything as it was.

use std::ops::Range;

use pando_environment::EnvironmentError;

use super::allocator::{Allocator, Purpose};
use super::{BlockStore, SpaceError};
use crate::base::{UNIT_BYTES, extents_of};

/// The shortest free run that is punched, in units: 128 KiB. The replacement of a leaf leaves a few hundred
/// units.
const HOLE_UNITS_MIN: u64 = 32;

/// The shortest run before a store is closed or left idle, where writes are not expected soon: 8 KiB. In a
/// store of 350 MB, 4 MB were in runs below 16 KiB.
const REST_HOLE_UNITS_MIN: u64 = 2;

/// The most that one step punches, in units: 64 MiB.
const HOLE_UNITS_MAX: u64 = 16 * 1024;

/// The state of free units.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// They have space on the device.
    Backed,
    /// They may have no space on the device.
    Doubted,
}

impl BlockStore {
    /// Cuts off the free end of the file, but for the part that will be needed soon. Returns the bytes cut.
    pub(crate) fn cut_free_end(&self) -> Result<u64, SpaceError> {
        let step = self.growth_step(self.allocator().lock().used_end());
        if self.allocator().lock().free_tail() <= 2 * step {
            return Ok(0);
        }
        self.cut_end(step)
    }

    /// Gives back all free runs that are long enough, but for the reserve of checkpoints, before a store is
    /// closed or left idle. Returns the bytes given back.
    pub(crate) fn give_back_all(&self) -> Result<u64, SpaceError> {
        let mut bytes = self.cut_end(0)?;
        while let Some(doubted) = self.take_doubted(REST_HOLE_UNITS_MIN)? {
            bytes += self.punch_taken(doubted, Known::Doubted)?;
        }
        let runs = self.allocator().lock().backed_runs(REST_HOLE_UNITS_MIN);
        let part = |run: &Range<u64>, start: u64| start..run.end.min(start + HOLE_UNITS_MAX);
        let starts = |run: &Range<u64>| (run.start..run.end).step_by(HOLE_UNITS_MAX as usize);
        for units in runs.iter().flat_map(|run| starts(run).map(|start| part(run, start))) {
            if self.allocator().lock().take_backed(&units) {
                bytes += self.punch_taken(units, Known::Backed)?;
            }
        }
        Ok(bytes)
    }

    /// Cuts off the free end of the file, all but `keep` units. Returns the bytes cut.
    fn cut_end(&self, keep: u64) -> Result<u64, SpaceError> {
        let mut allocator = self.allocator().lock();
        // Under the lock: no units of the end may be allocated, and the file may not grow meanwhile. The
        // poison is checked because units that a failed checkpoint leaves free here may be reached from its
        // superblock.
        self.check_poison()?;
        let end = allocator.end();
        let Some(new_end) = allocator.cut_tail(keep) else { return Ok(0) };
        let cut = self
            .back_reserve(&mut allocator)
            .and_then(|()| Ok(self.file().set_length(new_end * UNIT_BYTES)?));
        if let Err(error) = cut {
            allocator.grown(end);
            // It is unknown which of these units have space.
            allocator.set_unbacked(new_end..end);
            return Err(error);
        }
        self.set_file_bytes(new_end * UNIT_BYTES);
        Ok((end - new_end) * UNIT_BYTES)
    }

    /// Reserves space on the device for as many free units as the reserve has.
    fn back_reserve(&self, allocator: &mut Allocator) -> Result<(), SpaceError> {
        while let Some(units) = allocator.wanted_by_reserve() {
            self.file().allocate(units.start * UNIT_BYTES, (units.end - units.start) * UNIT_BYTES)?;
            allocator.take_unbacked(units);
        }
        Ok(())
    }

    /// The unit before which all data would find room, while much of the file is free. From then on new data
    /// goes before it, if there is room, and data behind it is to be [moved](crate::background::relocation).
    pub(crate) fn plan_ceiling(&self) -> Option<u64> {
        let mut allocator = self.allocator().lock();
        let used = allocator.end() - allocator.free_units() - allocator.pending_units();
        let ideal = used + used / 8 + 2 * self.growth_step(used) + allocator.reserve_units();
        let ceiling = (allocator.used_end() > ideal + ideal / 4).then_some(ideal);
        allocator.set_ceiling(ceiling);
        ceiling
    }

    /// Whether a checkpoint would make room behind the ceiling. It writes space map and catalog anew. Units
    /// that were freed there can be reused or cut off only after checkpoints.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        let Some(durable) = self.durable.try_lock() else { return false };
        let mut extents = durable.map_extents();
        extents.extend(extents_of(durable.superblock().catalog().as_ref()));
        let allocator = self.allocator().lock();
        allocator.reaches_beyond_ceiling(&extents) || allocator.has_pending_beyond_ceiling()
    }

    /// Punches one long free run. Returns the bytes given back, 0 if there is none.
    pub(crate) fn punch_next(&self) -> Result<u64, SpaceError> {
        let kept = self.growth_step(self.allocator().lock().end());
        self.punch(kept)
    }

    /// Punches one long free run, if `kept` other units keep their space.
    fn punch(&self, kept: u64) -> Result<u64, SpaceError> {
        self.check_poison()?;
        if let Some(doubted) = self.take_doubted(HOLE_UNITS_MIN)? {
            return self.punch_taken(doubted, Known::Doubted);
        }
        let taken = self.allocator().lock().take_to_punch(HOLE_UNITS_MIN, kept);
        taken.map_or(Ok(0), |units| self.punch_taken(units, Known::Backed))
    }

    /// Takes a doubted run of at least `least` units that is to be punched. After an open all free space is
    /// doubted. The first runs are reserved instead of punched, until the reserve for checkpoints is backed.
    fn take_doubted(&self, least: u64) -> Result<Option<Range<u64>>, SpaceError> {
        let mut allocator = self.allocator().lock();
        loop {
            let Some(units) = allocator.take_doubted(least) else { return Ok(None) };
            if !allocator.lacks_reserve() {
                return Ok(Some(units));
            }
            let bytes = (units.end - units.start) * UNIT_BYTES;
            let reserved = self.file().allocate(units.start * UNIT_BYTES, bytes);
            allocator.free_now(units.clone());
            if let Err(error) = reserved {
                allocator.doubt(units);
                return Err(error.into());
            }
        }
    }

    /// Punches taken units, only the first of them if they exceed the limit of one step, and frees all of
    /// them.
    fn punch_taken(&self, units: Range<u64>, known: Known) -> Result<u64, SpaceError> {
        let hole = units.start..units.end.min(units.start + HOLE_UNITS_MAX);
        let bytes = (hole.end - hole.start) * UNIT_BYTES;
        let offset = hole.start * UNIT_BYTES;
        let punched = self.check_poison().and_then(|()| Ok(self.file().punch_hole(offset, bytes)?));
        let mut allocator = self.allocator().lock();
        if punched.is_ok() || known == Known::Doubted {
            allocator.set_unbacked(hole);
        }
        allocator.free_now(units);
        punched?;
        Ok(bytes)
    }

    /// Takes a run of units with space on the device. If there is none nothing has changed; the error says
    /// why, if the device was asked.
    pub(super) fn allocate_with_room(
        &self,
        allocator: &mut Allocator,
        units: u64,
        purpose: Purpose,
    ) -> Result<Range<u64>, Option<EnvironmentError>> {
        let taken = allocator.allocate(units, purpose).ok_or(None)?;
        let Err(refused) = self.reserve_room(allocator, &taken) else { return Ok(taken) };
        allocator.free_now(taken);
        allocator.allocate_backed(units, purpose).ok_or(Some(refused))
    }

    /// Reserves space for the unbacked part of taken units. After an error nothing has changed.
    pub(super) fn reserve_room(
        &self,
        allocator: &mut Allocator,
        taken: &Range<u64>,
    ) -> Result<(), EnvironmentError> {
        let unbacked = allocator.take_unbacked(taken.clone());
        let reserve = |units: &Range<u64>| {
            self.file().allocate(units.start * UNIT_BYTES, (units.end - units.start) * UNIT_BYTES)
        };
        let reserved = unbacked.iter().try_for_each(reserve);
        if reserved.is_err() {
            unbacked.into_iter().for_each(|units| allocator.set_unbacked(units));
        }
        reserved
    }

    /// After an open: marks long free runs as doubted, because the file does not record holes.
    pub(super) fn doubt_room(allocator: &mut Allocator) {
        for units in allocator.long_free(REST_HOLE_UNITS_MIN) {
            let starts = (units.start..units.end).step_by(HOLE_UNITS_MAX as usize);
            starts.for_each(|start| allocator.doubt(start..units.end.min(start + HOLE_UNITS_MAX)));
        }
    }
}
