//! The page cache: pages in two tiers, and leaf directories, within one limit of bytes.
//!
//! # Terms
//! - *Decoded tier*: pages that are read in place.
//! - *Compressed tier*: pages as they stand on disk ([`StoredPage`]), decompressed at each use. They take a
//!   half to a third of the memory. A read of the device costs about ten times as much as decompressing.
//!   Pieces of large values ([`large_value_reads`](super::large_value_reads)) are always here.
//! - *Promotion*: a compressed page that is used again moves to the decoded tier.
//! - *Outside bytes*: memory that counts against the limit and is not here, such as write buffers and inner
//!   nodes.
//! - *Unused memory*: memory that the compressed tier may take and has not taken.
//!
//! # Admission and eviction
//! 1. A block that was read goes to the decoded tier if there is room, otherwise to the compressed tier.
//! 2. A compressed page is promoted at its second use if there is room, otherwise at its third use. The third
//!    use does not promote while much memory is unused: the promoted page would evict one that may be nowhere
//!    else.
//! 3. Within each tier `quick_cache` evicts (S3-FIFO): a page that was read once leaves before one that was
//!    read twice. A page whose promotion evicted another also stays in the compressed tier, and ages out
//!    there.
//!
//! # Shares of the limit, in this order
//! | what | at most |
//! |---|---|
//! | outside bytes (`background/memory_sharing.rs`) | what they take |
//! | directories | [`DIRECTORY_PERCENT`] of the limit, [`DIRECTORY_PERCENT_OF_REST`] of the rest |
//! | pages of runs, compressed | [`RUN_PERCENT`] of the limit, [`RUN_PERCENT_OF_REST`] of the rest |
//! | pages of leaves, both tiers | what the others leave |
//!
//! Directories come first because without them a point query costs two device reads instead of one. Pages of
//! runs come before pages of leaves because they are few and every scan of a range reads those above it.
//! Memory that directories and pages of runs do not use yet is lent to pages of leaves. It is taken back
//! whenever enough of them have arrived.
//!
//! Once a period [`tier_sizes`](super::tier_sizes) moves memory between the two tiers. This also happens when
//! many pages are decompressed repeatedly while memory is unused.
//!
//! # Invariants
//! - A block is known by address *and* checksum. A reused address never returns the block that stood there
//!   before.
//! - A decoded page lies in the cache's own entry, not behind a pointer: a hit follows one pointer less.
//! - A weight is the bytes that a value really takes, with the cache's own overhead for the entry.
//! - A page above half of a shard of the decoded tier is not kept decoded. One above a shard of the other
//!   tier is not kept at all. So the limit holds.
//! - The first use of a page that was read for a waiting reader is the miss. It counts neither as a hit nor
//!   towards promotion.

use pando_environment::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::Arc;

use pando_environment::sync::Mutex;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::block_types::{BlockTypes, DecodedDirectory, DecodedPage};
use super::stored_page::StoredPage;
use super::tier_sizes::{DecodedShare, Period};
use crate::base::Counter;
use crate::base::{BlockKind, Pointer};
use crate::memory::page_memory;

/// Hundredths of the limit that directories may take.
const DIRECTORY_PERCENT: u64 = 40;
/// Hundredths of the limit that compressed pages of runs may take.
const RUN_PERCENT: u64 = 25;
/// Hundredths that directories may take of what the outside bytes leave.
const DIRECTORY_PERCENT_OF_REST: u64 = 55;
/// The same for compressed pages of runs. Pages of leaves have at least the remaining fifth.
const RUN_PERCENT_OF_REST: u64 = 25;
/// The cache's overhead for an entry: key, links, hash slot, and reference counts.
const ENTRY_BYTES: usize = 120;
/// The part of a tier for pages that were used again; the rest is for new ones. With the usual 3 % for new
/// ones, the cache evicted one page in twelve before the waiting request was repeated (random keys, 64
/// clients).
const HOT_ALLOCATION: f64 = 0.85;
/// The number of earlier uses at which a compressed page is promoted into a full decoded tier.
const PROMOTION_USES: u8 = 2;

/// The divisor of the limit for arrived directories and pages of runs. After that many bytes the shares are
/// set anew.
const ARRIVED_DIVISOR: u64 = 64;
/// The same for a change of the outside bytes.
const OUTSIDE_DIVISOR: u64 = 32;

/// After this number of uses of compressed pages that found no room, the cache looks for unused memory.
/// [`tier_sizes`](super::tier_sizes) needs fewer for a decision.
const USES_PER_CHECK: u64 = 2_048;

/// Pages that a shard holds at least, when its tier is as small as it gets. Each shard leaves less than a
/// page empty, so small shards would waste memory.
const SHARD_PAGES_MIN: u64 = 32;

/// The identity of a block in the cache.
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
pub(super) struct CompressedHit {
    pub(super) page: Arc<StoredPage>,
    pub(super) promotion: Promotion,
}

/// A page that was found for a one-time read.
pub(super) enum OneTimeHit<P> {
    Decoded(P),
    Compressed(CompressedHit),
}

/// Whether the caller, who decodes a compressed page, should [promote](PageCache::promote) it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promotion {
    Keep,
    No,
}

#[derive(Clone)]
struct PageWeight;

impl<P: DecodedPage> Weighter<BlockKey, P> for PageWeight {
    fn weight(&self, _: &BlockKey, page: &P) -> u64 {
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

impl<D: DecodedDirectory> Weighter<BlockKey, Arc<D>> for DirectoryWeight {
    fn weight(&self, _: &BlockKey, directory: &Arc<D>) -> u64 {
        (directory.heap_bytes() + ENTRY_BYTES) as u64
    }
}

/// See the module's head.
pub(crate) struct PageCache<T: BlockTypes> {
    decoded: Cache<BlockKey, T::Page, PageWeight>,
    /// Compressed pages of leaves, and pieces of large values.
    compressed: Cache<BlockKey, Arc<StoredPage>, StoredWeight>,
    /// Compressed pages of runs. They stand apart so that pages of leaves do not evict them.
    runs: Cache<BlockKey, Arc<StoredPage>, StoredWeight>,
    directories: Cache<BlockKey, Arc<T::Directory>, DirectoryWeight>,
    limit: AtomicU64,
    /// The capacities, as they were last set.
    directory_limit: AtomicU64,
    run_limit: AtomicU64,
    decoded_limit: AtomicU64,
    compressed_limit: AtomicU64,
    /// Shards of the decoded tier. Each has its own capacity.
    decoded_shards: u64,
    /// The decoded tier's part of the memory for pages of leaves, in thousandths.
    decoded_share: AtomicU16,
    /// The outside bytes for which the shares were last set.
    outside_bytes: AtomicU64,
    /// Uses of compressed pages for whose promotion there was no room.
    uses_without_room: AtomicU64,
    /// Bytes of directories and pages of runs that arrived since the shares were last set.
    arrived_bytes: AtomicU64,
    /// The counts as of the last decision about tier sizes.
    last_period: Mutex<Period>,
    pub(crate) decoded_hits: Counter,
    pub(crate) compressed_hits: Counter,
    /// Pages that were read for a waiting reader, or by a prefetch worker.
    pub(crate) misses: Counter,
    /// Blocks that flushes read. They bypass the cache.
    pub(crate) flush_reads: Counter,
    /// Device reads of scans.
    pub(crate) scan_reads: Counter,
    /// Bytes of these reads.
    pub(crate) scan_read_bytes: Counter,
    /// Lookups that ended at the filter of a leaf.
    pub(crate) leaf_negatives: Counter,
    /// Of these, the lookups whose page was not in memory.
    pub(crate) spared_reads: Counter,
}

impl<T: BlockTypes> PageCache<T> {
    /// An empty cache of at most `limit` bytes, for pages of about `page_bytes`.
    pub(crate) fn new(limit: u64, page_bytes: usize) -> PageCache<T> {
        let directories = limit * DIRECTORY_PERCENT / 100;
        let pages = (limit / page_bytes.max(64) as u64).clamp(16, 1 << 20) as usize;
        let decoded = DecodedShare::FIRST.of(limit);
        let decoded_shards = shards(DecodedShare::MIN.of(limit), page_bytes);
        PageCache {
            decoded: tier(pages, decoded, decoded_shards, PageWeight),
            compressed: tier(pages * 2, limit - decoded, shards(limit / 16, page_bytes), StoredWeight),
            runs: tier(
                (pages / 8).max(16),
                limit * RUN_PERCENT / 100,
                shards(limit * RUN_PERCENT / 100, page_bytes),
                StoredWeight,
            ),
            directories: Cache::with_weighter((pages / 32).max(16), directories, DirectoryWeight),
            limit: AtomicU64::new(limit),
            directory_limit: AtomicU64::new(directories),
            run_limit: AtomicU64::new(limit * RUN_PERCENT / 100),
            decoded_limit: AtomicU64::new(decoded),
            compressed_limit: AtomicU64::new(limit - decoded),
            decoded_shards,
            decoded_share: AtomicU16::new(DecodedShare::FIRST.thousandths()),
            outside_bytes: AtomicU64::new(0),
            uses_without_room: AtomicU64::new(0),
            arrived_bytes: AtomicU64::new(0),
            last_period: Mutex::new(Period::default()),
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

    /// Sets another limit. The next [`rebalance`](Self::rebalance) evicts the excess. Below half of the old
    /// limit all pages go at once: pages that stay would keep the memory regions of the evicted ones alive.
    pub(crate) fn change_limit(&self, limit: u64) {
        let before = self.limit.swap(limit, Ordering::Relaxed);
        if limit < before / 2 {
            self.decoded.clear();
            self.compressed.clear();
            self.runs.clear();
            page_memory::shrink();
        }
    }

    /// The part of the compressed tier to which a page belongs.
    fn stored(&self, key: &BlockKey) -> &Cache<BlockKey, Arc<StoredPage>, StoredWeight> {
        if key.is_of_run() { &self.runs } else { &self.compressed }
    }

    /// The limit in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets the tier sizes and the shares anew, for these outside bytes. Background work calls it once a
    /// second.
    pub(crate) fn rebalance(&self, outside_bytes: u64) {
        self.outside_bytes.store(outside_bytes, Ordering::Relaxed);
        let share = DecodedShare::from_thousandths(self.decoded_share.load(Ordering::Relaxed));
        let share = share.after(&self.period());
        self.decoded_share.store(share.thousandths(), Ordering::Relaxed);
        self.set_shares();
    }

    /// Sets the shares anew. The proportion of the two tiers stays.
    fn set_shares(&self) {
        self.arrived_bytes.store(0, Ordering::Relaxed);
        let limit = self.limit.load(Ordering::Relaxed);
        let outside_bytes = self.outside_bytes.load(Ordering::Relaxed);
        // Pages and directories keep an eighth even where the outside bytes exceed the limit. Without
        // directories each lookup would read twice.
        let rest = limit.saturating_sub(outside_bytes).max(limit / 8);
        let directories = (limit * DIRECTORY_PERCENT / 100).min(rest * DIRECTORY_PERCENT_OF_REST / 100);
        let runs = (limit * RUN_PERCENT / 100).min(rest * RUN_PERCENT_OF_REST / 100);
        set_limit(&self.directory_limit, directories, limit, |to| self.directories.set_capacity(to));
        set_limit(&self.run_limit, runs, limit, |to| self.runs.set_capacity(to));
        let pages = rest.saturating_sub(self.directories.weight() + self.runs.weight()).max(limit / 64);
        let share = DecodedShare::from_thousandths(self.decoded_share.load(Ordering::Relaxed));
        let decoded = share.of(pages);
        // The tier that shrinks is first, so that both together stay within the limit.
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

    /// Sets the shares anew if the outside bytes have changed much.
    pub(crate) fn note_outside_bytes(&self, outside_bytes: u64) {
        if outside_bytes.abs_diff(self.outside_bytes.load(Ordering::Relaxed))
            > self.limit.load(Ordering::Relaxed) / OUTSIDE_DIVISOR
        {
            self.outside_bytes.store(outside_bytes, Ordering::Relaxed);
            self.set_shares();
        }
    }

    /// Counts a directory or a page of a run that arrived. Pages of leaves must give back the memory that
    /// they borrowed, and cannot wait for the next period: a cold cache fills within a second.
    fn note_arrived(&self, bytes: usize) {
        let arrived = self.arrived_bytes.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if arrived > self.limit.load(Ordering::Relaxed) / ARRIVED_DIVISOR {
            self.set_shares();
        }
    }

    /// Counts a use of a compressed page for whose promotion there is no room. If memory is unused
    /// nevertheless, the end of the period is too far away.
    fn note_without_room(&self) {
        let count = self.uses_without_room.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_multiple_of(USES_PER_CHECK) && self.has_unused() {
            self.rebalance(self.outside_bytes.load(Ordering::Relaxed));
        }
    }

    /// The lookups since the last call.
    fn period(&self) -> Period {
        // Locked before the counts are read, so that no lookup counts in two periods.
        let mut last = self.last_period.lock();
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

    /// Looks a page up in the decoded tier.
    pub(super) fn decoded(&self, key: &BlockKey) -> Option<T::Page> {
        let page = self.decoded.get(key)?;
        self.decoded_hits.add(1);
        Some(page)
    }

    /// Looks a page of `raw_bytes` up in the compressed tier.
    pub(super) fn compressed(&self, key: &BlockKey, raw_bytes: usize) -> Option<CompressedHit> {
        let page = self.stored(key).peek(key)?;
        if page.is_fresh() {
            page.note_use();
            return Some(CompressedHit { page, promotion: Promotion::No });
        }
        self.compressed_hits.add(1);
        let is_used_enough = page.note_use() >= PROMOTION_USES;
        let promotion = self.promotion(raw_bytes, is_used_enough);
        // Marks it as used for eviction. A page that is about to be promoted may age here.
        if promotion == Promotion::No {
            let _touched = self.stored(key).get(key);
        }
        Some(CompressedHit { page, promotion })
    }

    /// Looks a piece of a large value up.
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
        // With unused memory a promotion must not evict. The evicted page may be nowhere else, and while it
        // has to be read again the decoded tier does not grow.
        if is_used_enough && !self.has_unused() { Promotion::Keep } else { Promotion::No }
    }

    /// Whether much memory is unused.
    pub(super) fn has_unused(&self) -> bool {
        let unused = self.compressed_limit.load(Ordering::Relaxed).saturating_sub(self.compressed.weight());
        unused > self.limit.load(Ordering::Relaxed) / 8
    }

    /// Looks a page up for a one-time read. Counts as a hit and not as a use, and promotes only where there
    /// is room. So pages that a scan reads once leave before pages that others read twice.
    pub(super) fn one_time(&self, key: &BlockKey, raw_bytes: usize) -> Option<OneTimeHit<T::Page>> {
        if let Some(page) = self.decoded.peek(key) {
            self.decoded_hits.add(1);
            return Some(OneTimeHit::Decoded(page));
        }
        let page = self.stored(key).peek(key)?;
        if !page.is_fresh() {
            self.compressed_hits.add(1);
        }
        let promotion = self.promotion(raw_bytes, false);
        Some(OneTimeHit::Compressed(CompressedHit { page, promotion }))
    }

    pub(super) fn directory(&self, key: &BlockKey) -> Option<Arc<T::Directory>> {
        self.directories.get(key)
    }

    /// Whether a directory is in memory. Does not count as a use.
    pub(super) fn has_directory(&self, key: &BlockKey) -> bool {
        self.directories.peek(key).is_some()
    }

    /// A page of the decoded tier. Does not count as a use.
    pub(super) fn peek_decoded(&self, key: &BlockKey) -> Option<T::Page> {
        self.decoded.peek(key)
    }

    /// A page of the compressed tier. Does not count as a use.
    pub(super) fn peek_compressed(&self, key: &BlockKey) -> Option<Arc<StoredPage>> {
        self.stored(key).peek(key)
    }

    /// Counts a lookup that ended at the filter of a leaf and would otherwise have needed this page.
    pub(crate) fn note_spared(&self, page: &Pointer) {
        self.leaf_negatives.add(1);
        if self.tier_of(&BlockKey::of(page)).is_none() {
            self.spared_reads.add(1);
        }
    }

    /// The tier in which a page is, the decoded one if it is in both.
    pub(super) fn tier_of(&self, key: &BlockKey) -> Option<Tier> {
        if self.decoded.contains_key(key) {
            Some(Tier::Decoded)
        } else {
            self.stored(key).contains_key(key).then_some(Tier::Compressed)
        }
    }

    pub(super) fn insert_decoded(&self, key: BlockKey, page: T::Page) {
        self.decoded.insert(key, page);
    }

    /// Moves a compressed page to the decoded tier. If that evicts another page, the compressed copy stays.
    pub(super) fn promote(&self, key: BlockKey, page: T::Page) {
        let has_room = self.has_decoded_room(page.heap_bytes());
        self.decoded.insert(key, page);
        // Pages of runs stay compressed as well: pages of leaves do not evict them there.
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

    pub(super) fn insert_directory(&self, key: BlockKey, directory: Arc<T::Directory>) {
        let bytes = directory.heap_bytes();
        self.directories.insert(key, directory);
        self.note_arrived(bytes);
    }

    pub(super) fn forget(&self, key: &BlockKey) {
        self.decoded.remove(key);
        self.stored(key).remove(key);
        self.directories.remove(key);
    }

    /// The tier for a page of `raw_bytes` that was read from the device.
    pub(super) fn tier_for_read(&self, raw_bytes: usize) -> Tier {
        if self.has_decoded_room(raw_bytes) { Tier::Decoded } else { Tier::Compressed }
    }

    /// The tier to which a page of `raw_bytes` can be added without evicting another.
    pub(crate) fn tier_with_room(&self, raw_bytes: usize) -> Option<Tier> {
        if self.has_decoded_room(raw_bytes) {
            Some(Tier::Decoded)
        } else {
            self.has_compressed_room().then_some(Tier::Compressed)
        }
    }

    /// Whether a page can be added to the compressed tier without evicting another.
    pub(super) fn has_compressed_room(&self) -> bool {
        self.compressed.weight() < self.compressed_limit.load(Ordering::Relaxed) / 10 * 9
    }

    /// The same for a page of a run.
    pub(crate) fn tier_with_room_for_run(&self, raw_bytes: usize) -> Option<Tier> {
        let has_room = self.runs.weight() < self.runs.capacity() / 10 * 9;
        if has_room { Some(Tier::Compressed) } else { self.tier_with_room(raw_bytes) }
    }

    /// Whether every shard has room for one more such page. A shard with less room than a page takes none.
    fn has_decoded_room(&self, raw_bytes: usize) -> bool {
        let limit = self.decoded_limit.load(Ordering::Relaxed);
        let page = (page_memory::footprint(raw_bytes) + size_of::<T::Page>() + ENTRY_BYTES) as u64;
        let spare = (page * self.decoded_shards).max(limit / 10);
        page <= limit / self.decoded_shards / 2 && self.decoded.weight() + spare <= limit
    }

    /// Bytes of decoded pages.
    pub(crate) fn decoded_bytes(&self) -> u64 {
        self.decoded.weight()
    }

    /// Bytes of compressed pages, those of runs included.
    pub(crate) fn compressed_bytes(&self) -> u64 {
        self.compressed.weight() + self.runs.weight()
    }

    /// Bytes of compressed pages of runs.
    pub(crate) fn run_bytes(&self) -> u64 {
        self.runs.weight()
    }

    /// Bytes of directories.
    pub(crate) fn directory_bytes(&self) -> u64 {
        self.directories.weight()
    }

    /// Numbers of decoded and of compressed pages.
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

/// The number of shards of a tier that may shrink to `bytes`: four for each processor, or fewer where these
/// would be too small.
fn shards(bytes: u64, page_bytes: usize) -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let most = (bytes / page_bytes.max(64) as u64 / SHARD_PAGES_MIN).max(1);
    let fitting = 1 << most.ilog2();
    (processors * 4).next_power_of_two().min(fitting)
}

/// Sets a capacity. Locks every shard, so changes below a hundredth of the whole are left out.
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
