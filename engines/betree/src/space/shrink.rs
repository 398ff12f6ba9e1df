//! Gives room back to the device: the free end of the file is cut off, and long free stretches within it become holes.
//!
//! 1. [`cut_free_end`](BlockStore::cut_free_end) cuts what is free at the end, but for what the file would soon grow by again.
//! 2. [`punch_next`](BlockStore::punch_next) takes a free stretch of 128 KiB or more out of the allocator, gives its room back,
//!    and returns it as free and *unbacked*. Before such units are written their room is reserved again, so that a full device
//!    shows where room is asked for, and not in the middle of a write.
//! 3. [`give_back_all`](BlockStore::give_back_all), before a store is closed or left alone, does so with all stretches from 8 KiB on.
//! 4. Where much is free and the end is not, a *ceiling* is set, behind which everything is moved away, step by step.
//!
//! What is free is reached by no superblock, no pinned generation and no reader, so that neither step needs an order of syncs:
//! whatever of it a crash undoes, nothing refers to it. After an open every long free stretch counts as unbacked, since nothing
//! remembers which are, and is punched (again) in due course.
//!
//! # Invariants
//! - The reserve for checkpoints keeps its room on the device.
//! - What is unbacked is free: what is being punched is neither, since several may punch at once.
//! - An error (a file system that cannot punch) leaves everything as it was.

use std::ops::Range;

use pando_environment::EnvironmentError;

use super::allocator::{Allocator, Purpose};
use super::{BlockStore, SpaceError};
use crate::base::{UNIT_BYTES, extents_of};

/// Shorter free stretches stay as they are, in units: 128 KiB. Leaves that were replaced leave a few hundred.
const HOLE_UNITS_MIN: u64 = 32;

/// The same before a store is closed or left alone, where nobody will write there soon: 8 KiB. Of a store of 350 MB some 4 MB lay in shorter ones than 16 KiB.
const REST_HOLE_UNITS_MIN: u64 = 2;

/// The most that is punched in one step, in units: 64 MiB.
const HOLE_UNITS_MAX: u64 = 16 * 1024;

/// What is known of free units.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// They have room on the device.
    Backed,
    /// They may have none.
    Doubted,
}

impl BlockStore {
    /// Cuts off what is free at the end of the file and not likely to be wanted soon; bytes cut.
    pub(crate) fn cut_free_end(&self) -> Result<u64, SpaceError> {
        let step = self.growth_step(self.allocator().lock().used_end());
        if self.allocator().lock().free_tail() <= 2 * step {
            return Ok(0);
        }
        self.cut_end(step)
    }

    /// Gives back all that is free and long enough, but for the reserve of checkpoints: before a store is closed, or left alone.
    /// Bytes given back.
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

    /// Cuts off what is free at the end, all but so many units; bytes cut.
    fn cut_end(&self, keep: u64) -> Result<u64, SpaceError> {
        let mut allocator = self.allocator().lock();
        // Under the lock: nobody may be given what is being cut off, and the file may not grow meanwhile. And what a failed
        // checkpoint leaves may be free here and reached from its superblock.
        self.check_poison()?;
        let end = allocator.end();
        let Some(new_end) = allocator.cut_tail(keep) else { return Ok(0) };
        let cut = self
            .back_reserve(&mut allocator)
            .and_then(|()| Ok(self.file().set_length(new_end * UNIT_BYTES)?));
        if let Err(error) = cut {
            allocator.grown(end);
            // Which of it had room is forgotten.
            allocator.set_unbacked(new_end..end);
            return Err(error);
        }
        self.set_file_bytes(new_end * UNIT_BYTES);
        Ok((end - new_end) * UNIT_BYTES)
    }

    /// Reserves room on the device for as many free units as the reserve has.
    fn back_reserve(&self, allocator: &mut Allocator) -> Result<(), SpaceError> {
        while let Some(units) = allocator.wanted_by_reserve() {
            self.file().allocate(units.start * UNIT_BYTES, (units.end - units.start) * UNIT_BYTES)?;
            allocator.take_unbacked(units);
        }
        Ok(())
    }

    /// While much of the file is free: the unit before which everything would find room. From then on all that is written goes
    /// before it, if there is room, and what lies behind it is to be [moved](crate::background::relocation).
    pub(crate) fn plan_ceiling(&self) -> Option<u64> {
        let mut allocator = self.allocator().lock();
        let used = allocator.end() - allocator.free_units() - allocator.pending_units();
        let ideal = used + used / 8 + 2 * self.growth_step(used) + allocator.reserve_units();
        let ceiling = (allocator.used_end() > ideal + ideal / 4).then_some(ideal);
        allocator.set_ceiling(ceiling);
        ceiling
    }

    /// Whether a checkpoint would make room behind the ceiling: it writes space map and catalog anew, and what was freed there
    /// can be used again, or cut off, only after checkpoints.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        let Some(durable) = self.durable.try_lock() else { return false };
        let mut extents = durable.map_extents();
        extents.extend(extents_of(durable.superblock().catalog().as_ref()));
        let allocator = self.allocator().lock();
        allocator.is_far_out(&extents) || allocator.is_pending_far_out()
    }

    /// Gives the room of one long free stretch back to the device; bytes given back, 0 where there is none.
    pub(crate) fn punch_next(&self) -> Result<u64, SpaceError> {
        let kept = self.growth_step(self.allocator().lock().end());
        self.punch(kept)
    }

    /// Gives back one long free stretch, if as much as `kept` units besides keeps its room.
    fn punch(&self, kept: u64) -> Result<u64, SpaceError> {
        self.check_poison()?;
        if let Some(doubted) = self.take_doubted(HOLE_UNITS_MIN)? {
            return self.punch_taken(doubted, Known::Doubted);
        }
        let taken = self.allocator().lock().take_to_punch(HOLE_UNITS_MIN, kept);
        taken.map_or(Ok(0), |units| self.punch_taken(units, Known::Backed))
    }

    /// Takes a doubted stretch of at least so many units that is to be punched. After an open all free room is doubted: of the first
    /// stretches the room is reserved instead, until that of the reserve for checkpoints is.
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

    /// Gives back taken units, the first of them where they are more than one step may give back, and frees all of them.
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

    /// Takes a run of units, with room on the device. Where there is none nothing has changed; why, if the device was asked.
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

    /// Reserves the room of what is unbacked among taken units; after an error nothing has changed.
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

    /// After an open: nothing remembers which free stretches are holes.
    pub(super) fn doubt_room(allocator: &mut Allocator) {
        for units in allocator.long_free(REST_HOLE_UNITS_MIN) {
            let starts = (units.start..units.end).step_by(HOLE_UNITS_MAX as usize);
            starts.for_each(|start| allocator.doubt(start..units.end.min(start + HOLE_UNITS_MAX)));
        }
    }
}
