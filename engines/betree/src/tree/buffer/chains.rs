//! The chains of a buffer: by hash for whoever knows the key, in order for whoever wants a range.
//!
//! A commit knows its keys. Most are new, or, where a small set is written again and again, were written a moment ago. Either is told by
//! one place of a table that fits in the processor's caches, where a search through the order takes some twenty comparisons, each of which the
//! processor guesses wrongly half of the time.
//!
//! # Terms
//! - *Entry*: a key with its chain. Entries stay where they are.
//! - *Place*: which entry, in the order in which they came.
//!
//! # Invariants
//! - `order` and `table` have each place once.
//! - Nothing is taken out: what was merged goes with the whole buffer.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::ops::Bound;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::chain::Chain;
use super::key::BufferKey;

/// Entries are allocated so many at once: none is ever copied to where there is more room, but for the first ones.
const ENTRIES_A_BLOCK: usize = 256;

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

#[derive(Debug)]
struct Entry {
    key: BufferKey,
    chain: Chain,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Chains {
    order: BTreeMap<BufferKey, Place>,
    table: HashTable<Place>,
    entries: Entries,
    /// Drawn at random, so that nobody can choose keys that meet.
    hashes: DefaultHashBuilder,
}

impl Chains {
    /// Where the chain of a key is.
    pub(super) fn find(&self, key: &[u8]) -> Option<Place> {
        let is_it = |place: &Place| self.entries.get(*place).key.as_slice() == key;
        self.table.find(self.hashes.hash_one(key), is_it).copied()
    }

    /// Adds the chain of a key that has none.
    pub(super) fn insert(&mut self, key: &[u8], chain: Chain) {
        let key = BufferKey::new(key);
        let (entries, hashes) = (&mut self.entries, &self.hashes);
        let hash = |key: &BufferKey| hashes.hash_one(key.as_slice());
        let (own, place) = (hash(&key), entries.push(Entry { key: key.clone(), chain }));
        self.table.insert_unique(own, place, |place| hash(&entries.get(*place).key));
        let other = self.order.insert(key, place);
        assert!(other.is_none(), "a key has one chain");
    }

    pub(super) fn get(&self, place: Place) -> &Chain {
        &self.entries.get(place).chain
    }

    pub(super) fn get_mut(&mut self, place: Place) -> (&[u8], &mut Chain) {
        let entry = self.entries.get_mut(place);
        (entry.key.as_slice(), &mut entry.chain)
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// All chains with their keys, in no order.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = (&[u8], &mut Chain)> + '_ {
        self.entries.0.iter_mut().flatten().map(|entry| (entry.key.as_slice(), &mut entry.chain))
    }

    /// The chains of a range that is not empty, ascending.
    pub(super) fn range(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> impl DoubleEndedIterator<Item = (&[u8], &Chain)> + '_ {
        let range = self.order.range::<[u8], _>((lower, upper));
        range.map(|(key, place)| (key.as_slice(), self.get(*place)))
    }
}

/// Entries by their places, in blocks.
#[derive(Debug, Default)]
struct Entries(Vec<Vec<Entry>>);

impl Entries {
    fn push(&mut self, entry: Entry) -> Place {
        let has_room = self.0.last().is_some_and(|block| block.len() < ENTRIES_A_BLOCK);
        if !has_room {
            // A small buffer has no more than it needs.
            let room = if self.0.is_empty() { 0 } else { ENTRIES_A_BLOCK };
            self.0.push(Vec::with_capacity(room));
        }
        let blocks = self.0.len();
        let block = &mut self.0[blocks - 1];
        block.push(entry);
        let place = (blocks - 1) * ENTRIES_A_BLOCK + block.len() - 1;
        Place(u32::try_from(place).expect("a buffer has far fewer than four billion keys"))
    }

    fn get(&self, Place(place): Place) -> &Entry {
        let place = place as usize;
        &self.0[place / ENTRIES_A_BLOCK][place % ENTRIES_A_BLOCK]
    }

    fn get_mut(&mut self, Place(place): Place) -> &mut Entry {
        let place = place as usize;
        &mut self.0[place / ENTRIES_A_BLOCK][place % ENTRIES_A_BLOCK]
    }
}
