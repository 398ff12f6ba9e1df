//! The page cache: pages in two tiers, and leaf directories, within one limit of bytes.
//!
//! # Terms
//! - *Decoded*: a page that is read in place.
//! - *Compressed*: a page as it stands on disk ([`StoredPage`]): it is decoded at each use, and takes a half to a third of the
//!   room. So are pieces of large values ([`large_values`](super::large_values)), always. A read of the device costs ten times as much as decoding does.
//!
//! # Steps
//! 1. What is read from the device goes where there is room: decoded if possible, else compressed.
//! 2. A compressed page that is used again is decoded for good: the first time if there is room, else the second time, but not while memory lies
//!    unused: then another would go for it that may be nowhere else.
//! 3. How the memory is shared out is decided once a period, by what each tier saved ([`shares`](super::shares)); and at once where much is
//!    decoded again and again while memory lies unused. What others have, directories and pages of runs come first, and are lent to pages of
//!    leaves as long as they are not there: whenever some have come, pages of leaves give back as much.
//! 4. Within each tier `quick_cache` chooses what goes (S3-FIFO: a page read once by a scan leaves before one that was read
//!    twice). A page for which another had to leave the decoded tier stays in the compressed one, too, where it grows old unused.
//!
//! All that counts against the limit and is not here comes first ([`crate::background::memory_sharing`]). Then directories: without them a point query
//! costs two device reads instead of one. They may take up to [`DIRECTORY_SHARE`] of the limit, and [`DIRECTORY_SHARE_OF_REST`] of what is
//! left. Then come pages of runs, as they stand on disk, up to [`RUN_SHARE`] and [`RUN_SHARE_OF_REST`]: they are a small part of a
//! tree, and every scan of a range reads those above it. Pages of leaves have what both leave.
//!
//! # Invariants
//! - A block is known by address *and* checksum: space that is used again never answers for what stood there before.
//! - Decoded pages lie in the cache's own entries, not behind a pointer of their own: a hit follows one pointer less.
//! - Weights are the bytes that the value really takes, and what the cache itself takes for an entry.
//! - A block heavier than most of a shard is not kept decoded, and one heavier than most of a shard of the other tier not at all:
//!   the limit holds even so.
//! - The first use of what was read for somebody who waits is the miss, and counts neither as a hit nor for its staying.

use pando_environment::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::Arc;

use pando_environment::sync::Mutex;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::shares::{DecodedShare, Period};
use super::stored_page::StoredPage;
use crate::base::Counter;
use crate::base::{BlockKind, Pointer};
use crate::format::directory::Directory;
use crate::format::page::Page;
use crate::memory::page_memory;

/// Hundredths of the limit that directories may take.
const DIRECTORY_SHARE: u64 = 40;
/// Hundredths of the limit that compressed pages of runs may take.
const RUN_SHARE: u64 = 25;
/// Hundredths that directories, and pages of runs, may take of what all else leaves; pages of leaves have the rest at least.
const DIRECTORY_SHARE_OF_REST: u64 = 55;
const RUN_SHARE_OF_REST: u64 = 25;
/// What the cache takes for an entry beside the value: key, links, hash slot, and the counters of shared memory.
const ENTRY_BYTES: usize = 120;
/// The part of a tier for what was used again while it was there. The rest is for what has just come: with the usual 3 % of it, one
/// page in twelve had gone before the request that waited for it came back (random keys, 64 clients).
const HOT_ALLOCATION: f64 = 0.85;
/// The use of a compressed page that brings it into the decoded tier when that is full.
const USES_TO_STAY: u8 = 2;

/// When directories and pages of runs of this part of the limit have come, the limit is shared out again.
const ARRIVED_SHARE: u64 = 64;
/// The same where what others take has changed by this part of it.
const OTHERS_SHARE: u64 = 32;

/// So often a compressed page is used and finds no room before it is looked whether there is memory to give. More than
/// [`shares`](super::shares) needs to learn something.
const USES_A_DECISION: u64 = 2_048;

/// Shards of a tier hold at least so many pages, even when the tier is as small as it gets: what a page more would take in each shard is
/// memory that stays empty.
const SHARD_PAGES_MIN: u64 = 32;

/// What a block is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlockKey {
    /// In grains, with [`RUN_PAGE`] set for a page of a run.
    address: u64,
    checksum: u64,
}

/// Addresses have 48 bits.
const RUN_PAGE: u64 = 1 << 63;

impl BlockKey {
    pub(super) fn of(pointer: &Pointer) -> BlockKey {
        let kind = if pointer.kind() == BlockKind::RunPage { RUN_PAGE } else { 0 };
        BlockKey { address: pointer.address().get() | kind, checksum: pointer.checksum() }
    }

    fn is_of_run(&self) -> bool {
        self.address & RUN_PAGE != 0
    }
}

/// One of the two tiers of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    Decoded,
    Compressed,
}

/// A compressed page that was found.
pub(super) struct Stored {
    pub(super) page: Arc<StoredPage>,
    /// Whether it is to be kept decoded from now on.
    pub(super) promotion: Promotion,
}

/// A page that a long scan passes.
pub(super) enum Passed {
    Decoded(Page),
    Compressed(Stored),
}

/// What becomes of a compressed page that is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promotion {
    Keep,
    No,
}

#[derive(Clone)]
struct PageWeight;

impl Weighter<BlockKey, Page> for PageWeight {
    fn weight(&self, _: &BlockKey, page: &Page) -> u64 {
        (page.heap_bytes() + ENTRY_BYTES) as u64
    }
}

#[derive(Clone)]
struct StoredWeight;

impl Weighter<BlockKey, Arc<StoredPage>> for StoredWeight {
    fn weight(&self, _: &BlockKey, page: &Arc<StoredPage>) -> u64 {
        (page.heap_bytes() + ENTRY_BYTES) as u64
    }
}

#[derive(Clone)]
struct DirectoryWeight;

impl Weighter<BlockKey, Arc<Directory>> for DirectoryWeight {
    fn weight(&self, _: &BlockKey, directory: &Arc<Directory>) -> u64 {
        (directory.heap_bytes() + ENTRY_BYTES) as u64
    }
}

/// See the module's head.
pub(crate) struct PageCache {
    decoded: Cache<BlockKey, Page, PageWeight>,
    /// Of leaves.
    compressed: Cache<BlockKey, Arc<StoredPage>, StoredWeight>,
    /// The compressed tier's pages of runs, which pages of leaves do not drive out.
    runs: Cache<BlockKey, Arc<StoredPage>, StoredWeight>,
    directories: Cache<BlockKey, Arc<Directory>, DirectoryWeight>,
    limit: AtomicU64,
    /// What the capacities were last set to.
    directory_limit: AtomicU64,
    run_limit: AtomicU64,
    decoded_limit: AtomicU64,
    compressed_limit: AtomicU64,
    /// Into so many parts the decoded tier is divided, each with its own limit.
    decoded_shards: u64,
    /// Thousandths of the pages' memory for those that are decoded.
    decoded_share: AtomicU16,
    /// What others took when the limit was last shared out, in bytes.
    others: AtomicU64,
    /// Compressed pages that were used and found no room to stay decoded.
    without_room: AtomicU64,
    /// Bytes of directories and pages of runs that came since the limit was last shared out.
    arrived: AtomicU64,
    /// The counts as of the last decision about the shares.
    last: Mutex<Period>,
    pub(crate) decoded_hits: Counter,
    pub(crate) compressed_hits: Counter,
    /// Pages that readers waited for, or that others read for long scans.
    pub(crate) misses: Counter,
    /// Pages that merges read, which go by the cache.
    pub(crate) flush_reads: Counter,
    /// Calls to the device that scans made for pages, and the bytes that these brought.
    pub(crate) scan_reads: Counter,
    pub(crate) scan_read_bytes: Counter,
    /// Lookups that the filter of a leaf ended, and those among them whose page would have had to be read.
    pub(crate) leaf_negatives: Counter,
    pub(crate) spared_reads: Counter,
}

impl PageCache {
    /// An empty cache of at most `limit` bytes, for pages of about `page_bytes`.
    pub(crate) fn new(limit: u64, page_bytes: usize) -> PageCache {
        let directories = limit * DIRECTORY_SHARE / 100;
        let pages = (limit / page_bytes.max(64) as u64).clamp(16, 1 << 20) as usize;
        let decoded = DecodedShare::FIRST.of(limit);
        let decoded_shards = shards(DecodedShare::MIN.of(limit), page_bytes);
        PageCache {
            decoded: tier(pages, decoded, decoded_shards, PageWeight),
            compressed: tier(pages * 2, limit - decoded, shards(limit / 16, page_bytes), StoredWeight),
            runs: tier(
                (pages / 8).max(16),
                limit * RUN_SHARE / 100,
                shards(limit * RUN_SHARE / 100, page_bytes),
                StoredWeight,
            ),
            directories: Cache::with_weighter((pages / 32).max(16), directories, DirectoryWeight),
            limit: AtomicU64::new(limit),
            directory_limit: AtomicU64::new(directories),
            run_limit: AtomicU64::new(limit * RUN_SHARE / 100),
            decoded_limit: AtomicU64::new(decoded),
            compressed_limit: AtomicU64::new(limit - decoded),
            decoded_shards,
            decoded_share: AtomicU16::new(DecodedShare::FIRST.thousandths()),
            others: AtomicU64::new(0),
            without_room: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
            last: Mutex::new(Period::default()),
            decoded_hits: Counter::default(),
            compressed_hits: Counter::default(),
            misses: Counter::default(),
            flush_reads: Counter::default(),
            scan_reads: Counter::default(),
            scan_read_bytes: Counter::default(),
            leaf_negatives: Counter::default(),
            spared_reads: Counter::default(),
        }
    }

    /// Sets another limit; what is too much goes when the limit is shared out again. With less than half of it all pages go: those that could stay
    /// lie among those that cannot, and would keep the memory of all.
    pub(crate) fn change_limit(&self, limit: u64) {
        let before = self.limit.swap(limit, Ordering::Relaxed);
        if limit < before / 2 {
            self.decoded.clear();
            self.compressed.clear();
            self.runs.clear();
            page_memory::shrink();
        }
    }

    /// Where a page is kept compressed.
    fn stored(&self, key: &BlockKey) -> &Cache<BlockKey, Arc<StoredPage>, StoredWeight> {
        if key.is_of_run() { &self.runs } else { &self.compressed }
    }

    /// Bytes that it may take.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Shares the limit out again: pages of leaves get what directories, pages of runs and `others` (the write buffers) leave, each
    /// tier its part.
    /// Called by background work now and then.
    pub(crate) fn rebalance(&self, others: u64) {
        self.others.store(others, Ordering::Relaxed);
        let share = DecodedShare::from_thousandths(self.decoded_share.load(Ordering::Relaxed));
        let share = share.after(&self.period());
        self.decoded_share.store(share.thousandths(), Ordering::Relaxed);
        self.share_out();
    }

    /// The same with the shares that the tiers have.
    fn share_out(&self) {
        self.arrived.store(0, Ordering::Relaxed);
        let limit = self.limit.load(Ordering::Relaxed);
        let others = self.others.load(Ordering::Relaxed);
        // However much the others have, and were the sum above the limit, reads are left something: without directories in memory each
        // would be two.
        let rest = limit.saturating_sub(others).max(limit / 8);
        let directories = (limit * DIRECTORY_SHARE / 100).min(rest * DIRECTORY_SHARE_OF_REST / 100);
        let runs = (limit * RUN_SHARE / 100).min(rest * RUN_SHARE_OF_REST / 100);
        set_limit(&self.directory_limit, directories, limit, |to| self.directories.set_capacity(to));
        set_limit(&self.run_limit, runs, limit, |to| self.runs.set_capacity(to));
        let pages = rest.saturating_sub(self.directories.weight() + self.runs.weight()).max(limit / 64);
        let share = DecodedShare::from_thousandths(self.decoded_share.load(Ordering::Relaxed));
        let decoded = share.of(pages);
        // The tier that shrinks goes first, so that both together stay within the limit.
        let grows = decoded > self.decoded_limit.load(Ordering::Relaxed);
        for tier in if grows { [Tier::Compressed, Tier::Decoded] } else { [Tier::Decoded, Tier::Compressed] }
        {
            match tier {
                Tier::Decoded => {
                    set_limit(&self.decoded_limit, decoded, limit, |to| self.decoded.set_capacity(to))
                }
                Tier::Compressed => set_limit(&self.compressed_limit, pages - decoded, limit, |to| {
                    self.compressed.set_capacity(to);
                }),
            }
        }
    }

    /// What others take now, beside pages and directories: if that is much more or less than they did, the limit is shared out again.
    pub(crate) fn note_others(&self, others: u64) {
        if others.abs_diff(self.others.load(Ordering::Relaxed))
            > self.limit.load(Ordering::Relaxed) / OTHERS_SHARE
        {
            self.others.store(others, Ordering::Relaxed);
            self.share_out();
        }
    }

    /// A directory, or a page of a run, has come. What they do not use yet is lent to pages of leaves, which have to give it back: a cold cache
    /// fills within a second.
    fn note_arrived(&self, bytes: usize) {
        let arrived = self.arrived.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if arrived > self.limit.load(Ordering::Relaxed) / ARRIVED_SHARE {
            self.share_out();
        }
    }

    /// A compressed page was used, and there is no room to keep it decoded. Where memory lies unused nevertheless, a period is too long
    /// to wait for it.
    fn note_without_room(&self) {
        let count = self.without_room.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_multiple_of(USES_A_DECISION) && self.has_unused() {
            self.rebalance(self.others.load(Ordering::Relaxed));
        }
    }

    /// What was looked up since this was last asked.
    fn period(&self) -> Period {
        // Before the counts are read: of two that ask at once, each has what came after the other.
        let mut last = self.last.lock();
        let now = Period {
            decoded_hits: self.decoded_hits.get(),
            compressed_hits: self.compressed_hits.get(),
            misses: self.misses.get(),
            decoded_bytes: self.decoded.weight(),
            compressed_bytes: self.compressed.weight(),
            compressed_limit: self.compressed_limit.load(Ordering::Relaxed),
            limit: self.compressed_limit.load(Ordering::Relaxed) + self.decoded_limit.load(Ordering::Relaxed),
        };
        let last = std::mem::replace(&mut *last, now);
        Period {
            decoded_hits: now.decoded_hits - last.decoded_hits,
            compressed_hits: now.compressed_hits - last.compressed_hits,
            misses: now.misses - last.misses,
            ..now
        }
    }

    /// A decoded page.
    pub(super) fn decoded(&self, key: &BlockKey) -> Option<Page> {
        let page = self.decoded.get(key)?;
        self.decoded_hits.add(1);
        Some(page)
    }

    /// A compressed page of so many raw bytes, and whether it is to be kept decoded.
    pub(super) fn compressed(&self, key: &BlockKey, raw_bytes: usize) -> Option<Stored> {
        let page = self.stored(key).peek(key)?;
        if page.is_fresh() {
            page.note_use();
            return Some(Stored { page, promotion: Promotion::No });
        }
        self.compressed_hits.add(1);
        let is_used_enough = page.note_use() >= USES_TO_STAY;
        let promotion = self.promotion(raw_bytes, is_used_enough);
        // For the tier to know that it is in use. A page that is about to be decoded may grow old here.
        if promotion == Promotion::No {
            let _touched = self.stored(key).get(key);
        }
        Some(Stored { page, promotion })
    }

    /// A piece of a large value.
    pub(super) fn piece(&self, key: &BlockKey) -> Option<Arc<StoredPage>> {
        let piece = self.compressed.get(key)?;
        if !piece.is_fresh() {
            self.compressed_hits.add(1);
        }
        piece.note_use();
        Some(piece)
    }

    fn promotion(&self, raw_bytes: usize, is_used_enough: bool) -> Promotion {
        if self.has_decoded_room(raw_bytes) {
            return Promotion::Keep;
        }
        self.note_without_room();
        // Where memory lies unused no page has to go for another: what goes may be nowhere else, and as long as it has to be read again the decoded
        // tier is not given more.
        if is_used_enough && !self.has_unused() { Promotion::Keep } else { Promotion::No }
    }

    /// Whether there is much memory that neither tier has taken.
    pub(super) fn has_unused(&self) -> bool {
        let unused = self.compressed_limit.load(Ordering::Relaxed).saturating_sub(self.compressed.weight());
        unused > self.limit.load(Ordering::Relaxed) / 8
    }

    /// A page that a long scan comes by. It counts as a hit, but not for its staying, and it is kept decoded only where none has to
    /// go for it: what a scan reads once leaves before what others read twice.
    pub(super) fn passing(&self, key: &BlockKey, raw_bytes: usize) -> Option<Passed> {
        if let Some(page) = self.decoded.peek(key) {
            self.decoded_hits.add(1);
            return Some(Passed::Decoded(page));
        }
        let page = self.stored(key).peek(key)?;
        if !page.is_fresh() {
            self.compressed_hits.add(1);
        }
        let promotion = self.promotion(raw_bytes, false);
        Some(Passed::Compressed(Stored { page, promotion }))
    }

    pub(super) fn directory(&self, key: &BlockKey) -> Option<Arc<Directory>> {
        self.directories.get(key)
    }

    /// Whether a directory is in memory, without counting as a use of it.
    pub(super) fn has_directory(&self, key: &BlockKey) -> bool {
        self.directories.peek(key).is_some()
    }

    /// A decoded page without counting as a use of it.
    pub(super) fn peek_decoded(&self, key: &BlockKey) -> Option<Page> {
        self.decoded.peek(key)
    }

    /// A compressed page without counting as a use of it.
    pub(super) fn peek_compressed(&self, key: &BlockKey) -> Option<Arc<StoredPage>> {
        self.stored(key).peek(key)
    }

    /// The filter of a leaf has spared a lookup this page.
    pub(crate) fn note_spared(&self, page: &Pointer) {
        self.leaf_negatives.add(1);
        if self.tier_of(&BlockKey::of(page)).is_none() {
            self.spared_reads.add(1);
        }
    }

    /// In which tier a page is.
    pub(super) fn tier_of(&self, key: &BlockKey) -> Option<Tier> {
        if self.decoded.contains_key(key) {
            Some(Tier::Decoded)
        } else {
            self.stored(key).contains_key(key).then_some(Tier::Compressed)
        }
    }

    pub(super) fn insert_decoded(&self, key: BlockKey, page: Page) {
        self.decoded.insert(key, page);
    }

    /// Keeps a compressed page decoded. Where nothing had to go for it, it will not soon be missed compressed.
    pub(super) fn promote(&self, key: BlockKey, page: Page) {
        let has_room = self.has_decoded_room(page.heap_bytes());
        self.decoded.insert(key, page);
        // Pages of runs stay where nothing drives them out.
        if has_room && !key.is_of_run() && self.decoded.contains_key(&key) {
            self.compressed.remove(&key);
        }
    }

    pub(super) fn insert_compressed(&self, key: BlockKey, page: StoredPage) {
        let bytes = page.heap_bytes();
        self.stored(&key).insert(key, Arc::new(page));
        if key.is_of_run() {
            self.note_arrived(bytes);
        }
    }

    pub(super) fn insert_directory(&self, key: BlockKey, directory: Arc<Directory>) {
        let bytes = directory.heap_bytes();
        self.directories.insert(key, directory);
        self.note_arrived(bytes);
    }

    pub(super) fn forget(&self, key: &BlockKey) {
        self.decoded.remove(key);
        self.stored(key).remove(key);
        self.directories.remove(key);
    }

    /// Where a page of so many raw bytes goes that was read from the device.
    pub(super) fn tier_for_read(&self, raw_bytes: usize) -> Tier {
        if self.has_decoded_room(raw_bytes) { Tier::Decoded } else { Tier::Compressed }
    }

    /// Where a page of so many raw bytes can be added without another having to go.
    pub(crate) fn tier_with_room(&self, raw_bytes: usize) -> Option<Tier> {
        if self.has_decoded_room(raw_bytes) {
            Some(Tier::Decoded)
        } else {
            self.has_compressed_room().then_some(Tier::Compressed)
        }
    }

    /// Whether something can be added to the compressed tier without another having to go.
    pub(super) fn has_compressed_room(&self) -> bool {
        self.compressed.weight() < self.compressed_limit.load(Ordering::Relaxed) / 10 * 9
    }

    /// The same for a page of a run.
    pub(crate) fn tier_with_room_for_run(&self, raw_bytes: usize) -> Option<Tier> {
        let has_room = self.runs.weight() < self.runs.capacity() / 10 * 9;
        if has_room { Some(Tier::Compressed) } else { self.tier_with_room(raw_bytes) }
    }

    /// Whether there is room for one more such page in every shard: a shard that is full but for less than a page stays so.
    fn has_decoded_room(&self, raw_bytes: usize) -> bool {
        let limit = self.decoded_limit.load(Ordering::Relaxed);
        let page = (page_memory::footprint(raw_bytes) + size_of::<Page>() + ENTRY_BYTES) as u64;
        let spare = (page * self.decoded_shards).max(limit / 10);
        page <= limit / self.decoded_shards / 2 && self.decoded.weight() + spare <= limit
    }

    /// Bytes in use by decoded pages.
    pub(crate) fn decoded_bytes(&self) -> u64 {
        self.decoded.weight()
    }

    /// Bytes in use by compressed pages, those of runs among them.
    pub(crate) fn compressed_bytes(&self) -> u64 {
        self.compressed.weight() + self.runs.weight()
    }

    /// Bytes in use by compressed pages of runs.
    pub(crate) fn run_bytes(&self) -> u64 {
        self.runs.weight()
    }

    /// Bytes in use by directories.
    pub(crate) fn directory_bytes(&self) -> u64 {
        self.directories.weight()
    }

    /// Decoded pages, and compressed ones.
    pub(crate) fn pages(&self) -> (u64, u64) {
        (self.decoded.len() as u64, (self.compressed.len() + self.runs.len()) as u64)
    }
}

fn tier<V: Clone, W: Weighter<BlockKey, V> + Clone>(
    values: usize,
    bytes: u64,
    shards: u64,
    weighter: W,
) -> Cache<BlockKey, V, W> {
    let options = OptionsBuilder::new()
        .estimated_items_capacity(values)
        .weight_capacity(bytes)
        .shards(shards as usize)
        .hot_allocation(HOT_ALLOCATION)
        .build()
        .expect("both sizes of a tier are given");
    Cache::with_options(options, weighter, DefaultHashBuilder::default(), DefaultLifecycle::default())
}

/// Into how many shards a tier is divided that may have as few bytes as these: four for each processor, unless they would be too
/// small.
fn shards(bytes: u64, page_bytes: usize) -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let most = (bytes / page_bytes.max(64) as u64 / SHARD_PAGES_MIN).max(1);
    let fitting = 1 << most.ilog2();
    (processors * 4).next_power_of_two().min(fitting)
}

/// Sets a capacity. That locks every shard: not for a hundredth of the whole more or less.
fn set_limit(current: &AtomicU64, wanted: u64, whole: u64, set: impl FnOnce(u64)) {
    if wanted.abs_diff(current.load(Ordering::Relaxed)) > whole / 100 {
        current.store(wanted, Ordering::Relaxed);
        set(wanted);
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(test)]
mod tests;
