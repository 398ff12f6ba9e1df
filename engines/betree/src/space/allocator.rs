//! The allocator of the data file: free units, and freed units that a superblock still reaches.
//!
//! # Algorithm
//! 1. [`allocate`](Allocator::allocate) takes the smallest free interval that is long enough. Where there is
//!    none, the caller lets the file [grow](Allocator::grown) and asks again.
//! 2. [`allocate_fragments`](Allocator::allocate_fragments) is the last resort. It takes several intervals,
//!    the longest first, each filled with whole blocks, so that fragmentation alone never refuses a leaf.
//! 3. Free units may be *unbacked*: their space was given back to the device ([`shrink`](super::shrink)). It
//!    is reserved again before they are written.
//! 4. [`defer`](Allocator::defer) keeps a freed extent pending until both superblock slots are at or past the
//!    generation that was being built when it was freed. Then [`release`](Allocator::release) frees it.
//!
//! Invariants: free, pending and allocated units never overlap. Every free unit lies within the file.
//!
//! Not here: the units that each generation uses (`checkpoint`), and the file itself (`block_store`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::interval_set::IntervalSet;
use crate::base::{Extent, Generation, UNIT_BYTES};

/// The most fragments of one write.
const FRAGMENTS_MAX: usize = 8;

/// The purpose of an allocation, which decides whether it may use the reserve for checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Data: the reserve stays untouched.
    Data,
    /// A checkpoint: it frees more than it takes.
    Checkpoint,
    /// Data that moves so that the end of the file becomes free. It goes before the ceiling, and the file
    /// does not grow for it.
    Relocation,
}

/// The length of a block in bytes, and whether it must begin a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockLength {
    pub(super) bytes: u64,
    pub(super) begins_unit: bool,
}

/// A run of units with the number of blocks that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    pub(super) units: Range<u64>,
    pub(super) blocks: usize,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Allocator {
    free: IntervalSet,
    /// The free intervals as (length, start).
    by_length: BTreeSet<(u64, u64)>,
    /// Freed units, by the generation that was being built when they were freed.
    pending: BTreeMap<Generation, Vec<Range<u64>>>,
    pending_units: u64,
    /// Free units that have, or may have, no space on the device.
    unbacked: IntervalSet,
    /// The part of `unbacked` whose state is unknown. It is punched to make the state known.
    doubted: Vec<Range<u64>>,
    /// The generation of the older superblock slot, as far as it is known.
    older_slot: Generation,
    /// Pinned generations, each with its number of pins.
    pins: BTreeMap<Generation, usize>,
    /// While the file is to shrink: new data goes before this unit, if there is room.
    ceiling: Option<u64>,
    /// The file's length in units.
    end: u64,
    reserve_units: u64,
}

impl Allocator {
    /// An allocator of a file without free units.
    pub(super) fn new(end: u64, reserve_units: u64) -> Allocator {
        Allocator {
            free: IntervalSet::new(),
            by_length: BTreeSet::new(),
            pending: BTreeMap::new(),
            pending_units: 0,
            unbacked: IntervalSet::new(),
            doubted: Vec::new(),
            older_slot: Generation::default(),
            pins: BTreeMap::new(),
            ceiling: None,
            end,
            reserve_units,
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn free_units(&self) -> u64 {
        self.free.total()
    }

    pub(super) fn pending_units(&self) -> u64 {
        self.pending_units
    }

    pub(super) fn free_overlap(&self, units: &Range<u64>) -> Option<Range<u64>> {
        self.free.overlap(units)
    }

    /// Free units at the very end of the file.
    pub(super) fn free_tail(&self) -> u64 {
        self.free
            .iter()
            .next_back()
            .filter(|last| last.end == self.end)
            .map_or(0, |last| last.end - last.start)
    }

    /// The number of units by which the file must grow before [`allocate`](Allocator::allocate) can succeed;
    /// zero if it can now.
    pub(super) fn growth_needed(&self, units: u64, purpose: Purpose) -> u64 {
        let for_fit =
            if self.by_length.range((units, 0)..).next().is_some() { 0 } else { units - self.free_tail() };
        let kept = match purpose {
            Purpose::Data | Purpose::Relocation => self.reserve_units,
            Purpose::Checkpoint => 0,
        };
        for_fit.max((units + kept).saturating_sub(self.free.total()))
    }

    /// Takes the smallest free interval that is long enough, if the purpose may.
    pub(super) fn allocate(&mut self, units: u64, purpose: Purpose) -> Option<Range<u64>> {
        assert!(units > 0, "nothing is never allocated");
        if self.growth_needed(units, purpose) > 0 {
            return None;
        }
        let mut fitting = self.by_length.range((units, 0)..);
        let start = match self.ceiling {
            None => fitting.next()?.1,
            Some(ceiling) => match fitting.clone().find(|(_, start)| start + units <= ceiling) {
                Some((_, start)) => *start,
                None if purpose == Purpose::Relocation => return None,
                None => fitting.next()?.1,
            },
        };
        let taken = start..start + units;
        self.take(taken.clone());
        Some(taken)
    }

    /// Takes a run of units that have space on the device, wherever it is: the last resort on a full device.
    pub(super) fn allocate_backed(&mut self, units: u64, purpose: Purpose) -> Option<Range<u64>> {
        let kept = match purpose {
            Purpose::Relocation => return None,
            Purpose::Data => self.reserve_units,
            Purpose::Checkpoint => 0,
        };
        if self.backed_units() < units + kept {
            return None;
        }
        let backed = self.free.iter().flat_map(|free| self.unbacked.gaps(free));
        let found = backed.into_iter().find(|gap| gap.end - gap.start >= units)?;
        let taken = found.start..found.start + units;
        self.take(taken.clone());
        Some(taken)
    }

    /// The unbacked part of allocated units, which the caller is about to reserve.
    pub(super) fn take_unbacked(&mut self, units: Range<u64>) -> Vec<Range<u64>> {
        self.unbacked.take(units).0
    }

    /// Marks free units as unbacked: they have no space on the device, or may have none.
    pub(super) fn set_unbacked(&mut self, units: Range<u64>) {
        for gap in self.unbacked.gaps(units) {
            self.unbacked.insert(gap).expect("a gap of the set is not in it");
        }
    }

    /// Marks free units as doubted: they may have space on the device, or not.
    pub(super) fn doubt(&mut self, units: Range<u64>) {
        self.set_unbacked(units.clone());
        self.doubted.push(units);
    }

    /// Takes a run of at least this many doubted free units, to be punched. It is not unbacked any more.
    pub(super) fn take_doubted(&mut self, least: u64) -> Option<Range<u64>> {
        while let Some(units) = self.doubted.pop() {
            let Some(part) = self.free.overlap(&units) else { continue };
            if part.end < units.end {
                self.doubted.push(part.end..units.end);
            }
            if part.end - part.start >= least {
                self.take(part.clone());
                self.unbacked.take(part.clone());
                return Some(part);
            }
        }
        None
    }

    /// Takes the longest run of at least `least` free units with space on the device, as long as `keep` such
    /// units remain.
    pub(super) fn take_to_punch(&mut self, least: u64, keep: u64) -> Option<Range<u64>> {
        let backed = self.backed_units();
        let most = backed.checked_sub(keep.max(self.reserve_units)).filter(|most| *most >= least)?;
        let intervals = self.by_length.iter().rev().take_while(|(length, _)| *length >= least);
        let gaps = intervals.flat_map(|(length, start)| self.unbacked.gaps(*start..*start + *length));
        let longest =
            gaps.max_by_key(|gap| gap.end - gap.start).filter(|gap| gap.end - gap.start >= least)?;
        let taken = longest.start..longest.end.min(longest.start + most);
        self.take(taken.clone());
        Some(taken)
    }

    /// All runs of at least this many free units with space on the device.
    pub(super) fn backed_runs(&self, least: u64) -> Vec<Range<u64>> {
        let gaps = self.free.iter().flat_map(|free| self.unbacked.gaps(free));
        gaps.filter(|gap| gap.end - gap.start >= least).collect()
    }

    /// Takes these units if they are still free and the reserve, which stays backed, does not need them.
    pub(super) fn take_backed(&mut self, units: &Range<u64>) -> bool {
        let is_spare = self.backed_units() >= self.reserve_units + (units.end - units.start);
        let is_there = is_spare && self.free.contains(units);
        if is_there {
            self.take(units.clone());
            self.unbacked.take(units.clone());
        }
        is_there
    }

    /// Cuts free units off the end of the file, all but `keep`. Returns the new length.
    pub(super) fn cut_tail(&mut self, keep: u64) -> Option<u64> {
        let cut = self.free_tail().min(self.free.total().saturating_sub(self.reserve_units));
        let cut = cut.checked_sub(keep).filter(|cut| *cut > 0)?;
        let end = self.end - cut;
        self.take(end..self.end);
        self.unbacked.take(end..self.end);
        self.end = end;
        Some(end)
    }

    /// Free units that are known to have space on the device.
    fn backed_units(&self) -> u64 {
        self.free.total().checked_sub(self.unbacked.total()).expect("what is unbacked is free")
    }

    /// Whether less than the reserve is known to have space on the device.
    pub(super) fn lacks_reserve(&self) -> bool {
        self.backed_units() < self.reserve_units
    }

    /// An unbacked run that the reserve should get; `None` where the reserve is complete.
    pub(super) fn wanted_by_reserve(&self) -> Option<Range<u64>> {
        let missing = self.reserve_units.checked_sub(self.backed_units()).filter(|missing| *missing > 0)?;
        let first = self.unbacked.iter().next()?;
        Some(first.start..first.end.min(first.start + missing))
    }

    pub(super) fn reserve_units(&self) -> u64 {
        self.reserve_units
    }

    /// The unit after the last that is not free.
    pub(super) fn used_end(&self) -> u64 {
        self.end - self.free_tail()
    }

    /// Sets the unit before which new data goes, if there is room; `None`: wherever it fits best.
    pub(super) fn set_ceiling(&mut self, ceiling: Option<u64>) {
        self.ceiling = ceiling;
    }

    /// Whether one of the extents reaches beyond the ceiling.
    pub(super) fn reaches_beyond_ceiling(&self, extents: &[Extent]) -> bool {
        self.ceiling.is_some_and(|ceiling| extents.iter().any(|extent| extent.end() > ceiling))
    }

    /// Whether units beyond the ceiling are pending.
    pub(super) fn has_pending_beyond_ceiling(&self) -> bool {
        let mut pending = self.pending.values().flatten();
        self.ceiling.is_some_and(|ceiling| pending.any(|units| units.end > ceiling))
    }

    /// Free units without space on the device.
    pub(super) fn unbacked_units(&self) -> u64 {
        self.unbacked.total()
    }

    /// The free intervals of at least this many units.
    pub(super) fn long_free(&self, least: u64) -> Vec<Range<u64>> {
        self.free.iter().filter(|units| units.end - units.start >= least).collect()
    }

    /// Takes several intervals that hold the blocks in their order, the longest first.
    pub(super) fn allocate_fragments(
        &mut self,
        blocks: &[BlockLength],
        purpose: Purpose,
    ) -> Option<Vec<Fragment>> {
        let mut fragments = Vec::new();
        let mut placed = 0;
        while placed < blocks.len() && fragments.len() < FRAGMENTS_MAX {
            let Some(&(length, start)) = self.by_length.iter().next_back() else { break };
            let (count, bytes) = fitting(&blocks[placed..], length * UNIT_BYTES);
            if count == 0 {
                break;
            }
            let units = start..start + bytes.div_ceil(UNIT_BYTES);
            self.take(units.clone());
            fragments.push(Fragment { units, blocks: count });
            placed += count;
        }
        let keeps_reserve = purpose == Purpose::Checkpoint || self.free.total() >= self.reserve_units;
        if placed == blocks.len() && keeps_reserve {
            return Some(fragments);
        }
        for fragment in fragments {
            self.free_now(fragment.units);
        }
        None
    }

    /// The file has grown to this many units; the new ones are free.
    pub(super) fn grown(&mut self, end: u64) {
        let new = self.end..end;
        self.end = end;
        self.free_now(new);
    }

    /// Makes these units free at once.
    ///
    /// # Panics
    /// If one of them is free already, or lies outside the file. Such a bug would destroy data, so it stops
    /// here.
    pub(super) fn free_now(&mut self, units: Range<u64>) {
        assert!(units.end <= self.end, "units {units:?} are freed, but the file ends at {}", self.end);
        match self.free.insert(units.clone()) {
            Ok(joined) => {
                let start = joined.left.as_ref().map_or(units.start, |left| left.start);
                let end = joined.right.as_ref().map_or(units.end, |right| right.end);
                for old in joined.left.into_iter().chain(joined.right) {
                    self.by_length.remove(&(old.end - old.start, old.start));
                }
                self.by_length.insert((end - start, start));
            }
            Err(overlap) => panic!("units {overlap:?} are freed twice"),
        }
    }

    /// Makes these units pending until both superblock slots have reached `generation`.
    pub(super) fn defer(&mut self, units: Range<u64>, generation: Generation) {
        assert!(self.free.overlap(&units).is_none(), "units {units:?} are freed, and free already");
        self.pending_units += units.end - units.start;
        self.pending.entry(generation).or_default().push(units);
    }

    /// Frees the pending units that neither a superblock slot nor a pinned generation reaches: those that
    /// were freed before or while the oldest of these generations was built.
    pub(super) fn release(&mut self, older_slot: Generation) {
        self.older_slot = self.older_slot.max(older_slot);
        let oldest_pin = self.pins.keys().next().copied();
        let reached = oldest_pin.map_or(self.older_slot, |pin| pin.min(self.older_slot));
        let later = self.pending.split_off(&reached.next());
        for units in std::mem::replace(&mut self.pending, later).into_values().flatten() {
            self.pending_units -= units.end - units.start;
            self.free_now(units);
        }
    }

    /// Keeps the units that this generation reaches until it is [unpinned](Allocator::unpin). It must be that
    /// of a superblock slot.
    pub(super) fn pin(&mut self, generation: Generation) {
        assert!(generation >= self.older_slot, "{generation:?} may have lost extents already");
        *self.pins.entry(generation).or_default() += 1;
    }

    /// Ends one [`pin`](Allocator::pin).
    pub(super) fn unpin(&mut self, generation: Generation) {
        let count = self.pins.get_mut(&generation).expect("only what is pinned is unpinned");
        *count -= 1;
        if *count == 0 {
            self.pins.remove(&generation);
        }
        self.release(self.older_slot);
    }

    /// The number of pins.
    pub(super) fn pins(&self) -> usize {
        self.pins.values().sum()
    }

    /// Free and pending units as one set. The audit compares it with the units that are reached.
    pub(super) fn reusable(&self) -> Result<IntervalSet, Range<u64>> {
        let mut all = self.free.clone();
        for units in self.pending.values().flatten() {
            all.insert(units.clone())?;
        }
        Ok(all)
    }

    fn take(&mut self, units: Range<u64>) {
        let around = self.free.remove(&units).expect("units that are taken were found free");
        self.by_length.remove(&(around.end - around.start, around.start));
        for rest in [around.start..units.start, units.end..around.end] {
            if rest.start < rest.end {
                self.by_length.insert((rest.end - rest.start, rest.start));
            }
        }
    }
}

/// The number of blocks that fit into this many bytes, and the bytes that they take.
fn fitting(blocks: &[BlockLength], bytes_max: u64) -> (usize, u64) {
    let mut end = 0;
    for (at, block) in blocks.iter().enumerate() {
        let next = block_start(end, *block) + block.bytes;
        if next > bytes_max {
            return (at, end);
        }
        end = next;
    }
    (blocks.len(), end)
}

/// The start of a block that is placed behind `end`.
pub(super) fn block_start(end: u64, block: BlockLength) -> u64 {
    if block.begins_unit { end.next_multiple_of(UNIT_BYTES) } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocator(free: &[(u64, u64)], reserve: u64) -> Allocator {
        let mut allocator = Allocator::new(1_000, reserve);
        free.iter().for_each(|(start, end)| allocator.free_now(*start..*end));
        allocator
    }

    #[test]
    fn the_smallest_interval_that_fits_is_taken() {
        let mut allocator = allocator(&[(0, 10), (20, 24), (30, 35)], 0);
        assert_eq!(allocator.allocate(4, Purpose::Data), Some(20..24));
        assert_eq!(allocator.allocate(4, Purpose::Data), Some(30..34));
        assert_eq!(allocator.allocate(11, Purpose::Data), None);
        assert_eq!(allocator.growth_needed(11, Purpose::Data), 11);
        assert_eq!(allocator.free_units(), 11);
    }

    #[test]
    fn growth_joins_the_free_end_of_the_file() {
        let mut allocator = allocator(&[(990, 1_000)], 0);
        assert_eq!(allocator.growth_needed(15, Purpose::Data), 5);
        allocator.grown(1_005);
        assert_eq!(allocator.allocate(15, Purpose::Data), Some(990..1_005));
    }

    #[test]
    fn data_leaves_the_reserve_to_checkpoints() {
        let mut allocator = allocator(&[(0, 20)], 10);
        assert_eq!(allocator.allocate(11, Purpose::Data), None);
        assert_eq!(allocator.growth_needed(11, Purpose::Data), 1);
        assert_eq!(allocator.allocate(11, Purpose::Checkpoint), Some(0..11));
        let block = BlockLength { bytes: UNIT_BYTES, begins_unit: false };
        assert_eq!(allocator.allocate_fragments(&[block], Purpose::Data), None);
        assert_eq!(allocator.free_units(), 9);
    }

    #[test]
    fn fragments_hold_whole_blocks_the_longest_interval_first() {
        let mut allocator = allocator(&[(0, 2), (10, 13), (20, 21)], 0);
        let block = |bytes| BlockLength { bytes, begins_unit: false };
        let blocks = [block(6_144), block(4_608), block(512), block(4_096)];
        let fragments = allocator.allocate_fragments(&blocks, Purpose::Data).unwrap();
        assert_eq!(fragments, [Fragment { units: 10..13, blocks: 3 }, Fragment { units: 0..1, blocks: 1 }]);
        assert_eq!(allocator.free_units(), 2);
        assert_eq!(allocator.allocate_fragments(&[block(8_192)], Purpose::Data), None);
        assert_eq!(allocator.free_units(), 2);
    }

    #[test]
    fn freed_units_come_back_when_both_slots_have_passed() {
        let generation = Generation::new;
        let mut allocator = allocator(&[], 0);
        allocator.defer(0..5, generation(3));
        allocator.defer(5..9, generation(4));
        allocator.release(generation(2));
        assert_eq!((allocator.free_units(), allocator.pending_units()), (0, 9));
        allocator.release(generation(3));
        assert_eq!((allocator.free_units(), allocator.pending_units()), (5, 4));
        allocator.release(generation(4));
        assert_eq!((allocator.free_units(), allocator.pending_units()), (9, 0));
    }

    #[test]
    fn punched_extents_are_told_when_they_are_taken_and_the_reserve_keeps_its_room() {
        let mut allocator = allocator(&[(0, 100), (200, 250), (990, 1_000)], 20);
        assert_eq!(allocator.take_to_punch(60, 30), Some(0..100));
        allocator.set_unbacked(0..100);
        allocator.free_now(0..100);
        assert_eq!(allocator.take_to_punch(50, 30), None, "only 60 units have room, and 30 stay");
        assert_eq!(allocator.take_to_punch(20, 30), Some(200..230));
        allocator.free_now(200..230);
        assert_eq!(allocator.unbacked_units(), 100);
        assert_eq!(allocator.allocate(60, Purpose::Data), Some(0..60));
        assert_eq!(allocator.take_unbacked(0..60).first(), Some(&(0..60)));
        assert_eq!(allocator.allocate_backed(40, Purpose::Data), Some(200..240));
        assert_eq!(allocator.allocate_backed(20, Purpose::Data), None);
        assert_eq!(allocator.allocate(40, Purpose::Data), Some(60..100));
    }

    #[test]
    fn giving_back_at_rest_spares_the_reserve_and_extents_that_others_took_meanwhile() {
        let mut allocator = allocator(&[(0, 10), (20, 24), (30, 32), (40, 60)], 12);
        allocator.set_unbacked(40..45);
        let runs = allocator.backed_runs(4);
        assert_eq!(runs, [0..10, 20..24, 45..60]);
        assert_eq!(allocator.allocate(4, Purpose::Data), Some(20..24));
        let taken: Vec<bool> = runs.iter().map(|run| allocator.take_backed(run)).collect();
        assert_eq!(taken, [true, false, false], "27 units have room, and 12 keep it");
    }

    #[test]
    fn another_task_may_look_for_more_while_doubted_units_are_punched() {
        let mut allocator = allocator(&[(0, 100), (200, 210)], 0);
        allocator.doubt(0..100);
        assert_eq!(allocator.take_doubted(32), Some(0..100));
        assert_eq!(allocator.take_to_punch(32, 0), None, "only 10 units are free now");
        assert_eq!(allocator.take_to_punch(10, 0), Some(200..210));
    }

    #[test]
    fn the_free_end_of_the_file_is_cut_off_but_for_what_is_to_be_kept() {
        let mut allocator = allocator(&[(100, 200), (900, 1_000)], 10);
        assert_eq!((allocator.used_end(), allocator.cut_tail(100)), (900, None));
        assert_eq!(allocator.cut_tail(30), Some(930));
        assert_eq!((allocator.end(), allocator.free_units()), (930, 130));
        allocator.grown(1_000);
        assert_eq!(allocator.free_tail(), 100);
    }

    #[test]
    fn extents_that_a_pinned_generation_reaches_wait_until_the_last_pin_is_gone() {
        let generation = Generation::new;
        let mut allocator = allocator(&[], 0);
        allocator.defer(0..5, generation(3));
        allocator.pin(generation(3));
        allocator.pin(generation(3));
        allocator.defer(5..9, generation(4));
        allocator.release(generation(6));
        assert_eq!((allocator.free_units(), allocator.pending_units()), (5, 4));
        allocator.unpin(generation(3));
        assert_eq!((allocator.free_units(), allocator.pending_units()), (5, 4));
        allocator.unpin(generation(3));
        assert_eq!((allocator.free_units(), allocator.pending_units()), (9, 0));
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn freeing_twice_is_a_mistake_that_shows() {
        let mut allocator = allocator(&[(0, 10)], 0);
        allocator.free_now(9..11);
    }
}
