//! The audit of the space map. It finds the worst bugs of a store: an extent that leaks, and an extent with
//! two owners.

use super::block_store::inconsistent;
use super::interval_set::IntervalSet;
use super::space_change::units_of;
use super::superblock_slots::HEAD_UNITS;
use super::{BlockStore, SpaceError};
use crate::base::Extent;

/// The use of the file's units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AuditReport {
    /// Reached by the last durable generation.
    pub(crate) used_units: u64,
    /// Free, or free once the superblocks have moved on.
    pub(crate) reusable_units: u64,
    /// Written since the last durable generation and not part of one yet; zero in a store just opened.
    pub(crate) young_units: u64,
}

impl BlockStore {
    /// Checks that the last durable generation uses exactly these extents, each once, and that no unit in use
    /// is free. The caller finds the extents from the catalog; the space map's own are left out.
    pub(crate) fn audit(&self, reachable: &[Extent]) -> Result<AuditReport, SpaceError> {
        let durable = self.durable.lock();
        let mut reached = IntervalSet::new();
        for extent in reachable.iter().copied().chain(durable.map_extents()) {
            reached
                .insert(units_of(extent))
                .map_err(|units| inconsistent("no unit is reached twice", units))?;
        }
        let used = durable.used();
        if let Some(units) = first_missing(&reached, used) {
            return Err(inconsistent("what is reached is in the space map", units));
        }
        if let Some(units) = first_missing(used, &reached) {
            return Err(inconsistent("what is in the space map is reached", units));
        }
        let (reusable, end) = self.reusable()?;
        let allocator = self.allocator().lock();
        if let Some(units) = used.iter().find_map(|units| allocator.free_overlap(&units)) {
            return Err(inconsistent("what is in use is not free", units));
        }
        drop(allocator);
        let known: u64 =
            reusable.total() + HEAD_UNITS + used.iter().map(|units| absent(&reusable, units)).sum::<u64>();
        Ok(AuditReport {
            used_units: used.total(),
            reusable_units: reusable.total(),
            young_units: end.saturating_sub(known),
        })
    }
}

/// The first part of `all` that is not in `set`.
fn first_missing(all: &IntervalSet, set: &IntervalSet) -> Option<std::ops::Range<u64>> {
    all.iter().find(|units| !set.contains(units)).and_then(|units| set.gaps(units).into_iter().next())
}

/// The number of units that are not in the set.
fn absent(set: &IntervalSet, units: std::ops::Range<u64>) -> u64 {
    set.gaps(units).into_iter().map(|gap| gap.end - gap.start).sum()
}
