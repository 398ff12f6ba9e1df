//! The partitions of a collection with a schedule, kept as time passes: new ones are made ahead, and those
//! with expired documents alone are dropped ([`PartitionSchedule`]).
//!
//! # Steps
//! 1. A look at the shared list tells whether anything is due. Nearly always nothing is, and this costs no
//!    latch.
//! 2. The latch of the collection is taken alone, with a short patience: a statement that writes for long
//!    only puts the change off.
//! 3. Each end of a slot that no partition has becomes a bound, by a *cut* (`partitions`). All cuts are one
//!    commit. A new collection gets a partition for each slot that is kept.
//! 4. Each partition whose bound is not behind the horizon is dropped, in a commit of its own.
//!
//! # Times that are out of order
//! - A clock that jumps ahead makes a partition that spans the gap. When the clock is back, it is empty, and
//!   the next slots are cut from it.
//! - A document from the far future lies in the last partition. Slots are cut below it, before documents of
//!   their time come.
//! - Where documents lie on both sides of an end, there is no cut. The partition is longer, and documents of
//!   it that have expired are removed one by one (crate `commands`, `expiry`). So are documents that were
//!   older than the first bound when they came.
//!
//! # Not here
//! Whether the clock is to be trusted: crate `commands`, `partition_keeper`.

use std::ops::Bound;
use std::sync::Arc;

use pando_storage::{Begin, Cursor, Direction, KeyRange, Operation, StorageError, Transaction};

use super::partitioning::{DroppedPartitions, MODE, PartitionChoice, key_fields};
use super::{Catalog, Exclusive, LATCH_WAIT};
use crate::collection::Collection;
use crate::error::CatalogError;
use crate::namespace::Namespace;
use crate::partition_schedule::PartitionSchedule;
use crate::partitions::{NewSide, PARTITIONS_MAX, PartitionBound, PartitionList};

/// The waits for the latch: the work can be done later as well.
const LATCH_WAITS: usize = 25;

/// Whether partitions may be dropped now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drops {
    /// They may.
    Due,
    /// They wait, whatever the clock says.
    Held,
}

/// The outcome of a visit to a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptPartitions {
    /// Partitions that were made.
    pub made: usize,
    /// Partitions that were dropped.
    pub dropped: DroppedPartitions,
    /// Ends of slots that are no bounds, because documents lie on both sides or there are too many
    /// partitions.
    pub ends_left: usize,
    /// Whether the rest waits for the next visit: a statement or an index build has the collection.
    pub is_busy: bool,
}

impl Collection {
    /// The bounds that end the slots of these times.
    fn bounds_at(
        &self,
        schedule: &PartitionSchedule,
        ends: &[i64],
    ) -> Result<Vec<PartitionBound>, CatalogError> {
        let fields = key_fields(self);
        ends.iter().map(|end| self.partition_bound(&schedule.bound_values(*end, &fields))).collect()
    }

    /// The partitions of a collection that has no documents yet.
    pub(crate) fn scheduled_partitions(
        &self,
        schedule: &PartitionSchedule,
        now_ms: i64,
    ) -> Result<PartitionList, CatalogError> {
        let mut list = PartitionList::first();
        for bound in self.bounds_at(schedule, &schedule.ends_of_new(now_ms))? {
            if list.bound_place(&bound.key).is_none() {
                list = list.with_bound(bound, now_ms);
            }
        }
        Ok(list)
    }

    /// Whether partitions are to be made or dropped at this time. This costs no latch.
    ///
    /// # Errors
    /// The bounds are too long.
    pub fn needs_keeping(&self, now_ms: i64, drops: Drops) -> Result<bool, CatalogError> {
        match (self.schedule(), self.shared_partitions()) {
            (Some(schedule), Some(shared)) => self.is_keeping_due(&shared.list(), schedule, (now_ms, drops)),
            _ => Ok(false),
        }
    }

    /// Whether a list lacks a bound, or has a partition to drop.
    fn is_keeping_due(
        &self,
        list: &PartitionList,
        schedule: &PartitionSchedule,
        (now_ms, drops): (i64, Drops),
    ) -> Result<bool, CatalogError> {
        let ends = schedule.ends_wanted(now_ms);
        let mut wanted = self.bounds_at(schedule, &ends)?.into_iter();
        if wanted.any(|bound| list.bound_place(&bound.key).is_none()) {
            return Ok(true);
        }
        let Some(horizon) = schedule.horizon(now_ms).filter(|_| drops == Drops::Due) else {
            return Ok(false);
        };
        Ok(list.live.iter().any(|partition| partition.ends_by(schedule.kind(), horizon)))
    }
}

impl Catalog {
    /// The collection alone, unless a statement keeps it for long.
    pub(super) fn exclusive_briefly(
        &self,
        namespace: &Namespace,
        operation: &Operation,
    ) -> Result<Option<Exclusive>, CatalogError> {
        for _ in 0..LATCH_WAITS {
            operation.check_now()?;
            let found = self.existing(namespace)?;
            let Some(latch) = found.latch().try_write_arc_for(LATCH_WAIT) else { continue };
            let now = self.existing(namespace)?;
            if Arc::ptr_eq(&now, &found) {
                // A shared store has no partitions, and no barriers before them.
                return Ok(Some(Exclusive { collection: now, _latch: latch, _barrier: None }));
            }
        }
        Ok(None)
    }

    /// Keeps the partitions of a collection with a schedule. Does nothing for any other. Blocks.
    ///
    /// # Errors
    /// The operation has to end; the engine refuses a commit.
    pub fn keep_partitions(
        &self,
        namespace: &Namespace,
        (now_ms, drops): (i64, Drops),
        operation: &Operation,
    ) -> Result<KeptPartitions, CatalogError> {
        let mut kept = KeptPartitions::default();
        let Some(collection) = self.collection(namespace.database(), namespace.collection()) else {
            return Ok(kept);
        };
        if !collection.needs_keeping(now_ms, drops)? {
            return Ok(kept);
        }
        let Some(alone) = self.exclusive_briefly(namespace, operation)? else {
            return Ok(KeptPartitions { is_busy: true, ..kept });
        };
        match self.keep_alone(&alone, (now_ms, drops), operation, &mut kept) {
            Err(CatalogError::IndexBuildRunning { .. }) => kept.is_busy = true,
            Err(CatalogError::Storage(error)) if error.is_conflict() => kept.is_busy = true,
            other => other?,
        }
        Ok(kept)
    }

    fn keep_alone(
        &self,
        alone: &Exclusive,
        (now_ms, drops): (i64, Drops),
        operation: &Operation,
        kept: &mut KeptPartitions,
    ) -> Result<(), CatalogError> {
        let collection = &alone.collection;
        let Some(schedule) = collection.schedule() else { return Ok(()) };
        // Drops first: they make room in the list.
        if let Some(horizon) = schedule.horizon(now_ms).filter(|_| drops == Drops::Due) {
            let choice = PartitionChoice::Expired { kind: schedule.kind(), last_ms: horizon };
            kept.dropped = self.drop_chosen(alone, choice, operation)?;
        }
        let list = self.changeable(collection)?;
        let reader = self.begin(Begin::READ)?;
        let is_new = list.live.len() == 1 && is_empty(collection, &*reader, KeyRange::all())?;
        let ends = if is_new { schedule.ends_of_new(now_ms) } else { schedule.ends_wanted(now_ms) };
        let mut cuts = Cuts { list: PartitionList::clone(&list), shrunk: Vec::new(), made: 0, left: 0 };
        for bound in collection.bounds_at(schedule, &ends)? {
            cuts.cut(collection, &*reader, bound, now_ms)?;
        }
        reader.rollback();
        (kept.made, kept.ends_left) = (cuts.made, cuts.left);
        match cuts.made {
            0 => Ok(()),
            _ => {
                let transaction = self.begin_write()?;
                self.commit_partitions(collection, (cuts.list, &cuts.shrunk), None, transaction)
            }
        }
    }
}

/// Cuts that are one commit.
struct Cuts {
    list: PartitionList,
    shrunk: Vec<u32>,
    made: usize,
    left: usize,
}

impl Cuts {
    /// Makes a bound, unless it is there or documents lie on both sides of it.
    fn cut(
        &mut self,
        collection: &Collection,
        reader: &dyn Transaction,
        bound: PartitionBound,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        if self.list.bound_place(&bound.key).is_some() {
            return Ok(());
        }
        let place = self.list.place_of(&bound.key);
        let keys = self.list.keys_at(place);
        let above = KeyRange { lower: Bound::Excluded(bound.key.clone()), upper: keys.upper };
        let below = KeyRange { lower: keys.lower, upper: Bound::Included(bound.key.clone()) };
        let side = if self.list.live.len() >= PARTITIONS_MAX {
            None
        } else if is_empty(collection, reader, above)? {
            Some(NewSide::Above)
        } else if is_empty(collection, reader, below)? {
            Some(NewSide::Below)
        } else {
            None
        };
        let Some(side) = side else {
            self.left += 1;
            return Ok(());
        };
        self.shrunk.push(self.list.live[place].id);
        self.list = self.list.with_cut(place, bound, side, now_ms);
        self.made += 1;
        Ok(())
    }
}

/// Whether no document lies in a range of primary keys.
fn is_empty(collection: &Collection, reader: &dyn Transaction, keys: KeyRange) -> Result<bool, StorageError> {
    let mut cursor = Cursor::new(collection.primary_tree(), keys, Direction::Forward);
    Ok(cursor.next(reader, MODE)?.is_none())
}
