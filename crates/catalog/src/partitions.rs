//! The partitions of a collection: ranges of its primary keys, which are dropped as a whole.
//!
//! # Terms
//! - *Partition*: the documents whose primary keys are above the bound of the partition before, and not above
//!   its own *bound*. The last one has no bound.
//! - *Prefix*: the number of a partition, at the beginning of the key of each index entry of its documents.
//!   So the entries of a partition are one range of each index, as its documents are one range of the
//!   primary tree.
//! - *Shrunk*: a partition that is gone, or has lost a part of its keys to a new one. An older snapshot sees
//!   entries under its prefix for those keys, so a scan at such a snapshot looks there as well.
//! - *Cut*: a bound within a partition. The documents all lie on one side of it. Those of the other side are
//!   the keys of a new partition.
//!
//! ```text
//! key of an entry     u32 BE prefix | key of the entry in a collection without partitions
//! prefix 0            of no partition: writers of one unique key meet there (`documents`)
//! ```
//!
//! # Invariants
//! - The list changes only while the collection's latch is held alone, and no index is being built.
//!   Statements that write hold the latch shared, so that a document and its entries agree on the
//!   partition.
//! - A number is never given twice.
//! - All descriptions of a collection share one list. A scan takes it after its snapshot has begun, so it has
//!   every partition in which the snapshot sees documents.
//! - A primary key is never cut: cut keys lose their order (`primary_key`).

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use pando_document::RawDocumentBuf;
use pando_storage::{CommitTimestamp, KeyRange, SnapshotTimestamp};

use crate::primary_key::PRIMARY_KEY_BYTES_MAX;
use crate::stamps::StampKind;

/// The most partitions of a collection.
pub const PARTITIONS_MAX: usize = 1_000;

/// Longest primary key of a document in a partitioned collection: with the number of a partition before it,
/// it fills what a storage key leaves to primary keys. It is never cut.
pub(crate) const PARTITIONED_KEY_BYTES_MAX: usize = PRIMARY_KEY_BYTES_MAX - 1 - PREFIX_BYTES;

/// Bytes of a prefix.
pub(crate) const PREFIX_BYTES: usize = 4;

/// The prefix of no partition.
pub(crate) const NO_PARTITION: [u8; PREFIX_BYTES] = [0; PREFIX_BYTES];

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The number by which it is dropped, from 0.
    pub id: u32,
    /// The bound; `None` of the last one.
    pub bound: Option<PartitionBound>,
    /// The time of its creation, in milliseconds since 1970; unknown of the first one.
    pub created_ms: Option<i64>,
}

/// The greatest primary key of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionBound {
    pub(crate) key: Vec<u8>,
    /// The values of the key's fields.
    pub values: RawDocumentBuf,
}

/// A partition that has lost keys since the store was opened, and the last commit by which it did.
#[derive(Clone, Copy, Debug)]
struct Shrunk {
    id: u32,
    at: CommitTimestamp,
}

/// The side of a cut that becomes a new partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewSide {
    Below,
    Above,
}

/// The partitions of a collection at one moment, in the order of their bounds.
#[derive(Clone, Debug)]
pub(crate) struct PartitionList {
    pub live: Vec<Partition>,
    /// The number of the next one.
    pub next_id: u32,
    shrunk: Vec<Shrunk>,
}

/// The list that all descriptions and indexes of a collection share.
#[derive(Debug)]
pub(crate) struct Partitions {
    list: ArcSwap<PartitionList>,
}

impl Partition {
    /// The bytes before the keys of its index entries.
    pub(crate) fn prefix(&self) -> [u8; PREFIX_BYTES] {
        prefix_of(self.id)
    }

    /// The time of its bound, where the first value of that is a stamp.
    pub(crate) fn end_ms(&self, kind: StampKind) -> Option<i64> {
        let (_, value) = self.bound.as_ref()?.values.iter().next()?.ok()?;
        kind.time_of(value)
    }

    /// Whether its bound is a stamp that is not behind this time.
    pub(crate) fn ends_by(&self, kind: StampKind, time_ms: i64) -> bool {
        self.end_ms(kind).is_some_and(|end| end <= time_ms)
    }

    fn is_below(&self, key: &[u8]) -> bool {
        self.bound.as_ref().is_some_and(|bound| bound.key.as_slice() < key)
    }
}

fn prefix_of(id: u32) -> [u8; PREFIX_BYTES] {
    (id + 1).to_be_bytes()
}

impl PartitionList {
    /// The one partition of a new collection.
    pub fn first() -> PartitionList {
        let first = Partition { id: 0, bound: None, created_ms: None };
        PartitionList { live: vec![first], next_id: 1, shrunk: Vec::new() }
    }

    /// The partitions in an entry of the catalog; `Err` says what is wrong with them.
    pub fn of_entry(live: Vec<Partition>, next_id: u32) -> Result<PartitionList, String> {
        let (last, bounded) = live.split_last().ok_or("it has no partition")?;
        let keys: Vec<_> = bounded.iter().filter_map(|partition| partition.bound.as_ref()).collect();
        let is_ordered = keys.windows(2).all(|pair| pair[0].key < pair[1].key);
        if last.bound.is_some() || keys.len() != bounded.len() || !is_ordered {
            return Err("the bounds of its partitions are out of order".to_owned());
        }
        if live.iter().any(|partition| partition.id >= next_id) || next_id == u32::MAX {
            return Err("a partition has a number that is not given yet".to_owned());
        }
        Ok(PartitionList { live, next_id, shrunk: Vec::new() })
    }

    /// The place of a primary key's partition.
    pub fn place_of(&self, key: &[u8]) -> usize {
        self.live.partition_point(|partition| partition.is_below(key)).min(self.live.len() - 1)
    }

    /// The place of the partition with this bound.
    pub fn bound_place(&self, key: &[u8]) -> Option<usize> {
        let place = self.place_of(key);
        self.live[place].bound.as_ref().filter(|bound| bound.key == key).map(|_| place)
    }

    /// The partition of a primary key.
    pub fn of_key(&self, key: &[u8]) -> &Partition {
        &self.live[self.place_of(key)]
    }

    /// The primary keys of the partition at a place.
    pub fn keys_at(&self, place: usize) -> KeyRange {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let bound_at = |place: usize| self.live[place].bound.as_ref().map(|bound| bound.key.clone());
        let lower = place.checked_sub(1).and_then(bound_at).map_or(Unbounded, Excluded);
        KeyRange { lower, upper: bound_at(place).map_or(Unbounded, Included) }
    }

    /// Whether a range of primary keys meets the partition at a place.
    pub fn is_met_at(&self, place: usize, keys: &[KeyRange]) -> bool {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let bound_at = |place: usize| self.live[place].bound.as_ref();
        let (before, bound) = (place.checked_sub(1).and_then(bound_at), bound_at(place));
        keys.iter().any(|range| {
            let begins_within = bound.is_none_or(|bound| range.is_above_lower(&bound.key));
            let ends_within = before.is_none_or(|before| match &range.upper {
                Unbounded => true,
                Included(upper) | Excluded(upper) => *upper > before.key,
            });
            begins_within && ends_within
        })
    }

    /// The prefixes under which a snapshot may see entries of documents with these primary keys.
    pub fn prefixes_within(
        &self,
        snapshot: SnapshotTimestamp,
        keys: Option<&[KeyRange]>,
    ) -> Vec<[u8; PREFIX_BYTES]> {
        let Some(keys) = keys else { return self.prefixes_at(snapshot).collect() };
        let met = (0..self.live.len()).filter(|place| self.is_met_at(*place, keys));
        let mut ids: Vec<u32> = met.map(|place| self.live[place].id).collect();
        for shrunk in self.shrunk.iter().filter(|shrunk| !snapshot.sees(shrunk.at)) {
            if !ids.contains(&shrunk.id) {
                ids.push(shrunk.id);
            }
        }
        ids.into_iter().map(prefix_of).collect()
    }

    /// The prefixes under which a snapshot may see entries, the last partition first.
    pub fn prefixes_at(&self, snapshot: SnapshotTimestamp) -> impl Iterator<Item = [u8; PREFIX_BYTES]> {
        let unseen = self.shrunk.iter().filter(move |shrunk| !snapshot.sees(shrunk.at));
        let gone = unseen.filter(|shrunk| self.live.iter().all(|partition| partition.id != shrunk.id));
        let live = self.live.iter().rev().map(|partition| partition.id);
        live.chain(gone.map(|shrunk| shrunk.id)).map(prefix_of)
    }

    /// The list with a cut at this bound through the partition at a place.
    pub fn with_cut(
        &self,
        place: usize,
        bound: PartitionBound,
        side: NewSide,
        created_ms: i64,
    ) -> PartitionList {
        let mut list = self.clone();
        let (id, created_ms) = (list.next_id, Some(created_ms));
        match side {
            NewSide::Below => list.live.insert(place, Partition { id, bound: Some(bound), created_ms }),
            NewSide::Above => {
                let end = list.live[place].bound.replace(bound);
                list.live.insert(place + 1, Partition { id, bound: end, created_ms });
            }
        }
        list.next_id += 1;
        list
    }

    /// The list with a bound for the last partition, and a new one behind it.
    pub fn with_bound(&self, bound: PartitionBound, created_ms: i64) -> PartitionList {
        self.with_cut(self.live.len() - 1, bound, NewSide::Above, created_ms)
    }

    /// The same partitions for another collection.
    pub fn for_another(&self) -> PartitionList {
        PartitionList { live: self.live.clone(), next_id: self.next_id, shrunk: Vec::new() }
    }

    /// Notes that partitions have lost keys by a commit.
    fn note_shrunk(&mut self, ids: &[u32], at: CommitTimestamp) {
        self.shrunk.retain(|shrunk| !ids.contains(&shrunk.id));
        self.shrunk.extend(ids.iter().map(|id| Shrunk { id: *id, at }));
    }

    /// Forgets the shrunk partitions that no snapshot from this one on looks for.
    pub fn forget_seen_by(&mut self, oldest: SnapshotTimestamp) {
        self.shrunk.retain(|shrunk| !oldest.sees(shrunk.at));
    }

    /// The list without the partition at a place, which is not the only one. The last one that stays loses
    /// its bound.
    pub fn without(&self, place: usize) -> PartitionList {
        let mut list = self.clone();
        list.live.remove(place);
        if let Some(last) = list.live.last_mut() {
            last.bound = None;
        }
        list
    }
}

impl Partitions {
    /// Those of this list.
    pub fn new(list: PartitionList) -> Arc<Partitions> {
        Arc::new(Partitions { list: ArcSwap::from_pointee(list) })
    }

    /// The list of this moment.
    pub fn list(&self) -> Guard<Arc<PartitionList>> {
        self.list.load()
    }

    /// The prefix of the index entries of a document.
    pub fn prefix_of(&self, primary_key: &[u8]) -> [u8; PREFIX_BYTES] {
        self.list.load().of_key(primary_key).prefix()
    }

    /// Replaces the list. The caller holds the latch of the collection alone. `shrunk` are the numbers of the
    /// partitions that have lost keys by the commit.
    pub fn replace(&self, mut list: PartitionList, shrunk: &[u32], at: CommitTimestamp) {
        list.note_shrunk(shrunk, at);
        self.list.store(Arc::new(list));
    }

    /// Replaces the list of a collection that nobody can see yet.
    pub fn begin_with(&self, list: PartitionList) {
        self.list.store(Arc::new(list));
    }
}

/// A range of the keys of an index, within a partition.
pub(crate) fn range_behind(prefix: [u8; PREFIX_BYTES], range: &KeyRange) -> KeyRange {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let whole = KeyRange::prefix(&prefix);
    let behind = |key: &Vec<u8>| [&prefix[..], key].concat();
    let lower = match &range.lower {
        Included(key) => Included(behind(key)),
        Excluded(key) => Excluded(behind(key)),
        Unbounded => whole.lower,
    };
    let upper = match &range.upper {
        Included(key) => Included(behind(key)),
        Excluded(key) => Excluded(behind(key)),
        Unbounded => whole.upper,
    };
    KeyRange { lower, upper }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use super::*;

    fn bound(key: &[u8]) -> PartitionBound {
        PartitionBound { key: key.to_vec(), values: RawDocumentBuf::new() }
    }

    fn three() -> PartitionList {
        PartitionList::first().with_bound(bound(b"f"), 2).with_bound(bound(b"p"), 3)
    }

    #[test]
    fn a_key_lies_in_the_first_partition_whose_bound_is_not_below() {
        let list = three();
        let places = [&b""[..], b"f", b"f\0", b"p", b"q", b"\xFF"].map(|key| list.place_of(key));
        assert_eq!(places, [0, 0, 1, 1, 2, 2]);
        for (place, range) in (0..3).map(|place| (place, list.keys_at(place))) {
            for key in [&b"a"[..], b"f", b"g", b"p", b"q"] {
                assert_eq!(range.contains(key), list.place_of(key) == place);
            }
        }
    }

    #[test]
    fn a_dropped_partition_leaves_its_keys_to_the_next_and_its_number_to_none() {
        let list = three().without(1);
        assert_eq!(list.of_key(b"g").id, 2);
        let list = list.without(1);
        assert_eq!((list.of_key(b"g").id, &list.live[0].bound), (0, &None));
        assert_eq!(list.with_bound(bound(b"x"), 9).live[1].id, 3);
    }

    #[test]
    fn a_snapshot_looks_under_the_partitions_that_it_sees() {
        let shared = Partitions::new(three());
        shared.replace(three().without(0), &[0], CommitTimestamp::new(7));
        let at = |snapshot| {
            let list = shared.list();
            list.prefixes_at(SnapshotTimestamp::new(snapshot)).map(|prefix| prefix[3]).collect::<Vec<_>>()
        };
        assert_eq!(at(7), [3, 2]);
        assert_eq!(at(6), [3, 2, 1]);
        let mut list = PartitionList::clone(&shared.list());
        list.forget_seen_by(SnapshotTimestamp::new(6));
        assert_eq!(list.prefixes_at(SnapshotTimestamp::new(6)).count(), 3);
        list.forget_seen_by(SnapshotTimestamp::new(7));
        assert_eq!(list.prefixes_at(SnapshotTimestamp::new(6)).count(), 2);
    }

    #[test]
    fn a_cut_leaves_the_number_to_one_side() {
        let below = three().with_cut(1, bound(b"k"), NewSide::Below, 9);
        let ids = |list: &PartitionList| list.live.iter().map(|partition| partition.id).collect::<Vec<_>>();
        assert_eq!((ids(&below), below.of_key(b"k").id, below.of_key(b"l").id), (vec![0, 3, 1, 2], 3, 1));
        let above = three().with_cut(1, bound(b"k"), NewSide::Above, 9);
        assert_eq!((ids(&above), above.of_key(b"k").id, above.of_key(b"p").id), (vec![0, 1, 3, 2], 1, 3));
        assert!(PartitionList::of_entry(below.live, 4).is_ok());
        assert!(PartitionList::of_entry(above.live, 4).is_ok());
    }

    #[test]
    fn an_older_snapshot_looks_under_a_partition_that_was_cut_whatever_the_keys() {
        let shared = Partitions::new(three());
        let cut = three().with_cut(1, bound(b"k"), NewSide::Below, 9);
        shared.replace(cut, &[1], CommitTimestamp::new(7));
        let within = |snapshot| {
            let mut found = shared
                .list()
                .prefixes_within(SnapshotTimestamp::new(snapshot), Some(&[KeyRange::point(b"h")]));
            found.sort_unstable();
            found
        };
        assert_eq!(within(7), [prefix_of(3)]);
        assert_eq!(within(6), [prefix_of(1), prefix_of(3)]);
        let all: Vec<_> = shared.list().prefixes_at(SnapshotTimestamp::new(6)).collect();
        assert_eq!(all, [2, 1, 3, 0].map(prefix_of));
    }

    #[test]
    fn a_range_lies_within_its_partition() {
        let prefix = prefix_of(4);
        let all = range_behind(prefix, &KeyRange::all());
        assert!(
            all.contains(&[0, 0, 0, 5]) && all.contains(&[0, 0, 0, 5, 255]) && !all.contains(&[0, 0, 0, 6])
        );
        let some = KeyRange { lower: Bound::Excluded(b"b".to_vec()), upper: Bound::Included(b"d".to_vec()) };
        let some = range_behind(prefix, &some);
        assert!(
            !some.contains(b"\0\0\0\x05b") && some.contains(b"\0\0\0\x05d") && !some.contains(b"\0\0\0\x06c")
        );
    }

    #[test]
    fn ranges_of_keys_meet_the_partitions_that_may_have_them() {
        let list = three();
        let met = |range: KeyRange| -> Vec<usize> {
            (0..3).filter(|place| list.is_met_at(*place, std::slice::from_ref(&range))).collect()
        };
        assert_eq!(met(KeyRange::all()), [0, 1, 2]);
        assert_eq!(met(KeyRange::point(b"f")), [0]);
        assert_eq!(met(KeyRange::prefix(b"g")), [1]);
        assert_eq!(
            met(KeyRange { lower: Bound::Excluded(b"f".to_vec()), upper: Bound::Included(b"p".to_vec()) }),
            [1]
        );
        assert_eq!(
            met(KeyRange { lower: Bound::Included(b"f".to_vec()), upper: Bound::Unbounded }),
            [0, 1, 2]
        );
        assert!(!list.is_met_at(0, &[]));
    }

    #[test]
    fn damaged_lists_are_refused() {
        let PartitionList { live, next_id, .. } = three();
        assert!(PartitionList::of_entry(live.clone(), next_id).is_ok());
        assert!(PartitionList::of_entry(Vec::new(), 1).is_err());
        assert!(PartitionList::of_entry(live.clone(), 2).is_err());
        assert!(PartitionList::of_entry(live[..2].to_vec(), 3).is_err());
        assert!(PartitionList::of_entry(vec![live[1].clone(), live[0].clone(), live[2].clone()], 3).is_err());
    }
}
