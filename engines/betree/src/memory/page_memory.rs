//! The memory of pages: they lie side by side in regions of the process, whichever thread brought them, and whichever drops them.
//!
//! Pages come into being in one thread (a reader, a merge) and are dropped in another (whoever evicts them), tens of thousands a
//! second, and no two have the same size. An allocator with heaps for each thread keeps spans for each size in every one of them: 64 threads
//! that read through a cache of 201 MB stood at 369 MB, with 197 in use.
//!
//! # Terms
//! - *Region*: a stretch of memory that pages share ([`regions`]).
//! - *Plot*: what one page has of it.
//! - *Lock*: the regions are divided among a few, so that threads seldom meet.
//!
//! # Invariants
//! - A page takes what [`footprint`] says, so that the cache can count what it really takes.
//! - What lies between pages counts against the limit, too, up to a part of them ([`between_bytes`]).
//! - Nobody waits for another to get a plot, unless all locks are taken. No region is added while one under a lock that is free has a gap.
//! - Sizes above [`SLOT_BYTES_MAX`] and below half of [`STEP_BYTES`], which few pages have, are allocated for each.

use bytes::{Bytes, BytesMut};
use pando_environment::sync::LeafMutex;

use crate::memory::page_memory::regions::{Held, Regions, SLOT_BYTES_MAX, STEP_BYTES};

mod regions;

const LOCKS: usize = 4;
/// The part of its pages that a store counts at most for what lies between them. Where as many come as go it is less.
const BETWEEN_SHARE: usize = 16;

/// The first is used as long as nobody comes within the same nanoseconds.
static REGIONS: [LeafMutex<Regions>; LOCKS] = [const { LeafMutex::new(Regions::new()) }; LOCKS];

/// Bytes that a page of this many takes in memory.
pub(crate) fn footprint(length: usize) -> usize {
    if is_in_regions(length) { length.next_multiple_of(STEP_BYTES) } else { length }
}

fn is_in_regions(length: usize) -> bool {
    (STEP_BYTES / 2..=SLOT_BYTES_MAX).contains(&length)
}

/// Bytes between pages that count against the limit of a store with so many bytes of pages. Of all there are it has as large a part as of all
/// pages, for the regions are the process's and the limit a store's; but never more than a [`BETWEEN_SHARE`] of its pages count. What is more
/// came with pages that went so that others get their memory, and is used by the next pages before anything else; counted, it would
/// make more pages go, which would leave more.
pub(crate) fn between_bytes(pages: u64) -> usize {
    let (unused, used) = bytes();
    let part = (unused as f64 * (pages as f64 / used.max(1) as f64).min(1.0)) as usize;
    part.min(pages as usize / BETWEEN_SHARE)
}

/// Bytes between pages, and bytes of pages, of the whole process.
pub(crate) fn bytes() -> (usize, usize) {
    let each = REGIONS.iter().map(|regions| {
        let regions = regions.lock();
        (regions.unused_bytes(), regions.used_bytes())
    });
    each.fold((0, 0), |(unused, used), more| (unused + more.0, used + more.1))
}

/// Gives back what nobody has needed since the last time. Called now and then.
pub(crate) fn settle() {
    give_back(Regions::settle);
}

/// Gives back all that can be: many pages have gone, and will not come back.
pub(crate) fn shrink() {
    give_back(Regions::join_recent);
}

fn give_back(emptied: impl Fn(&mut Regions) -> Vec<BytesMut>) {
    for regions in &REGIONS {
        let emptied = emptied(&mut regions.lock());
        // Not under the lock: it is a call of the allocator's that may go to the system.
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

/// A page of so many bytes that `fill` writes; `None` if that returns false. What the bytes are before is undefined, though not unsafe.
pub(crate) fn filled(length: usize, fill: impl FnOnce(&mut [u8]) -> bool) -> Option<Bytes> {
    if !is_in_regions(length) {
        let mut memory = vec![0; length];
        return fill(&mut memory).then(|| Bytes::from(memory));
    }
    let mut slot = Plot::take(length);
    fill(&mut slot.held.memory[..length]).then(|| Bytes::from_owner(slot))
}

/// What a page has of a region. Dropped, it goes back.
struct Plot {
    held: Held,
    /// Under which lock it belongs.
    lock: usize,
    length: usize,
}

impl Plot {
    fn take(length: usize) -> Plot {
        let steps = length.div_ceil(STEP_BYTES);
        let found = REGIONS.iter().enumerate().find_map(|(lock, regions)| {
            let held = regions.try_lock()?.take(steps)?;
            Some((lock, held))
        });
        let (lock, held) = found.unwrap_or_else(|| {
            let free =
                REGIONS.iter().enumerate().find_map(|(lock, regions)| Some((lock, regions.try_lock()?)));
            let (lock, mut regions) = free.unwrap_or_else(|| (0, REGIONS[0].lock()));
            (lock, regions.take_new(steps))
        });
        Plot { held, lock, length }
    }
}

impl AsRef<[u8]> for Plot {
    fn as_ref(&self) -> &[u8] {
        &self.held.memory[..self.length]
    }
}

impl Drop for Plot {
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.held);
        let emptied = REGIONS[self.lock].lock().give_back(held);
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
    fn what_could_not_be_filled_is_no_page() {
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
