//! A sorter for more entries than memory holds: an external merge sort whose runs are trees.
//!
//! 1. Entries gather in an arena. When it is full, they are sorted and loaded into a tree of their own as
//!    full leaves ([`Engine::load`]): a *run*. The arena begins anew.
//! 2. At the end, the entries in the arena become the last run. If there is no other
//!    run, they stay in memory.
//! 3. If memory has no room to read all runs at once, the first runs are merged into one, until it has.
//! 4. One merge goes through all runs: the smallest of their next entries is next. Each run is read in
//!    batches as large as the memory allows.
//!
//! Trees as scratch space need no files of their own, and share the engine's cache and free space. If a crash
//! leaves runs, the next [`Catalog::open`](crate::Catalog::open) drops them.
//!
//! [`Engine::load`]: pando_storage::Engine::load

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pando_storage::{
    BatchLimits, Begin, BlockingMode, Cursor, Direction, IteratorEntries, KeyRange, LoadDurability,
    SortedEntries, StorageError, Transaction, TreeId, TreeOptions,
};

use crate::CatalogError;
use crate::store::Store;

/// Memory of a run during a merge beside its batch: the places of the batch's entries, and the next entry.
const BESIDE_BATCH_BYTES: usize = 16 << 10;
/// Fewest runs that one merge reads, however little memory there is: with fewer, entries
/// would be written too often.
const FAN_IN_MIN: usize = 16;

/// Steps in which arena and slots grow to the memory that they may take.
const GROWTH_STEPS: usize = 16;

/// Where an entry lies in the arena.
#[derive(Clone, Copy)]
struct Slot {
    start: usize,
    key_bytes: u32,
    value_bytes: u32,
}

/// Entries that are to be sorted: in the arena, and in runs.
pub(crate) struct Sorter {
    arena: Vec<u8>,
    slots: Vec<Slot>,
    /// Bytes that arena and slots may take, unless one entry needs more.
    bytes_max: usize,
    runs: Vec<TreeId>,
    entries: u64,
}

impl Sorter {
    pub(crate) fn new(bytes_max: usize) -> Sorter {
        Sorter { arena: Vec::new(), slots: Vec::new(), bytes_max, runs: Vec::new(), entries: 0 }
    }

    /// Takes an entry. May write a run.
    pub(crate) fn push(&mut self, store: &Store, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        let more = key.len() + value.len();
        if !self.slots.is_empty() && !self.has_room(more) {
            self.write_run(store)?;
        }
        self.make_room(more);
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("keys and values are below 4 GiB");
        self.slots.push(Slot { start: self.arena.len(), key_bytes: length(key), value_bytes: length(value) });
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(value);
        self.entries += 1;
        Ok(())
    }

    /// Entries taken.
    pub(crate) fn len(&self) -> u64 {
        self.entries
    }

    /// The trees of the runs. The caller drops them at the end.
    pub(crate) fn runs(&self) -> &[TreeId] {
        &self.runs
    }

    /// Ends the input, so that [`merge`](Sorter::merge) has everything. A sorter with runs gives up its
    /// arena, because it needs the memory to read them. `check` is called between steps that take minutes;
    /// its error ends the sort.
    pub(crate) fn finish(
        &mut self,
        store: &Store,
        check: &mut dyn FnMut() -> Result<(), CatalogError>,
    ) -> Result<(), CatalogError> {
        if self.runs.is_empty() {
            self.sort();
            return Ok(());
        }
        self.write_run(store)?;
        (self.arena, self.slots) = (Vec::new(), Vec::new());
        while self.runs.len() > self.fan_in() {
            check()?;
            self.unite_runs(store)?;
        }
        Ok(())
    }

    /// Merges the first runs into one: as many as one merge reads, or only as many as must
    /// go to leave that number.
    fn unite_runs(&mut self, store: &Store) -> Result<(), StorageError> {
        let count = (self.runs.len() + 1 - self.fan_in()).min(self.fan_in());
        let united = store.create_tree("run", &TreeOptions::default())?.id;
        self.runs.push(united);
        {
            let reader = store.engine.begin(Begin::READ)?;
            let mut merge = self.merge_of(&self.runs[..count], &*reader)?;
            store.engine.load(united, &mut merge, LoadDurability::Scratch)?;
        }
        for run in &self.runs[..count] {
            store.engine.drop_tree(*run)?;
        }
        self.runs.drain(..count);
        Ok(())
    }

    /// How many runs one merge reads.
    fn fan_in(&self) -> usize {
        (self.bytes_max / (BatchLimits::FIRST.bytes_max + BESIDE_BATCH_BYTES)).max(FAN_IN_MIN)
    }

    /// All entries in order. The transaction has begun after [`finish`](Sorter::finish).
    pub(crate) fn merge<'s>(&'s self, transaction: &'s dyn Transaction) -> Result<Merge<'s>, StorageError> {
        self.merge_of(&self.runs, transaction)
    }

    fn merge_of<'s>(
        &'s self,
        runs: &[TreeId],
        transaction: &'s dyn Transaction,
    ) -> Result<Merge<'s>, StorageError> {
        let mut merge =
            Merge { sorter: self, transaction, next_slot: 0, heads: BinaryHeap::new(), current: None };
        let batch_bytes = (self.bytes_max / runs.len().max(1)).saturating_sub(BESIDE_BATCH_BYTES);
        for run in runs {
            let cursor = Cursor::new(*run, KeyRange::all(), Direction::Forward).within(batch_bytes);
            merge.advance(Head { key: Vec::new(), value: Vec::new(), cursor })?;
        }
        Ok(merge)
    }

    /// Bytes of memory that arena and slots take.
    fn memory_bytes(&self) -> usize {
        self.arena.capacity() + self.slots.capacity() * size_of::<Slot>()
    }

    /// Whether an entry of so many bytes fits within the limit.
    fn has_room(&self, more: usize) -> bool {
        let (arena, slots) = self.room_wanted(more);
        arena + slots * size_of::<Slot>() <= self.bytes_max
    }

    /// Capacities of arena and slots that an entry of so many bytes needs. Both grow by a fixed part of the
    /// limit: a vector that grows by itself takes up to twice what it needs.
    fn room_wanted(&self, more: usize) -> (usize, usize) {
        let step = (self.bytes_max / GROWTH_STEPS).max(1);
        let grown = |capacity: usize, wanted: usize, step: usize| match wanted > capacity {
            true => wanted.max(capacity + step),
            false => capacity,
        };
        let arena = grown(self.arena.capacity(), self.arena.len() + more, step);
        let slots = grown(self.slots.capacity(), self.slots.len() + 1, step.div_ceil(size_of::<Slot>()));
        (arena, slots)
    }

    fn make_room(&mut self, more: usize) {
        let (arena, slots) = self.room_wanted(more);
        self.arena.reserve_exact(arena - self.arena.len());
        self.slots.reserve_exact(slots - self.slots.len());
    }

    fn sort(&mut self) {
        let arena = &self.arena;
        self.slots.sort_unstable_by(|one, other| entry(arena, *one).0.cmp(entry(arena, *other).0));
    }

    fn write_run(&mut self, store: &Store) -> Result<(), StorageError> {
        self.sort();
        let tree = store.create_tree("run", &TreeOptions::default())?.id;
        self.runs.push(tree);
        let mut entries = IteratorEntries::new(self.slots.iter().map(|slot| entry(&self.arena, *slot)));
        store.engine.load(tree, &mut entries, LoadDurability::Scratch)?;
        let is_used = |length: usize, capacity: usize| length >= capacity / 2;
        let is_in_proportion = is_used(self.arena.len(), self.arena.capacity())
            && is_used(self.slots.len(), self.slots.capacity());
        if is_in_proportion && self.memory_bytes() <= self.bytes_max {
            self.arena.clear();
            self.slots.clear();
        } else {
            // Entries have become longer or shorter, so arena and slots are out of proportion, or one entry
            // was too long. Kept as they are, they would make each further run as short as this one.
            (self.arena, self.slots) = (Vec::new(), Vec::new());
        }
        Ok(())
    }
}

fn entry(arena: &[u8], slot: Slot) -> (&[u8], &[u8]) {
    let value = slot.start + slot.key_bytes as usize;
    (&arena[slot.start..value], &arena[value..value + slot.value_bytes as usize])
}

/// The next entry of a run.
struct Head {
    key: Vec<u8>,
    value: Vec<u8>,
    cursor: Cursor,
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.key == other.key
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// Entries of all runs in order.
pub(crate) struct Merge<'s> {
    sorter: &'s Sorter,
    transaction: &'s dyn Transaction,
    /// The next of those in memory.
    next_slot: usize,
    heads: BinaryHeap<Reverse<Head>>,
    current: Option<Head>,
}

impl Merge<'_> {
    /// Puts a run back with its next entry, if it has one.
    fn advance(&mut self, mut head: Head) -> Result<(), StorageError> {
        let Some((key, value)) = head.cursor.next(self.transaction, BlockingMode::MayBlock)? else {
            return Ok(());
        };
        head.key.clear();
        head.key.extend_from_slice(key);
        head.value.clear();
        head.value.extend_from_slice(value);
        self.heads.push(Reverse(head));
        Ok(())
    }
}

impl SortedEntries for Merge<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        if let Some(slot) = self.sorter.slots.get(self.next_slot) {
            self.next_slot += 1;
            return Ok(Some(entry(&self.sorter.arena, *slot)));
        }
        if let Some(head) = self.current.take() {
            self.advance(head)?;
        }
        self.current = self.heads.pop().map(|Reverse(head)| head);
        Ok(self.current.as_ref().map(|head| (head.key.as_slice(), head.value.as_slice())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pando_environment::Environment;
    use pando_memory::MemoryEngine;

    use super::*;
    use crate::Catalog;

    const MEMORY: usize = 64 << 10;

    fn catalog() -> Catalog {
        let engine = Arc::new(MemoryEngine::new(&Environment::real()));
        Catalog::open(engine).expect("an empty store opens")
    }

    /// Pushes keys in no order, with values of `value_bytes` bytes.
    fn push(sorter: &mut Sorter, store: &Store, numbers: std::ops::Range<u64>, value_bytes: usize) {
        for number in numbers {
            let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
            sorter.push(store, &key, &vec![7; value_bytes]).expect("there is room");
        }
    }

    fn sorted(sorter: &Sorter, store: &Store) -> u64 {
        let reader = store.engine.begin(Begin::READ).expect("a reader begins");
        let mut merge = sorter.merge(&*reader).expect("the runs are there");
        let (mut count, mut last) = (0, Vec::new());
        while let Some((key, _)) = merge.next().expect("reads succeed") {
            assert!(*key > *last, "entry {count}");
            last = key.to_vec();
            count += 1;
        }
        count
    }

    #[test]
    fn more_runs_than_are_read_at_once_are_united_first() {
        let catalog = catalog();
        let (store, mut sorter) = (catalog.store(), Sorter::new(MEMORY));
        push(&mut sorter, store, 0..60_000, 20);
        assert!(sorter.runs.len() > 2 * FAN_IN_MIN, "{} runs", sorter.runs.len());
        let mut looks = 0;
        let mut look = || {
            looks += 1;
            Ok(())
        };
        sorter.finish(store, &mut look).expect("the runs are united");
        assert!(sorter.runs.len() <= FAN_IN_MIN && looks > 1, "{} runs", sorter.runs.len());
        let trees = store.engine.list_trees().expect("they can be listed");
        assert_eq!(trees.iter().filter(|tree| tree.name.starts_with("run")).count(), sorter.runs.len());
        assert_eq!(sorted(&sorter, store), 60_000);
        assert!(sorter.memory_bytes() == 0, "what was sorted in is for reading now");
    }

    #[test]
    fn runs_are_as_long_as_the_memory_whatever_came_before() {
        let catalog = catalog();
        let (store, mut sorter) = (catalog.store(), Sorter::new(MEMORY));
        push(&mut sorter, store, 0..200, 1_000);
        sorter.push(store, b"an entry that is larger than all there is", &vec![7; 2 * MEMORY]).expect("room");
        let before = sorter.runs.len();
        let entries = 20_000;
        push(&mut sorter, store, 1_000..1_000 + entries, 0);
        let bytes = entries as usize * (8 + size_of::<Slot>());
        let runs = sorter.runs.len() - before;
        assert!(runs <= bytes / MEMORY * 5 / 4 + 2, "{runs} runs of {bytes} bytes");
        assert!(sorter.memory_bytes() <= MEMORY);
        sorter.finish(store, &mut || Ok(())).expect("the last run is written");
        assert_eq!(sorted(&sorter, store), 200 + 1 + entries);
    }
}
