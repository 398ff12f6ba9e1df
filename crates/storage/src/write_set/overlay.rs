//! Overlaid scans: a transaction's own writes over the entries of its engine.
//!
//! 1. Without own writes in the range the engine's batch is the answer, untouched.
//! 2. Otherwise the engine fills a batch of its own, and the two are merged in the order of the scan, up to
//!    the last key of the engine's batch. Beyond it only the engine's next batch can tell what comes first. A
//!    merge is applied to the engine's value of its key.
//! 3. Where deletions hid the whole batch, the next one is fetched. An empty answer therefore always means
//!    the end.

use std::cell::{Ref, RefCell};
use std::cmp::Ordering;
use std::collections::btree_map;
use std::ops::Bound;

use super::{ORDER_MEMORY, Order, Write, WriteSet};
use crate::batch::{Batch, BatchLimits, ScanEnd};
use crate::error::StorageError;
use crate::identifiers::TreeId;
use crate::key_range::{Direction, KeyRange};

/// A transaction's own writes of a range, in the direction of a scan; of each key the latest.
pub(crate) trait OwnWrites {
    /// The next write; deletions too.
    fn peek(&self) -> Option<Write<'_>>;

    /// Leaves it behind.
    fn step(&mut self) -> Result<(), StorageError>;
}

/// Own writes that are in memory.
pub(crate) struct MemoryOwn<'o> {
    writes: &'o WriteSet,
    entries: btree_map::Range<'o, Box<[u8]>, u32>,
    direction: Direction,
    next: Option<u32>,
}

impl OwnWrites for MemoryOwn<'_> {
    fn peek(&self) -> Option<Write<'_>> {
        self.next.map(|at| self.writes.write_at(at))
    }

    fn step(&mut self) -> Result<(), StorageError> {
        let next = match self.direction {
            Direction::Forward => self.entries.next(),
            Direction::Backward => self.entries.next_back(),
        };
        self.next = next.map(|(_, at)| *at);
        Ok(())
    }
}

/// How far one merge of two batches got.
#[derive(PartialEq, Eq)]
enum Merged {
    /// The caller's batch is full.
    Full,
    /// All that the engine gave is used up.
    UsedUp,
}

/// The request of a scan.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'r> {
    pub(crate) range: &'r KeyRange,
    pub(crate) direction: Direction,
    pub(crate) limits: BatchLimits,
}

/// An engine's own scan: see [`WriteSet::scan_over`].
pub(crate) type BaseScan<'b> = dyn FnMut(&KeyRange, &mut Batch) -> Result<ScanEnd, StorageError> + 'b;

/// Fills `batch`, which is empty, with the engine's entries and own writes over them.
pub(crate) fn scan_over(
    mut own: impl OwnWrites,
    wanted: Wanted<'_>,
    batch: &mut Batch,
    base: &mut BaseScan<'_>,
) -> Result<ScanEnd, StorageError> {
    if own.peek().is_none() {
        return base(wanted.range, batch);
    }
    let mut rest = wanted.range.clone();
    let mut below = Batch::new();
    loop {
        let end = base(&rest, &mut below)?;
        if merge(&below, end, &mut own, wanted, batch)? == Merged::Full {
            return Ok(ScanEnd::More);
        }
        match (end, below.last()) {
            (ScanEnd::Done, _) | (_, None) => return Ok(ScanEnd::Done),
            (ScanEnd::More, Some(_)) if !batch.is_empty() => return Ok(ScanEnd::More),
            (ScanEnd::More, Some((last, _))) => rest.advance_past(last, wanted.direction),
        }
    }
}

/// Merges one batch of the engine with own entries, up to the engine's last key or (at the end) to the last
/// own one.
fn merge(
    below: &Batch,
    end: ScanEnd,
    own: &mut impl OwnWrites,
    wanted: Wanted<'_>,
    batch: &mut Batch,
) -> Result<Merged, StorageError> {
    for (key, value) in below.iter() {
        let mut is_hidden = false;
        let below = |other: &[u8]| (other == key).then_some(value);
        while let Some(write) = own.peek() {
            match in_scan_order(write.key, key, wanted.direction) {
                Ordering::Greater => break,
                Ordering::Equal => is_hidden = true,
                Ordering::Less => {}
            }
            if push(&write, below(write.key), wanted.limits, batch) == Merged::Full {
                return Ok(Merged::Full);
            }
            own.step()?;
        }
        if is_hidden {
            continue;
        }
        if batch.is_full(wanted.limits) {
            return Ok(Merged::Full);
        }
        batch.push(key, value);
    }
    if end == ScanEnd::Done {
        while let Some(write) = own.peek() {
            if push(&write, None, wanted.limits, batch) == Merged::Full {
                return Ok(Merged::Full);
            }
            own.step()?;
        }
    }
    Ok(Merged::UsedUp)
}

impl WriteSet {
    /// Fills `batch` as [`Transaction::scan`](crate::Transaction::scan) promises: the engine's entries with
    /// this set's over them. `base` scans the engine, for the same direction, limits and blocking mode: it
    /// empties its batch, and leaves it empty only at the end of the range.
    pub fn scan_over(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limits: BatchLimits,
        batch: &mut Batch,
        base: &mut dyn FnMut(&KeyRange, &mut Batch) -> Result<ScanEnd, StorageError>,
    ) -> Result<ScanEnd, StorageError> {
        batch.clear();
        if range.is_empty() {
            return Ok(ScanEnd::Done);
        }
        if self.is_empty() {
            return base(range, batch);
        }
        let order = self.order_of(tree);
        scan_over(self.own(&order, range, direction), Wanted { range, direction, limits }, batch, base)
    }

    /// Own writes of a range that is not empty, by the order of its tree.
    pub(crate) fn own<'o>(
        &'o self,
        order: &'o Order,
        range: &KeyRange,
        direction: Direction,
    ) -> MemoryOwn<'o> {
        let bounds = (as_slice(&range.lower), as_slice(&range.upper));
        let entries = order.range::<[u8], _>(bounds);
        let mut own = MemoryOwn { writes: self, entries, direction, next: None };
        let begun = own.step();
        debug_assert!(begun.is_ok(), "memory does not fail");
        own
    }

    /// Whether this transaction has written to the tree within the range.
    pub fn has_writes_in(&self, tree: TreeId, range: &KeyRange) -> bool {
        if self.is_empty() || range.is_empty() {
            return false;
        }
        let bounds = (as_slice(&range.lower), as_slice(&range.upper));
        self.order_of(tree).range::<[u8], _>(bounds).next().is_some()
    }

    /// The keys of a tree in order; built here at the first call for that tree.
    pub(crate) fn order_of(&self, tree: TreeId) -> Ref<'_, Order> {
        let is_built = self.orders.borrow().contains_key(&tree);
        if !is_built {
            let order = self.build_order(tree);
            let memory: usize = order.keys().map(|key| key.len() + ORDER_MEMORY).sum();
            self.order_memory.set(self.order_memory.get() + memory);
            self.orders.borrow_mut().insert(tree, order);
        }
        Ref::map(RefCell::borrow(&self.orders), |orders| &orders[&tree])
    }

    fn build_order(&self, tree: TreeId) -> Order {
        let latest =
            (0_u32..).zip(&self.entries).filter(|(_, entry)| entry.tree == tree && !entry.is_covered);
        latest.map(|(at, entry)| (self.write_of(entry).key.into(), at)).collect()
    }
}

/// Adds the value that an own write leaves behind to the batch; deletions take no room.
fn push(write: &Write<'_>, below: Option<&[u8]>, limits: BatchLimits, batch: &mut Batch) -> Merged {
    let Some(value) = write.change.over(below) else { return Merged::UsedUp };
    if batch.is_full(limits) {
        return Merged::Full;
    }
    batch.push(write.key, &value);
    Merged::UsedUp
}

pub(crate) fn in_scan_order(left: &[u8], right: &[u8], direction: Direction) -> Ordering {
    match direction {
        Direction::Forward => left.cmp(right),
        Direction::Backward => right.cmp(left),
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
