//! Segments: the groups of tables that were absorbed.
//!
//! A table that was filled beside others may have about as many groups as all of them together. So its groups
//! stay where they are: those that an earlier table has, too, are merged there and marked, and the others are
//! given behind them. The result and its order are those of one table.

use pando_catalog::{Reservation, Sorter};

use super::super::Specification;
use super::super::keys::GroupKeys;
use super::{GROUPS_A_LOOK, Groups, Leaving, NextGroup, Table};
use crate::error::QueryError;
use crate::sort::Check;

/// See the module's head.
pub(super) struct Segment {
    groups: Groups,
    merged: Marks,
    bytes: usize,
    /// Holds the memory of the groups.
    reservation: Reservation,
}

/// One bit for each group.
struct Marks(Vec<u64>);

impl Marks {
    fn none(groups: usize) -> Marks {
        Marks(vec![0; groups.div_ceil(64)])
    }

    fn set(&mut self, group: usize) {
        self.0[group / 64] |= 1 << (group % 64);
    }

    fn has(&self, group: usize) -> bool {
        self.0.get(group / 64).is_some_and(|word| word & (1 << (group % 64)) != 0)
    }
}

impl Table {
    /// Whether tables that are absorbed become segments: a state takes another one in without more memory,
    /// and nothing was put out.
    pub(super) fn keeps_segments(&self) -> bool {
        matches!(self.phase, super::Phase::Filling)
            && self.specification.sort.is_none()
            && !self.groups.columns.iter().any(super::Column::holds_values)
    }

    /// Takes in the groups of a table whose documents come behind those of this one.
    pub(super) fn absorb_as_segment(
        &mut self,
        later: &mut Table,
        check: Check<'_>,
    ) -> Result<(), QueryError> {
        assert!(later.segments.is_empty(), "a table that is absorbed has absorbed none");
        let groups = std::mem::replace(&mut later.groups, Groups::new(&self.specification));
        let mut merged = Marks::none(groups.ids.len());
        let mut looked = 0_usize;
        let Table { groups: own, segments, .. } = self;
        groups.keys.try_for_each(|key, number| {
            looked += 1;
            if looked.is_multiple_of(GROUPS_A_LOOK) {
                check()?;
            }
            let earlier = std::iter::once(&mut *own).chain(segments.iter_mut().map(|one| &mut one.groups));
            for earlier in earlier {
                let Some(group) = earlier.keys.find(key) else { continue };
                for (column, later) in earlier.columns.iter_mut().zip(&groups.columns) {
                    column.absorb_at(group, later, number);
                }
                merged.set(number);
                break;
            }
            Ok::<(), QueryError>(())
        })?;
        let reservation = std::mem::replace(&mut later.reservation, self.memory.account.reserve());
        let bytes = std::mem::take(&mut later.bytes);
        self.segments.push(Segment { groups, merged, bytes, reservation });
        Ok(())
    }
}

impl Segment {
    /// Forgets the keys, once no further table is absorbed.
    pub(super) fn forget_keys(&mut self, specification: &Specification) {
        self.groups.keys = GroupKeys::new(&specification.hashing);
    }

    /// Moves the groups that were not merged into a sorter.
    pub(super) fn put_out(self, sorter: &mut Sorter, check: Check<'_>) -> Result<(), QueryError> {
        let Segment { groups, merged, bytes, mut reservation } = self;
        let leaving = Leaving { groups, bytes, reservation: &mut reservation };
        leaving.put_out(sorter, |group| merged.has(group), check)
    }
}

/// Writes the document of the next group of a table and its segments; false behind the last.
pub(super) fn write_next(
    own: &mut Groups,
    segments: &mut [Segment],
    next: &mut NextGroup,
    specification: &Specification,
    out: &mut Vec<u8>,
) -> Result<bool, QueryError> {
    loop {
        let (groups, merged) = match next.passed.checked_sub(1) {
            None => (&mut *own, None),
            Some(at) => match segments.get_mut(at) {
                Some(Segment { groups, merged, .. }) => (groups, Some(&*merged)),
                None => return Ok(false),
            },
        };
        let number = next.number;
        if number == groups.ids.len() {
            *next = NextGroup { passed: next.passed + 1, number: 0 };
            continue;
        }
        next.number += 1;
        if !merged.is_some_and(|merged| merged.has(number)) {
            return groups.write(number, specification, out);
        }
    }
}
