//! Sorts more entries than memory holds: runs that were sorted in memory wait in trees of their own, and are merged.
//!
//! 1. Entries gather in one arena. When it is full they are sorted and loaded into a tree ([`Engine::load`]), as full leaves, and
//!    the arena begins anew. A run is as long as the arena, so that even a thousand of them are few.
//! 2. At the end the arena is the last run. If it is the only one, no tree was made.
//! 3. Merging goes through all runs at once: the smallest of their next entries is next.
//!
//! Trees as scratch room need no files of their own, take part in the engine's cache and its room, and what a crash leaves of
//! them goes when the catalog is opened.
//!
//! [`Engine::load`]: pando_storage::Engine::load

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pando_storage::{
    Cursor, Direction, IteratorEntries, KeyRange, LoadDurability, Patience, SortedEntries, StorageError,
    Transaction, TreeId, TreeOptions,
};

use crate::catalog::Store;

/// In so many steps arena and slots grow to the memory that there is.
const GROWTH_STEPS: usize = 16;

/// Where an entry lies in the arena.
#[derive(Clone, Copy)]
struct Slot {
    start: usize,
    key_bytes: u32,
    value_bytes: u32,
}

/// See the module's head.
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

    /// The trees of runs, for whoever has to drop them.
    pub(crate) fn runs(&self) -> &[TreeId] {
        &self.runs
    }

    /// Ends taking, so that [`merge`](Sorter::merge) has everything. The memory of a sorter that has runs is free then.
    pub(crate) fn finish(&mut self, store: &Store) -> Result<(), StorageError> {
        if self.runs.is_empty() {
            self.sort();
            return Ok(());
        }
        self.write_run(store)?;
        (self.arena, self.slots) = (Vec::new(), Vec::new());
        Ok(())
    }

    /// All entries in order. The transaction has begun after [`finish`](Sorter::finish).
    pub(crate) fn merge<'s>(&'s self, transaction: &'s dyn Transaction) -> Result<Merge<'s>, StorageError> {
        let mut merge =
            Merge { sorter: self, transaction, next_slot: 0, heads: BinaryHeap::new(), current: None };
        for run in &self.runs {
            let cursor = Cursor::new(*run, KeyRange::all(), Direction::Forward);
            merge.advance(Head { key: Vec::new(), value: Vec::new(), cursor })?;
        }
        Ok(merge)
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.arena.capacity() + self.slots.capacity() * size_of::<Slot>()
    }

    /// Whether an entry of so many bytes goes in without more memory than there may be.
    fn has_room(&self, more: usize) -> bool {
        let (arena, slots) = self.room_wanted(more);
        arena + slots * size_of::<Slot>() <= self.bytes_max
    }

    /// Capacities of arena and slots with which an entry of so many bytes goes in. Both grow by steps of the whole: a vector that grows by
    /// itself takes twice what it has.
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
        let (_, tree) = store.create_tree("run", &TreeOptions::default())?;
        self.runs.push(tree);
        let mut entries = IteratorEntries::new(self.slots.iter().map(|slot| entry(&self.arena, *slot)));
        store.engine.load(tree, &mut entries, LoadDurability::Scratch)?;
        self.arena.clear();
        self.slots.clear();
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
        let Some((key, value)) = head.cursor.next(self.transaction, Patience::MayBlock)? else {
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
