//! Stretches of memory in which plots of any size lie side by side, and what is free between them becomes one again.
//!
//! # Terms
//! - *Step*: plots are multiples of it.
//! - *Gap*: what is free between two plots, or a plot and the end.
//!
//! # Steps
//! 1. A plot comes from the region whose widest gap is the narrowest that will do, and there from the narrowest gap that will do: what is wide
//!    stays whole, and what is nearly empty becomes empty.
//! 2. A plot that comes back becomes one with the gaps at its sides.
//! 3. A region without plots is kept, one of them; others go back to the allocator.
//!
//! The last few plots that came back are kept as they are, for those who want one of the same size: a page that is decoded for one read is made
//! where the one before was, in memory that the processor has in its caches.
//!
//! # Invariants
//! - Every byte of a region is in exactly one gap or one plot. `BytesMut` is what owns them: no two can have the same.
//! - No two gaps touch.
//! - `by_widest` has each region that has a gap, under the width of its widest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::BytesMut;

/// Plots are multiples of so many bytes: half of it is what one wastes on average, 4 % of a compressed page.
pub(crate) const STEP_BYTES: usize = 512;
/// The largest plot.
pub(crate) const SLOT_BYTES_MAX: usize = 128 * 1024;
const REGION_STEPS: usize = 2_048;
/// Empty regions that are kept for the next plot.
const EMPTY_KEPT: usize = 1;
/// Plots that are kept as they came back, and the steps of the largest that is. As many as a long scan has of one portion.
const RECENT_KEPT: usize = 64;
const RECENT_STEPS_MAX: usize = 64;

/// A plot that somebody has, and where it belongs.
#[derive(Debug, Default)]
pub(crate) struct Held {
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
    /// What came back last, the latest at the end.
    recent: VecDeque<Held>,
    /// Whether there was nothing to do since [`settle`](Regions::settle) looked.
    is_quiet: bool,
    /// Of gaps and what came back last.
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

    /// Bytes that nobody has.
    pub(crate) fn unused_bytes(&self) -> usize {
        self.unused_steps * STEP_BYTES
    }

    /// Bytes of plots that somebody has.
    pub(crate) fn used_bytes(&self) -> usize {
        (self.regions.len() - self.without_memory.len()) * REGION_STEPS * STEP_BYTES - self.unused_bytes()
    }

    /// A plot of so many steps, where there is a gap for it.
    pub(crate) fn take(&mut self, steps: usize) -> Option<Held> {
        assert!((1..=SLOT_BYTES_MAX / STEP_BYTES).contains(&steps), "{steps} steps are no plot");
        if let Some(at) = self.recent.iter().rposition(|held| steps_of(&held.memory) == steps) {
            self.unused_steps -= steps;
            return self.recent.remove(at);
        }
        let (_, number) = *self.by_widest.range((steps as u16, 0)..).next()?;
        Some(self.take_from(number, steps))
    }

    /// A plot of a region that is added.
    pub(crate) fn take_new(&mut self, steps: usize) -> Held {
        let number = self.add();
        self.take_from(number, steps)
    }

    fn take_from(&mut self, number: u32, steps: usize) -> Held {
        if self.regions[number as usize].is_empty() {
            self.empty -= 1;
        }
        self.unused_steps -= steps;
        self.is_quiet = false;
        self.change(number, |region| {
            let (at, memory) = region.take(steps);
            Held { memory, region: number, at }
        })
    }

    /// Makes gaps of what came back last, if nobody has taken or added a plot since the last time; memory that is not needed any more.
    #[must_use]
    pub(crate) fn settle(&mut self) -> Vec<BytesMut> {
        if std::mem::replace(&mut self.is_quiet, true) { self.join_recent() } else { Vec::new() }
    }

    /// Makes gaps of what came back last; memory that is not needed any more.
    #[must_use]
    pub(crate) fn join_recent(&mut self) -> Vec<BytesMut> {
        let recent = std::mem::take(&mut self.recent);
        recent.into_iter().filter_map(|held| self.join(held)).collect()
    }

    /// Takes a plot back; memory that is not needed any more.
    #[must_use]
    pub(crate) fn give_back(&mut self, held: Held) -> Option<BytesMut> {
        let steps = steps_of(&held.memory);
        self.unused_steps += steps;
        self.is_quiet = false;
        if steps > RECENT_STEPS_MAX {
            return self.join(held);
        }
        self.recent.push_back(held);
        if self.recent.len() <= RECENT_KEPT {
            return None;
        }
        let oldest = self.recent.pop_front()?;
        self.join(oldest)
    }

    /// Makes a plot a gap; memory that is not needed any more.
    fn join(&mut self, held: Held) -> Option<BytesMut> {
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

    /// Adds a region without plots; its number.
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
    /// Whether it has memory, and no plots in it.
    fn is_empty(&self) -> bool {
        usize::from(self.widest) == REGION_STEPS
    }

    /// A plot from the narrowest gap that will do, of which there is one.
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
            gap = joined(self.gaps.remove(&before).expect("it was just found"), gap);
            at = before;
        }
        if let Some(after) = self.gaps.remove(&end) {
            gap = joined(gap, after);
        }
        let other = self.gaps.insert(at, gap);
        assert!(other.is_none(), "a plot comes back once");
    }
}

/// Two stretches that touch as one.
fn joined(mut left: BytesMut, right: BytesMut) -> BytesMut {
    let start = left.as_ptr();
    left.unsplit(right);
    assert_eq!(left.as_ptr(), start, "stretches of a region that touch are joined where they are");
    left
}

fn steps_of(memory: &BytesMut) -> usize {
    memory.len() / STEP_BYTES
}

#[cfg(test)]
mod tests {
    use pando_environment::{Random, SeededRandom};

    use crate::memory::page_memory::regions::*;

    fn taken(regions: &mut Regions, steps: usize) -> Held {
        regions.take(steps).unwrap_or_else(|| regions.take_new(steps))
    }

    /// Asserts what the module's head says of gaps.
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
    fn plots_never_overlap_and_all_memory_goes_back() {
        let random = SeededRandom::new(11);
        let (mut regions, mut held) = (Regions::new(), Vec::<(Held, u8)>::new());
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
        assert!(regions.settle().is_empty(), "plots came back a moment ago");
        drop(regions.settle());
        check(&regions);
        assert_eq!(regions.unused_bytes(), EMPTY_KEPT * REGION_STEPS * STEP_BYTES);
    }

    /// Pages that come and go in a cache of a fixed size: how much of the memory lies between them.
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
    fn plots_of_another_size_take_the_memory_of_those_that_went() {
        let random = SeededRandom::new(5);
        let (mut regions, mut held) = (Regions::new(), Vec::new());
        for steps in [32, 11, 32, 7] {
            // Four times as many come as are there, and others go for them.
            for _ in 0..8_000 {
                held.push(taken(&mut regions, steps));
                while regions.used_bytes() > 32 << 20 {
                    let gone = held.swap_remove(random.next_u64() as usize % held.len());
                    drop(regions.give_back(gone));
                }
            }
            check(&regions);
            let (used, unused) = (regions.used_bytes(), regions.unused_bytes());
            assert!(unused < used / 2, "{unused} bytes beside {used} of plots of {steps} steps");
        }
    }
}
