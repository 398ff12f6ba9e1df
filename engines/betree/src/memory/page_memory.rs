//! The memory of cached pages: pages lie side by side in regions that all threads of the process share.
//!
//! One thread allocates a page (a reader, a flush) and another drops it (the one that evicts it), tens of
//! thousands of times a second. Hardly two pages have the same size. An allocator with a heap for each thread
//! keeps spans of every size in each heap. 64 threads that read through a cache of 201 MB had a resident set
//! of 369 MB, with 197 MB in use.
//!
//! # Terms
//! - *Region*: a piece of memory that pages share ([`regions`]).
//! - *Slot*: the part of a region that one page has.
//! - *Shard*: a part of the regions with its own lock, so that threads seldom contend.
//!
//! # Invariants
//! - A page takes [`footprint`] bytes, so that the cache counts its true size.
//! - Unused memory between pages counts against the memory limit too, up to a part of the pages
//!   ([`unused_bytes_of_store`]).
//! - An allocation waits for a lock only if all shards are locked. A region is added only if no unlocked
//!   shard has a gap for the page.
//! - Pages above [`SLOT_BYTES_MAX`] and below half of [`STEP_BYTES`] are rare and get an allocation each.

use bytes::{Bytes, BytesMut};
use pando_environment::sync::LeafMutex;

use crate::memory::page_memory::regions::{HeldSlot, Regions, SLOT_BYTES_MAX, STEP_BYTES};

mod regions;

const SHARDS: usize = 4;
/// The divisor of a store's page bytes that bounds how much unused memory counts for it. In a steady state
/// there is less.
const UNUSED_DIVISOR: usize = 16;

/// Threads use the first shard, unless it is locked in the same nanoseconds.
static REGIONS: [LeafMutex<Regions>; SHARDS] = [const { LeafMutex::new(Regions::new()) }; SHARDS];

/// Bytes that a page of this many takes in memory.
pub(crate) fn footprint(length: usize) -> usize {
    if is_in_regions(length) { length.next_multiple_of(STEP_BYTES) } else { length }
}

fn is_in_regions(length: usize) -> bool {
    (STEP_BYTES / 2..=SLOT_BYTES_MAX).contains(&length)
}

/// Unused bytes between pages that count against the limit of a store with `pages` bytes of pages.
///
/// The regions belong to the process and the limit to a store. So a store is charged the same share of the
/// unused memory as it has of all pages, and at most its pages divided by [`UNUSED_DIVISOR`]. Unused memory
/// beyond that bound comes from pages that were just evicted to make room for something else, and the next
/// pages use it first. If it counted, more pages would be evicted, which would leave more unused memory.
pub(crate) fn unused_bytes_of_store(pages: u64) -> usize {
    let (unused, used) = bytes();
    let part = (unused as f64 * (pages as f64 / used.max(1) as f64).min(1.0)) as usize;
    part.min(pages as usize / UNUSED_DIVISOR)
}

/// Unused bytes between pages, and bytes of pages, of the whole process.
pub(crate) fn bytes() -> (usize, usize) {
    let each = REGIONS.iter().map(|regions| {
        let regions = regions.lock();
        (regions.unused_bytes(), regions.used_bytes())
    });
    each.fold((0, 0), |(unused, used), more| (unused + more.0, used + more.1))
}

/// Gives memory that was unused since the last call back to the allocator. Called now and then.
pub(crate) fn settle() {
    give_back(Regions::settle);
}

/// Gives back all unused regions: many pages are gone and will not come back.
pub(crate) fn shrink() {
    give_back(Regions::release_recent);
}

fn give_back(emptied: impl Fn(&mut Regions) -> Vec<BytesMut>) {
    for regions in &REGIONS {
        let emptied = emptied(&mut regions.lock());
        // Outside the lock: freeing a region may be a system call.
        drop(emptied);
    }
}

/// A copy of these bytes.
pub(crate) fn copy(bytes: &[u8]) -> Bytes {
    let copied = filled(bytes.len(), |memory| {
        memory.copy_from_slice(bytes);
        true
    });
    copied.expect("copying does not fail")
}

/// A page of this length that `fill` writes; `None` if `fill` returns false. The previous content of the
/// bytes is arbitrary, but initialized.
pub(crate) fn filled(length: usize, fill: impl FnOnce(&mut [u8]) -> bool) -> Option<Bytes> {
    if !is_in_regions(length) {
        let mut memory = vec![0; length];
        return fill(&mut memory).then(|| Bytes::from(memory));
    }
    let mut slot = Slot::take(length);
    fill(&mut slot.held.memory[..length]).then(|| Bytes::from_owner(slot))
}

/// The slot of one page. Dropping it gives it back.
struct Slot {
    held: HeldSlot,
    /// The shard that it belongs to.
    shard: usize,
    length: usize,
}

impl Slot {
    fn take(length: usize) -> Slot {
        let steps = length.div_ceil(STEP_BYTES);
        let found = REGIONS.iter().enumerate().find_map(|(shard, regions)| {
            let held = regions.try_lock()?.take(steps)?;
            Some((shard, held))
        });
        let (shard, held) = found.unwrap_or_else(|| {
            let free =
                REGIONS.iter().enumerate().find_map(|(shard, regions)| Some((shard, regions.try_lock()?)));
            let (shard, mut regions) = free.unwrap_or_else(|| (0, REGIONS[0].lock()));
            (shard, regions.take_new(steps))
        });
        Slot { held, shard, length }
    }
}

impl AsRef<[u8]> for Slot {
    fn as_ref(&self) -> &[u8] {
        &self.held.memory[..self.length]
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.held);
        let emptied = REGIONS[self.shard].lock().give_back(held);
        drop(emptied);
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::page_memory::*;

    #[test]
    fn a_page_wastes_less_than_a_step() {
        for length in STEP_BYTES / 2..=SLOT_BYTES_MAX {
            let footprint = footprint(length);
            assert!(footprint >= length && footprint - length < STEP_BYTES, "{length} in {footprint}");
        }
        assert_eq!((footprint(100), footprint(SLOT_BYTES_MAX + 1)), (100, SLOT_BYTES_MAX + 1));
        assert_eq!(footprint(16 * 1024), 16 * 1024);
    }

    #[test]
    fn pages_are_what_was_written_and_outlive_others() {
        let lengths = (0..200).map(|at| at * 700).chain([1, SLOT_BYTES_MAX, SLOT_BYTES_MAX + 1]);
        let texts: Vec<Vec<u8>> = lengths.map(|length| vec![length as u8; length]).collect();
        for _ in 0..3 {
            let pages: Vec<Bytes> = texts.iter().map(|text| copy(text)).collect();
            drop(pages.iter().step_by(2).cloned().collect::<Vec<_>>());
            let kept: Vec<Bytes> = pages.into_iter().skip(1).step_by(2).collect();
            let others: Vec<Bytes> = texts.iter().rev().map(|text| copy(text)).collect();
            for (page, text) in kept.iter().zip(texts.iter().skip(1).step_by(2)) {
                assert_eq!(page, text);
            }
            assert!(others.iter().rev().zip(&texts).all(|(page, text)| page == text));
        }
    }

    #[test]
    fn a_slot_that_could_not_be_filled_is_no_page() {
        assert_eq!(filled(5_000, |_| false), None);
        assert_eq!(filled(50, |_| false), None);
    }

    #[test]
    fn threads_never_write_to_the_same_memory() {
        std::thread::scope(|scope| {
            for thread in 0..8u8 {
                scope.spawn(move || {
                    let mut pages = std::collections::VecDeque::new();
                    for round in 0..4_000usize {
                        pages.push_back(copy(&vec![thread; 300 + round * 37 % 20_000]));
                        if pages.len() > 20 {
                            let page = pages.pop_front().unwrap();
                            assert!(page.iter().all(|byte| *byte == thread));
                        }
                    }
                });
            }
        });
    }
}
