//! The partitions that a scan of an index looks into: those whose primary keys may belong to matches.
//!
//! The tests of the filter put bounds on the first field of the primary key, whichever index the plan goes
//! through. A partition beyond them has no match. Documents need no such scope: their tree lies in the
//! order of primary keys.

use std::sync::Arc;

use pando_catalog::{Collection, KeyRange};

use super::interval::Interval;
use super::{Access, IndexAccess, Plan, PlanChoice, index_bounds, predicates};
use crate::filter::Filter;

/// The most intervals that are looked at. More of them count as every key.
const INTERVALS_MAX: usize = 1_000;

/// See the module's head.
#[derive(Clone, Debug)]
pub struct PartitionScope {
    /// Ranges that hold the primary keys of all matches.
    pub keys: Arc<[KeyRange]>,
    /// Partitions that such a range meets.
    pub kept: usize,
    /// All partitions.
    pub total: usize,
}

/// Plans whose scans have their scope, in a collection with partitions.
pub(super) fn narrowed(mut choice: PlanChoice, filter: &Filter, collection: &Collection) -> PlanChoice {
    if collection.has_partitions() {
        narrow(&mut choice.plan, filter, collection);
        choice.rejected.iter_mut().for_each(|plan| narrow(plan, filter, collection));
    }
    choice
}

#[cold]
fn narrow(plan: &mut Plan, filter: &Filter, collection: &Collection) {
    let scans = scans_of(&mut plan.access);
    if scans.is_empty() {
        return;
    }
    let Some(scope) = scope_of(filter, collection) else { return };
    let scope = Arc::new(scope);
    for scan in scans {
        scan.partitions = Some(Arc::clone(&scope));
    }
}

fn scans_of(access: &mut Access) -> Vec<&mut IndexAccess> {
    let scans: &mut [IndexAccess] = match access {
        Access::Index(scan) => std::slice::from_mut(scan),
        Access::Union(scans) => scans,
        Access::Intersection(scans) => &mut scans[..],
        Access::Merge(merge) => &mut merge.scans,
        Access::Nothing | Access::Id(_) | Access::Collection(_) | Access::Text(_) | Access::Near(_) => {
            &mut []
        }
    };
    scans.iter_mut().filter(|scan| !scan.index.is_primary()).collect()
}

fn scope_of(filter: &Filter, collection: &Collection) -> Option<PartitionScope> {
    let primary = collection.describe_indexes().into_iter().find(|index| index.is_primary())?;
    let predicates = predicates::of_conjunction(predicates::conjunction(filter));
    let bounds = index_bounds::of_index(&primary, &predicates);
    let intervals = bounds.fields.first()?.list();
    let keys: Arc<[KeyRange]> = match intervals.len() <= INTERVALS_MAX {
        true => intervals.iter().map(keys_within).collect(),
        false => Arc::new([KeyRange::all()]),
    };
    let (kept, total) = collection.partitions_met(&keys)?;
    Some(PartitionScope { keys, kept, total })
}

/// A range that holds the keys whose first field lies within.
fn keys_within(interval: &Interval) -> KeyRange {
    let lower = KeyRange::prefix(&interval.lower.bytes).lower;
    KeyRange { lower, upper: KeyRange::prefix(&interval.upper.bytes).upper }
}
