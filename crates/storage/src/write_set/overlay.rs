//! Scans that see a transaction's own writes over what its engine has.
//!
//! 1. Without own writes in the range the engine's batch is the answer, untouched.
//! 2. Else the engine fills a batch of its own, and the two are merged in the order of the scan, up to the last key that
//!    the engine gave: beyond it only the engine's next batch can tell what comes first.
//!    A merge is applied to what the engine gave for its key.
//! 3. Where deletions hid the whole batch, the next one is fetched: an empty answer always means the end.

use std::cell::{Ref, RefCell};
use std::cmp::Ordering;
use std::collections::btree_map;
use std::iter::Peekable;
use std::ops::Bound;

use super::{Order, Write, WriteSet};
use crate::{Batch, BatchLimits, Direction, KeyRange, ScanEnd, StorageError, TreeId};

/// Own entries of a range in the direction of a scan.
struct Own<'o> {
    entries: btree_map::Range<'o, Box<[u8]>, u32>,
    direction: Direction,
}

impl<'o> Iterator for Own<'o> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let next = match self.direction {
            Direction::Forward => self.entries.next(),
            Direction::Backward => self.entries.next_back(),
        };
        next.map(|(_, at)| *at)
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

impl WriteSet {
    /// Fills `batch` as [`Transaction::scan`](crate::Transaction::scan) promises: the engine's entries with this set's over
    /// them. `base` scans the engine, for the same direction, limits and patience: it empties its batch, and leaves it
    /// empty only at the end of the range.
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
        let bounds = (as_slice(&range.lower), as_slice(&range.upper));
        let mut own = Own { entries: order.range::<[u8], _>(bounds), direction }.peekable();
        if own.peek().is_none() {
            return base(range, batch);
        }
        let mut rest = range.clone();
        let mut below = Batch::new();
        loop {
            let end = base(&rest, &mut below)?;
            if self.overlay(&below, end, &mut own, direction, limits, batch) == Merged::Full {
                return Ok(ScanEnd::More);
            }
            match (end, below.last()) {
                (ScanEnd::Done, _) | (_, None) => return Ok(ScanEnd::Done),
                (ScanEnd::More, Some(_)) if !batch.is_empty() => return Ok(ScanEnd::More),
                (ScanEnd::More, Some((last, _))) => rest.advance_past(last, direction),
            }
        }
    }

    /// Whether this transaction has written to the tree within the range.
    pub fn has_writes_in(&self, tree: TreeId, range: &KeyRange) -> bool {
        if self.is_empty() || range.is_empty() {
            return false;
        }
        let bounds = (as_slice(&range.lower), as_slice(&range.upper));
        self.order_of(tree).range::<[u8], _>(bounds).next().is_some()
    }

    /// Merges one batch of the engine with own entries, up to the engine's last key or (at the end) to the last own one.
    fn overlay(
        &self,
        below: &Batch,
        end: ScanEnd,
        own: &mut Peekable<Own<'_>>,
        direction: Direction,
        limits: BatchLimits,
        batch: &mut Batch,
    ) -> Merged {
        for (key, value) in below.iter() {
            let mut is_hidden = false;
            let below = |other: &[u8]| (other == key).then_some(value);
            while let Some(at) = own.peek().copied() {
                let write = self.write_at(at);
                match in_scan_order(write.key, key, direction) {
                    Ordering::Greater => break,
                    Ordering::Equal => is_hidden = true,
                    Ordering::Less => {}
                }
                if push(&write, below(write.key), limits, batch) == Merged::Full {
                    return Merged::Full;
                }
                own.next();
            }
            if is_hidden {
                continue;
            }
            if batch.is_full(limits) {
                return Merged::Full;
            }
            batch.push(key, value);
        }
        if end == ScanEnd::Done {
            while let Some(at) = own.peek().copied() {
                if push(&self.write_at(at), None, limits, batch) == Merged::Full {
                    return Merged::Full;
                }
                own.next();
            }
        }
        Merged::UsedUp
    }

    /// The keys of a tree in order; built here at the first call for that tree.
    fn order_of(&self, tree: TreeId) -> Ref<'_, Order> {
        let is_built = self.orders.borrow().contains_key(&tree);
        if !is_built {
            let order = self.build_order(tree);
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

/// Adds what an own write makes of the value below to the batch; deletions take no room.
fn push(write: &Write<'_>, below: Option<&[u8]>, limits: BatchLimits, batch: &mut Batch) -> Merged {
    let Some(value) = write.change.over(below) else { return Merged::UsedUp };
    if batch.is_full(limits) {
        return Merged::Full;
    }
    batch.push(write.key, &value);
    Merged::UsedUp
}

fn in_scan_order(left: &[u8], right: &[u8], direction: Direction) -> Ordering {
    match direction {
        Direction::Forward => left.cmp(right),
        Direction::Backward => right.cmp(left),
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
