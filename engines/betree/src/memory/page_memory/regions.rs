//! Regions: pieces of memory that are cut into slots of any size, and whose neighbouring gaps are merged
//! again.
//!
//! ```text
//!  region of 1 MiB     [ slot | gap |   slot   | slot |      gap      ]      gap: free steps of 512 bytes
//! ```
//!
//! # Terms
//! - *Step*: 512 bytes. Slots are multiples of it.
//! - *Gap*: free memory between two slots, or between a slot and an end of the region.
//!
//! # Algorithm
//! 1. A slot is cut from the region whose widest gap is the narrowest that suffices, and there from the
//!    narrowest gap that suffices. So wide gaps stay whole, and nearly empty regions become empty.
//! 2. A slot that comes back is merged with the gaps beside it.
//! 3. One region without slots is kept. Others go back to the allocator.
//!
//! The last slots that came back are kept as they are, for the next request of the same size. So a page that
//! is decoded for one read uses the memory of the page before, which the processor still has in its caches.
//!
//! # Invariants
//! - Every byte of a region is in exactly one gap or one slot. A `BytesMut` owns it, so no two can share a
//!   byte.
//! - No two gaps touch.
//! - `by_widest` has each region that has a gap, under the width of its widest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::BytesMut;

/// Slots are multiples of this many bytes. On average a slot wastes half a step, 4 % of a compressed page.
pub(crate) const STEP_BYTES: usize = 512;
/// The largest slot.
pub(crate) const SLOT_BYTES_MAX: usize = 128 * 1024;
const REGION_STEPS: usize = 2_048;
/// Empty regions that are kept for the next slot.
const EMPTY_KEPT: usize = 1;
/// Returned slots that are kept as they are, and the steps of the largest of them. A long scan has as many in
/// one batch.
const RECENT_KEPT: usize = 64;
const RECENT_STEPS_MAX: usize = 64;

/// A slot in use, and its place.
#[derive(Debug, Default)]
pub(crate) struct HeldSlot {
    pub(crate) memory: BytesMut,
    region: u32,
    /// The first step.
    at: u16,
}

/// See the [module](self).
pub(crate) struct Regions {
    regions: Vec<Region>,
    /// Widths in steps, with the numbers of their regions.
    by_widest: BTreeSet<(u16, u32)>,
    /// Numbers of regions that have no memory.
    without_memory: Vec<u32>,
    empty: usize,
    /// The slots that came back last, the latest at the end.
    recent: VecDeque<HeldSlot>,
    /// Whether no slot was taken or added since the last [`settle`](Regions::settle).
    is_quiet: bool,
    /// Steps in gaps and in `recent`.
    unused_steps: usize,
}

/// The gaps of a region by their first step; where it has no memory, none.
#[derive(Default)]
struct Region {
    gaps: BTreeMap<u16, BytesMut>,
    /// Steps of the widest gap.
    widest: u16,
}

impl Regions {
    pub(crate) const fn new() -> Regions {
        Regions {
            regions: Vec::new(),
            by_widest: BTreeSet::new(),
            without_memory: Vec::new(),
            empty: 0,
            recent: VecDeque::new(),
            is_quiet: true,
            unused_steps: 0,
        }
    }

    /// Bytes that no slot in use has.
    pub(crate) fn unused_bytes(&self) -> usize {
        self.unused_steps * STEP_BYTES
    }

    /// Bytes of slots in use.
    pub(crate) fn used_bytes(&self) -> usize {
        (self.regions.len() - self.without_memory.len()) * REGION_STEPS * STEP_BYTES - self.unused_bytes()
    }

    /// A slot of this many steps, where a gap has room for it.
    pub(crate) fn take(&mut self, steps: usize) -> Option<HeldSlot> {
        assert!((1..=SLOT_BYTES_MAX / STEP_BYTES).contains(&steps), "{steps} steps are no slot");
        if let Some(at) = self.recent.iter().rposition(|held| steps_of(&held.memory) == steps) {
            self.unused_steps -= steps;
            return self.recent.remove(at);
        }
        let (_, number) = *self.by_widest.range((steps as u16, 0)..).next()?;
        Some(self.take_from(number, steps))
    }

    /// A slot in a region that is added for it.
    pub(crate) fn take_new(&mut self, steps: usize) -> HeldSlot {
        let number = self.add();
        self.take_from(number, steps)
    }

    fn take_from(&mut self, number: u32, steps: usize) -> HeldSlot {
        if self.regions[number as usize].is_empty() {
            self.empty -= 1;
        }
        self.unused_steps -= steps;
        self.is_quiet = false;
        self.change(number, |region| {
            let (at, memory) = region.take(steps);
            HeldSlot { memory, region: number, at }
        })
    }

    /// Turns the recent slots into gaps, if no slot was taken or added since the last call. Returns memory to
    /// be freed.
    #[must_use]
    pub(crate) fn settle(&mut self) -> Vec<BytesMut> {
        if std::mem::replace(&mut self.is_quiet, true) { self.release_recent() } else { Vec::new() }
    }

    /// Turns the recent slots into gaps. Returns memory to be freed.
    #[must_use]
    pub(crate) fn release_recent(&mut self) -> Vec<BytesMut> {
        let recent = std::mem::take(&mut self.recent);
        recent.into_iter().filter_map(|held| self.release(held)).collect()
    }

    /// Takes a slot back. Returns memory to be freed.
    #[must_use]
    pub(crate) fn give_back(&mut self, held: HeldSlot) -> Option<BytesMut> {
        let steps = steps_of(&held.memory);
        self.unused_steps += steps;
        self.is_quiet = false;
        if steps > RECENT_STEPS_MAX {
            return self.release(held);
        }
        self.recent.push_back(held);
        if self.recent.len() <= RECENT_KEPT {
            return None;
        }
        let oldest = self.recent.pop_front()?;
        self.release(oldest)
    }

    /// Turns a slot into a gap. Returns memory to be freed.
    fn release(&mut self, held: HeldSlot) -> Option<BytesMut> {
        let number = held.region;
        self.change(number, |region| region.give_back(held.at, held.memory));
        if !self.regions[number as usize].is_empty() {
            return None;
        }
        if self.empty < EMPTY_KEPT {
            self.empty += 1;
            return None;
        }
        self.unused_steps -= REGION_STEPS;
        self.without_memory.push(number);
        self.change(number, |region| region.gaps.pop_first().map(|(_, memory)| memory))
    }

    /// Adds a region without slots and returns its number.
    fn add(&mut self) -> u32 {
        let number = self.without_memory.pop().unwrap_or_else(|| {
            self.regions.push(Region::default());
            (self.regions.len() - 1) as u32
        });
        let memory = BytesMut::zeroed(REGION_STEPS * STEP_BYTES);
        self.change(number, |region| region.gaps.insert(0, memory));
        self.empty += 1;
        self.unused_steps += REGION_STEPS;
        number
    }

    /// Changes the gaps of a region.
    fn change<T>(&mut self, number: u32, change: impl FnOnce(&mut Region) -> T) -> T {
        let region = &mut self.regions[number as usize];
        let result = change(region);
        let before = region.widest;
        region.widest = region.gaps.values().map(steps_of).max().unwrap_or(0) as u16;
        if region.widest != before {
            self.by_widest.remove(&(before, number));
            if region.widest > 0 {
                self.by_widest.insert((region.widest, number));
            }
        }
        result
    }
}

impl Region {
    /// Whether it has memory, and no slots in it.
    fn is_empty(&self) -> bool {
        usize::from(self.widest) == REGION_STEPS
    }

    /// Cuts a slot from the narrowest gap that suffices. The caller knows that there is one.
    fn take(&mut self, steps: usize) -> (u16, BytesMut) {
        let fitting = self.gaps.iter().filter(|(_, gap)| steps_of(gap) >= steps);
        let at = *fitting.min_by_key(|(_, gap)| gap.len()).expect("the region has a gap that will do").0;
        let mut gap = self.gaps.remove(&at).expect("it was just found");
        let slot = gap.split_to(steps * STEP_BYTES);
        if !gap.is_empty() {
            self.gaps.insert(at + steps as u16, gap);
        }
        (at, slot)
    }

    fn give_back(&mut self, at: u16, memory: BytesMut) {
        let end = at + steps_of(&memory) as u16;
        let (mut at, mut gap) = (at, memory);
        if let Some((before, _)) = self.gaps.range(..at).next_back()
            && let before = *before
            && usize::from(before) + steps_of(&self.gaps[&before]) == usize::from(at)
        {
            gap = merged(self.gaps.remove(&before).expect("it was just found"), gap);
            at = before;
        }
        if let Some(after) = self.gaps.remove(&end) {
            gap = merged(gap, after);
        }
        let other = self.gaps.insert(at, gap);
        assert!(other.is_none(), "a slot comes back once");
    }
}

/// Merges two adjacent pieces of memory.
fn merged(mut left: BytesMut, right: BytesMut) -> BytesMut {
    let start = left.as_ptr();
    left.unsplit(right);
    assert_eq!(left.as_ptr(), start, "adjacent pieces of a region are merged in place");
    left
}

fn steps_of(memory: &BytesMut) -> usize {
    memory.len() / STEP_BYTES
}

#[cfg(test)]
mod tests {
    use pando_environment::{Random, SeededRandom};

    use crate::memory::page_memory::regions::*;

    fn taken(regions: &mut Regions, steps: usize) -> HeldSlot {
        regions.take(steps).unwrap_or_else(|| regions.take_new(steps))
    }

    /// Asserts the invariants of gaps.
    fn check(regions: &Regions) {
        let mut unused = 0;
        for (number, region) in regions.regions.iter().enumerate() {
            let mut end = None;
            for (at, gap) in &region.gaps {
                assert!(end.is_none_or(|end| end < usize::from(*at)), "two gaps touch or overlap");
                assert_eq!(gap.len() % STEP_BYTES, 0);
                end = Some(usize::from(*at) + steps_of(gap));
                unused += steps_of(gap);
            }
            assert!(end.is_none_or(|end| end <= REGION_STEPS));
            let widest = region.gaps.values().map(steps_of).max().unwrap_or(0);
            assert_eq!(widest, usize::from(region.widest));
            assert_eq!(regions.by_widest.contains(&(region.widest, number as u32)), widest > 0);
        }
        unused += regions.recent.iter().map(|held| steps_of(&held.memory)).sum::<usize>();
        let with_gaps = regions.regions.iter().filter(|region| region.widest > 0).count();
        assert_eq!(regions.by_widest.len(), with_gaps);
        assert_eq!(unused, regions.unused_steps);
        let empty = regions.regions.iter().filter(|region| region.is_empty()).count();
        assert_eq!(empty, regions.empty);
        assert!(empty <= EMPTY_KEPT);
    }

    #[test]
    fn slots_never_overlap_and_all_memory_goes_back() {
        let random = SeededRandom::new(11);
        let (mut regions, mut held) = (Regions::new(), Vec::<(HeldSlot, u8)>::new());
        let mut used = 0;
        for round in 0..20_000u32 {
            let is_growing = round % 4_000 < 2_400;
            if held.is_empty() || random.next_u64() % 10 < if is_growing { 7 } else { 2 } {
                let steps = 1 + random.next_u64() as usize % if round % 50 == 0 { 256 } else { 32 };
                let mut slot = taken(&mut regions, steps);
                assert_eq!(slot.memory.len(), steps * STEP_BYTES);
                slot.memory.fill(round as u8);
                used += steps;
                held.push((slot, round as u8));
            } else {
                let (slot, filling) = held.swap_remove(random.next_u64() as usize % held.len());
                assert!(slot.memory.iter().all(|byte| *byte == filling), "somebody else wrote here");
                used -= steps_of(&slot.memory);
                drop(regions.give_back(slot));
            }
            assert_eq!(regions.used_bytes(), used * STEP_BYTES);
            if round % 100 == 0 {
                check(&regions);
            }
        }
        for (slot, _) in held {
            drop(regions.give_back(slot));
        }
        check(&regions);
        assert_eq!(regions.used_bytes(), 0);
        assert!(regions.settle().is_empty(), "slots came back a moment ago");
        drop(regions.settle());
        check(&regions);
        assert_eq!(regions.unused_bytes(), EMPTY_KEPT * REGION_STEPS * STEP_BYTES);
    }

    /// The part of memory between pages that come and go in a cache of a fixed size.
    fn unused_share(sizes: impl Fn(u64) -> usize) -> f64 {
        let random = SeededRandom::new(7);
        let (mut regions, mut held) = (Regions::new(), Vec::new());
        for _ in 0..200_000 {
            held.push(taken(&mut regions, sizes(random.next_u64())));
            while regions.used_bytes() > 64 << 20 {
                let gone = held.swap_remove(random.next_u64() as usize % held.len());
                drop(regions.give_back(gone));
            }
        }
        regions.unused_bytes() as f64 / (regions.unused_bytes() + regions.used_bytes()) as f64
    }

    #[test]
    fn little_lies_between_pages_that_come_and_go() {
        let compressed = unused_share(|draw| 8 + (draw % 6) as usize);
        let mixed = unused_share(|draw| if draw % 20 == 0 { 32 } else { 6 + (draw / 20 % 8) as usize });
        let any = unused_share(|draw| 1 + (draw % 40) as usize);
        assert!(compressed < 0.06 && mixed < 0.09 && any < 0.09, "{compressed} {mixed} {any}");
    }

    #[test]
    fn slots_of_another_size_take_the_memory_of_those_that_went() {
        let random = SeededRandom::new(5);
        let (mut regions, mut held) = (Regions::new(), Vec::new());
        for steps in [32, 11, 32, 7] {
            // Four times the present number of pages arrive, and others are evicted for them.
            for _ in 0..8_000 {
                held.push(taken(&mut regions, steps));
                while regions.used_bytes() > 32 << 20 {
                    let gone = held.swap_remove(random.next_u64() as usize % held.len());
                    drop(regions.give_back(gone));
                }
            }
            check(&regions);
            let (used, unused) = (regions.used_bytes(), regions.unused_bytes());
            assert!(unused < used / 2, "{unused} bytes beside {used} of slots of {steps} steps");
        }
    }
}
