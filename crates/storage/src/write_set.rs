//! The write set: the private writes of a transaction, in memory.
//!
//! # Terms
//! - *Arena*: one growing buffer with the key and value bytes of every write, in the order of writing.
//! - *Entry*: one write: where its bytes lie, and which earlier entry of the same key it covers.
//! - *Latest*: the entry of a key that no later one covers. Only those are read, and only those are
//!   committed.
//! - *Order*: per tree, a map from key to latest entry. It is built at a tree's first scan and maintained
//!   afterwards; a transaction that only inserts never pays for it.
//!
//! # Algorithm
//! 1. A write appends key and value to the arena and an entry to the list. A hash table leads from a key to
//!    its latest entry. No write allocates on its own.
//! 2. A savepoint is a number of entries. Rolling back pops entries, newest first, and uncovers those that
//!    they covered.
//! 3. [`WriteSet::scan_over`] merges the order of a tree with an engine's own scan. On equal keys the write
//!    wins, and a deletion hides the engine's entry.
//! 4. A merge over an own put or deletion becomes a put; over an own merge the two become one. So the latest
//!    entry alone decides what becomes of the key.
//!
//! ```text
//! put a=1, put b=2, delete a           entries  0: a=1   1: b=2   2: a deleted, covers 0
//! latest: a → 2, b → 1                 iter()   b=2, a deleted
//! rollback_to(2)                       latest: a → 0, b → 1
//! ```
//!
//! # Invariants
//! - Every key that was written has exactly one latest entry, in the hash table and (where there is one) in
//!   the order.
//! - An entry covers only entries before it, so truncating at any point leaves a valid set.
//!
//! # Not here
//! - Writes beyond memory: [`SpillingWrites`](crate::SpillingWrites) puts aside full sets.
//! - Conflicts: [`Intents`](crate::Intents). Lengths of keys and values: [`limits`](crate::limits).

pub(crate) mod overlay;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as TableEntry;

use crate::access::Claim;
use crate::error::{ErrorKind, StorageError};
use crate::fingerprint::fingerprint;
use crate::identifiers::{Savepoint, TreeId};
use crate::merge::{ADDITION_BYTES, MERGES_BYTES_MAX, Merge, Merges};

/// The effect of a write on its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'w> {
    /// Sets the value.
    Put(&'w [u8]),
    /// Takes the key away.
    Delete,
    /// Changes the present value without reading it.
    Merge(Merges<'w>),
}

impl<'w> Change<'w> {
    /// The bytes that it carries: a value, or encoded merges; none for a deletion.
    pub fn bytes(self) -> &'w [u8] {
        match self {
            Change::Put(value) => value,
            Change::Delete => &[],
            Change::Merge(merges) => merges.as_bytes(),
        }
    }

    /// The value that it leaves behind, where `below` is what was there before; `None` for none.
    pub fn over<'v>(self, below: Option<&'v [u8]>) -> Option<Cow<'v, [u8]>>
    where
        'w: 'v,
    {
        match self {
            Change::Put(value) => Some(Cow::Borrowed(value)),
            Change::Delete => None,
            Change::Merge(merges) => merges.apply(below),
        }
    }
}

/// One write, as it is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write<'w> {
    /// The tree written to.
    pub tree: TreeId,
    /// The key.
    pub key: &'w [u8],
    /// The effect on the key.
    pub change: Change<'w>,
    /// How other writers are kept away.
    pub claim: Claim,
}

impl<'w> Write<'w> {
    /// Sets the value of a key.
    pub const fn put(tree: TreeId, key: &'w [u8], value: &'w [u8], claim: Claim) -> Write<'w> {
        Write { tree, key, change: Change::Put(value), claim }
    }

    /// Removes a key.
    pub const fn delete(tree: TreeId, key: &'w [u8], claim: Claim) -> Write<'w> {
        Write { tree, key, change: Change::Delete, claim }
    }
}

/// The keys of one tree in order, each with its latest entry.
pub(crate) type Order = BTreeMap<Box<[u8]>, u32>;

/// Memory of an entry and its place in the table of keys, about.
const ENTRY_MEMORY: usize = size_of::<Entry>() + 8;
/// Memory of a key in an order beside its bytes, about.
const ORDER_MEMORY: usize = 48;

/// Bytes for which there is room in the arena behind the first write.
const FURTHER_BYTES: usize = 128;

/// No earlier entry of the key.
const NO_ENTRY: u32 = u32::MAX;

/// The kind of an entry.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Put,
    Delete,
    Merge,
}

struct Entry {
    fingerprint: u64,
    /// Where the key begins in the arena; the value follows it.
    start: usize,
    tree: TreeId,
    key_bytes: u32,
    value_bytes: u32,
    /// The entry of the same key that this one covers, or [`NO_ENTRY`].
    covers: u32,
    kind: Kind,
    is_covered: bool,
    claim: Claim,
}

/// The private writes of one transaction. See the module's head.
#[derive(Default)]
pub struct WriteSet {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    latest: HashTable<u32>,
    /// In a cell because a scan of a shared transaction builds it.
    orders: RefCell<BTreeMap<TreeId, Order>>,
    /// Bytes of memory of the orders. Entries that a rollback takes out of them stay counted.
    order_memory: Cell<usize>,
}

impl WriteSet {
    /// A set without writes.
    pub fn new() -> WriteSet {
        WriteSet::default()
    }

    /// Sets the value of a key.
    ///
    /// # Panics
    /// With 2³² − 1 writes, or a key or value of 4 GiB.
    pub fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8], claim: Claim) {
        self.write(Write { tree, key, change: Change::Put(value), claim });
    }

    /// Removes a key.
    ///
    /// # Panics
    /// As [`WriteSet::put`].
    pub fn delete(&mut self, tree: TreeId, key: &[u8], claim: Claim) {
        self.write(Write { tree, key, change: Change::Delete, claim });
    }

    /// Merges into the present value of the key. Over an own put or delete it becomes a put; over own merges
    /// they become one.
    ///
    /// # Errors
    /// Merges of different operators have become more than [`MERGES_BYTES_MAX`].
    ///
    /// # Panics
    /// As [`WriteSet::put`].
    pub fn merge(
        &mut self,
        tree: TreeId,
        key: &[u8],
        merge: Merge<'_>,
        claim: Claim,
    ) -> Result<(), StorageError> {
        let over_own = OverOwn::new(self.latest(tree, key).map(|own| own.change), merge)?;
        self.write(Write { tree, key, change: over_own.change(), claim });
        Ok(())
    }

    /// The latest write of a key, if this transaction has written it: a deletion has no value.
    pub fn latest(&self, tree: TreeId, key: &[u8]) -> Option<Write<'_>> {
        if self.entries.is_empty() {
            return None;
        }
        let hash = fingerprint(tree, key);
        let at = self.latest.find(hash, |at| self.is_key(*at, hash, tree, key))?;
        Some(self.write_at(*at))
    }

    /// The latest write of each key, in the order of writing.
    pub fn iter(&self) -> impl Iterator<Item = Write<'_>> + '_ {
        self.entries.iter().filter(|entry| !entry.is_covered).map(|entry| self.write_of(entry))
    }

    /// The latest write of each key, by tree and key.
    pub fn sorted(&self) -> Vec<Write<'_>> {
        let mut writes: Vec<Write<'_>> = self.iter().collect();
        writes.sort_unstable_by_key(|write| (write.tree, write.key));
        writes
    }

    /// All writes, covered ones too, in the order of writing.
    pub(crate) fn versions(&self) -> impl Iterator<Item = Write<'_>> + '_ {
        self.entries.iter().map(|entry| self.write_of(entry))
    }

    /// Writes so far, covered ones too.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys written.
    pub fn keys(&self) -> usize {
        self.latest.len()
    }

    /// Bytes of keys and values of all writes, covered ones too.
    pub fn bytes(&self) -> usize {
        self.arena.len()
    }

    /// The approximate bytes of memory that the set takes, to be held against a limit.
    pub fn memory(&self) -> usize {
        self.arena.len() + self.entries.len() * ENTRY_MEMORY + self.order_memory.get()
    }

    /// A point to come back to.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint::new(self.entries.len())
    }

    /// Forgets every write since the savepoint. One that lies ahead (made before an earlier rollback) changes
    /// nothing.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        while self.entries.len() > savepoint.writes() {
            self.pop();
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
        self.latest.clear();
        self.orders.get_mut().clear();
        self.order_memory.set(0);
    }

    /// Adds a write as it is.
    pub(crate) fn write(&mut self, write: Write<'_>) {
        let hash = fingerprint(write.tree, write.key);
        let at = u32::try_from(self.entries.len()).ok().filter(|at| *at != NO_ENTRY);
        let at = at.expect("a transaction has fewer than 2^32 - 1 writes");
        let covers = self.make_latest(hash, write.tree, write.key, at);
        if let Some(before) = self.entries.get_mut(covers as usize) {
            before.is_covered = true;
        }
        let value = write.change.bytes();
        if self.arena.is_empty() {
            // Room for a document, some index entries and the counters without a second allocation.
            self.arena.reserve(write.key.len() + value.len() + FURTHER_BYTES);
        }
        self.entries.push(Entry {
            fingerprint: hash,
            start: self.arena.len(),
            tree: write.tree,
            key_bytes: u32::try_from(write.key.len()).expect("a key is below 4 GiB"),
            value_bytes: u32::try_from(value.len()).expect("a value is below 4 GiB"),
            covers,
            kind: match write.change {
                Change::Put(_) => Kind::Put,
                Change::Delete => Kind::Delete,
                Change::Merge(_) => Kind::Merge,
            },
            is_covered: false,
            claim: write.claim,
        });
        self.arena.extend_from_slice(write.key);
        self.arena.extend_from_slice(value);
        if let Some(order) = self.orders.get_mut().get_mut(&write.tree) {
            match order.get_mut(write.key) {
                Some(latest) => *latest = at,
                None => {
                    order.insert(write.key.into(), at);
                    *self.order_memory.get_mut() += write.key.len() + ORDER_MEMORY;
                }
            }
        }
    }

    /// Makes `at` the latest entry of a key, and returns the one that was ([`NO_ENTRY`] for a key not written
    /// yet).
    fn make_latest(&mut self, hash: u64, tree: TreeId, key: &[u8], at: u32) -> u32 {
        let (entries, arena) = (&self.entries, &self.arena);
        let same = |other: &u32| is_key(&entries[*other as usize], arena, hash, tree, key);
        match self.latest.entry(hash, same, |other| entries[*other as usize].fingerprint) {
            TableEntry::Occupied(mut have) => std::mem::replace(have.get_mut(), at),
            TableEntry::Vacant(free) => {
                free.insert(at);
                NO_ENTRY
            }
        }
    }

    /// Takes the newest entry away and uncovers what it covered.
    fn pop(&mut self) {
        let Some(entry) = self.entries.pop() else { return };
        let at = self.entries.len() as u32;
        let key = &self.arena[entry.start..entry.start + entry.key_bytes as usize];
        let order = self.orders.get_mut().get_mut(&entry.tree);
        let slot = self.latest.find_entry(entry.fingerprint, |other| *other == at);
        let mut slot = slot.expect("the newest entry is the latest of its key");
        match self.entries.get_mut(entry.covers as usize) {
            Some(before) => {
                before.is_covered = false;
                *slot.get_mut() = entry.covers;
                if let Some(latest) = order.and_then(|order| order.get_mut(key)) {
                    *latest = entry.covers;
                }
            }
            None => {
                slot.remove();
                if let Some(order) = order {
                    order.remove(key);
                }
            }
        }
        self.arena.truncate(entry.start);
    }

    fn is_key(&self, at: u32, hash: u64, tree: TreeId, key: &[u8]) -> bool {
        is_key(&self.entries[at as usize], &self.arena, hash, tree, key)
    }

    fn write_at(&self, at: u32) -> Write<'_> {
        self.write_of(&self.entries[at as usize])
    }

    fn write_of(&self, entry: &Entry) -> Write<'_> {
        let value_start = entry.start + entry.key_bytes as usize;
        let value = &self.arena[value_start..value_start + entry.value_bytes as usize];
        Write {
            tree: entry.tree,
            key: &self.arena[entry.start..value_start],
            change: change_of(entry.kind, value),
            claim: entry.claim,
        }
    }
}

/// A merge over an earlier write of the same key by the same transaction.
pub(crate) enum OverOwn {
    /// A first addition, which needs no allocation. Every commit that changes a counter has some.
    Addition([u8; ADDITION_BYTES]),
    Other {
        kind: Kind,
        bytes: Vec<u8>,
    },
}

impl OverOwn {
    pub(crate) fn new(own: Option<Change<'_>>, merge: Merge<'_>) -> Result<OverOwn, StorageError> {
        let (kind, bytes) = match (own, merge) {
            (None, Merge::Add(number)) => return Ok(OverOwn::Addition(Merge::addition_bytes(number))),
            (None, merge) => (Kind::Merge, merge.to_bytes()),
            (Some(Change::Put(value)), merge) => over_known(merge, Some(value)),
            (Some(Change::Delete), merge) => over_known(merge, None),
            (Some(Change::Merge(older)), merge) => (Kind::Merge, joined(older, merge)?),
        };
        Ok(OverOwn::Other { kind, bytes })
    }

    /// The change that the merge amounts to.
    pub(crate) fn change(&self) -> Change<'_> {
        match self {
            OverOwn::Addition(bytes) => change_of(Kind::Merge, bytes),
            OverOwn::Other { kind, bytes } => change_of(*kind, bytes),
        }
    }
}

/// A merge over a value that is known; `None` stands for an absent key.
fn over_known(merge: Merge<'_>, value: Option<&[u8]>) -> (Kind, Vec<u8>) {
    match merge.apply(value) {
        Some(value) => (Kind::Put, value.into_owned()),
        None => (Kind::Delete, Vec::new()),
    }
}

fn joined(older: Merges<'_>, merge: Merge<'_>) -> Result<Vec<u8>, StorageError> {
    let newer = merge.to_bytes();
    let bytes = Merges::decode(&newer).expect("what was just encoded can be decoded").after(older);
    if bytes.len() <= MERGES_BYTES_MAX {
        return Ok(bytes);
    }
    let message = format!(
        "merges of different operators for one key have become {} bytes, of {MERGES_BYTES_MAX} that a transaction may have: commit in between, or put the value",
        bytes.len()
    );
    Err(StorageError::new(ErrorKind::InvalidInput, message))
}

fn change_of(kind: Kind, bytes: &[u8]) -> Change<'_> {
    match kind {
        Kind::Put => Change::Put(bytes),
        Kind::Delete => Change::Delete,
        Kind::Merge => {
            Change::Merge(Merges::decode(bytes).expect("the set holds merges that were encoded whole"))
        }
    }
}

fn is_key(entry: &Entry, arena: &[u8], hash: u64, tree: TreeId, key: &[u8]) -> bool {
    entry.fingerprint == hash
        && entry.tree == tree
        && entry.key_bytes as usize == key.len()
        && arena[entry.start..entry.start + key.len()] == *key
}

impl std::fmt::Debug for WriteSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WriteSet({} writes of {} keys, {} bytes)", self.len(), self.keys(), self.bytes())
    }
}

#[cfg(test)]
mod tests;
