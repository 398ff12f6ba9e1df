//! Chains of a buffer: found by hash for a known key, and in order for a range.
//!
//! A commit knows its keys. Most of them are new to the buffer; in a small hot set they were written a moment
//! ago. One look into a hash table in the processor's caches settles either case. A search of the ordered map
//! takes some twenty comparisons, half of which the processor mispredicts.
//!
//! # Terms
//! - *Entry*: a key with its chain. Entries are never moved.
//! - *Number* of a chain: the position of its entry, in the order of arrival.
//!
//! # Invariants
//! - `order` and `table` have each number once.
//! - No chain is ever removed: after a flush the whole buffer is dropped.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::ops::Bound;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::chain::Chain;
use super::key::BufferKey;

/// Entries that are allocated at once. Full blocks are never copied; only the first block grows by copying.
const ENTRIES_A_BLOCK: usize = 256;

/// The position of a chain's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainNumber(u32);

/// A slot of the hash table. It keeps a part of the hash, so that a growing table need not visit entries.
#[derive(Clone, Copy, Debug)]
struct Hashed {
    hash: u32,
    number: ChainNumber,
}

impl Hashed {
    /// The kept bits, spread over the bits that the table uses.
    fn spread(hash: u32) -> u64 {
        u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

#[derive(Debug)]
struct Entry {
    key: BufferKey,
    chain: Chain,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Chains {
    order: BTreeMap<BufferKey, ChainNumber>,
    table: HashTable<Hashed>,
    entries: Entries,
    /// Seeded anew in each process. An attacker who measures times can still find colliding keys. They only
    /// slow down the lookups of one buffer, which is small.
    hashes: DefaultHashBuilder,
}

impl Chains {
    fn hash(&self, key: &[u8]) -> u32 {
        self.hashes.hash_one(key) as u32
    }

    /// The chain of a key.
    pub(super) fn find(&self, key: &[u8]) -> Option<ChainNumber> {
        let hash = self.hash(key);
        let is_it =
            |known: &Hashed| known.hash == hash && self.entries.get(known.number).key.as_slice() == key;
        self.table.find(Hashed::spread(hash), is_it).map(|known| known.number)
    }

    /// Adds the chain of a key that has none.
    pub(super) fn insert(&mut self, key: &[u8], chain: Chain) {
        let hash = self.hash(key);
        let key = BufferKey::new(key);
        let number = self.entries.push(Entry { key: key.clone(), chain });
        let known = Hashed { hash, number };
        self.table.insert_unique(Hashed::spread(hash), known, |known| Hashed::spread(known.hash));
        let other = self.order.insert(key, number);
        assert!(other.is_none(), "a key has one chain");
    }

    pub(super) fn get(&self, number: ChainNumber) -> &Chain {
        &self.entries.get(number).chain
    }

    pub(super) fn get_mut(&mut self, number: ChainNumber) -> (&[u8], &mut Chain) {
        let entry = self.entries.get_mut(number);
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
        range.map(|(key, number)| (key.as_slice(), self.get(*number)))
    }
}

/// Entries by their numbers, in blocks.
#[derive(Debug, Default)]
struct Entries(Vec<Vec<Entry>>);

impl Entries {
    fn push(&mut self, entry: Entry) -> ChainNumber {
        let has_room = self.0.last().is_some_and(|block| block.len() < ENTRIES_A_BLOCK);
        if !has_room {
            // A small buffer allocates no more than it needs.
            let room = if self.0.is_empty() { 0 } else { ENTRIES_A_BLOCK };
            self.0.push(Vec::with_capacity(room));
        }
        let blocks = self.0.len();
        let block = &mut self.0[blocks - 1];
        block.push(entry);
        let number = (blocks - 1) * ENTRIES_A_BLOCK + block.len() - 1;
        ChainNumber(u32::try_from(number).expect("a buffer has far fewer than four billion keys"))
    }

    fn get(&self, ChainNumber(number): ChainNumber) -> &Entry {
        let number = number as usize;
        &self.0[number / ENTRIES_A_BLOCK][number % ENTRIES_A_BLOCK]
    }

    fn get_mut(&mut self, ChainNumber(number): ChainNumber) -> &mut Entry {
        let number = number as usize;
        &mut self.0[number / ENTRIES_A_BLOCK][number % ENTRIES_A_BLOCK]
    }
}
