//! Ordered merges: several scans of indexes, each in the order of the sort, which are merged into one order.
//!
//! An index on `{ a: 1, b: 1 }` does not give the order of `b` for `a` in 1 and 2, but its scan of `a = 1`
//! does, and that of `a = 2`. So the leading fields with lists of single values are taken apart, until each
//! scan gives the order. The branches of an `$or` may have different indexes.
//!
//! The scans are merged by the bytes of their sort fields, so that all indexes must have the sort's order of
//! strings.

use pando_catalog::{EntryContents, FieldKind, IndexDescription};
use pando_keyorder::Direction;

use super::interval::Intervals;
use super::{Access, Coverage, IndexAccess, Picks, Plan, ScanBounds, ScanDirection, from_index};
use crate::sort::SortPattern;

/// Most scans of a merge, as in MongoDB: each holds an entry in memory, and the first document needs all.
pub(super) const SCANS_MAX: usize = 200;

/// Scans whose entries are merged.
#[derive(Clone, Debug)]
pub struct MergeAccess {
    /// The scans, two or more.
    pub scans: Vec<IndexAccess>,
    /// The order that each of them gives.
    pub pattern: SortPattern,
    /// Whether an entry may lie in several scans.
    pub(super) entries: SharedEntries,
}

/// Whether an entry may lie in several scans of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedEntries {
    /// It lies in one: the scans are those of one, taken apart.
    Apart,
    /// It may: the scans are of several branches.
    Possible,
}

/// Where a sort field stands in the keys of an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortField {
    pub at: usize,
    /// Whether its bytes are those of the other direction.
    pub inverted: bool,
}

impl MergeAccess {
    /// The sort fields of an index of the merge, in the order of the sort.
    pub(crate) fn sort_fields(&self, index: &IndexDescription) -> Option<Vec<SortField>> {
        sort_fields(&self.pattern, index)
    }

    /// One of its scans, where they are those of one scan taken apart.
    pub(super) fn only_index(&self) -> Option<&IndexAccess> {
        self.scans.first().filter(|_| self.entries == SharedEntries::Apart)
    }

    /// Whether a document may turn up more than once.
    pub fn gives_duplicates(&self) -> bool {
        self.entries == SharedEntries::Possible || self.scans.iter().any(|scan| scan.index.is_multikey())
    }
}

fn sort_fields(pattern: &SortPattern, index: &IndexDescription) -> Option<Vec<SortField>> {
    let field_of = |path: &str| {
        index.fields.iter().position(|field| field.kind == FieldKind::Value && field.path == path)
    };
    let mut fields = Vec::with_capacity(pattern.parts().len());
    for part in pattern.parts() {
        let at = field_of(part.path.as_str())?;
        fields.push(SortField { at, inverted: index.fields[at].direction != part.direction });
    }
    Some(fields)
}

/// The plan with an ordered merge in the place of its scan and its sort, where there is one.
pub(super) fn instead_of_sort(plan: Plan) -> Plan {
    let (Access::Index(access), Some(pattern)) = (&plan.access, &plan.sort) else { return plan };
    if access.is_distinct() || !matches!(plan.coverage, Coverage::Document | Coverage::Entry(_)) {
        return plan;
    }
    let Some(scans) = scans_in_order(pattern, access).filter(|scans| scans.len() > 1) else { return plan };
    let entries = SharedEntries::Apart;
    let access = Access::Merge(Box::new(MergeAccess { scans, pattern: pattern.clone(), entries }));
    Plan { access, sort: None, ..plan }
}

/// The scans into which one is taken apart, before they are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// Leading fields with one value in each scan.
    singled: usize,
    direction: ScanDirection,
    /// The number of scans.
    pub count: usize,
}

/// The scans that give the order of a pattern, taken together all of one scan.
pub(super) fn scans_in_order(pattern: &SortPattern, access: &IndexAccess) -> Option<Vec<IndexAccess>> {
    let ScanBounds::Fields(bounds) = &access.bounds else { return None };
    let Parts { singled, direction, .. } = parts_in_order(pattern, access)?;
    Some(taken_apart(access, bounds, singled, direction))
}

/// The number of those scans, and how they are made.
pub(super) fn parts_in_order(pattern: &SortPattern, access: &IndexAccess) -> Option<Parts> {
    let index = &access.index;
    let ScanBounds::Fields(bounds) = &access.bounds else { return None };
    if index.is_primary() || index.is_wildcard() || index.text_order != *pattern.text_order() {
        return None;
    }
    // Each scan would hold a whole document, and there may be many.
    if index.contents == EntryContents::Copy {
        return None;
    }
    sort_fields(pattern, index)?;
    let mut scans = 1_usize;
    for singled in 0..=bounds.len() {
        if singled > 0 {
            let field = &bounds[singled - 1];
            scans = scans.saturating_mul(field.list().len());
            if !field.is_points() || scans > SCANS_MAX {
                return None;
            }
        }
        let first = |at: usize| if at < singled { bounds[at].first(1) } else { bounds[at].clone() };
        let fields: Vec<Intervals> = (0..bounds.len()).map(first).collect();
        if let Some(direction) = from_index::sort_direction(pattern, index, &fields) {
            return Some(Parts { singled, direction, count: scans });
        }
    }
    None
}

/// One scan for each combination of single values of the first fields, in the order of the scan.
fn taken_apart(
    access: &IndexAccess,
    bounds: &[Intervals],
    singled: usize,
    direction: ScanDirection,
) -> Vec<IndexAccess> {
    let mut all: Vec<Vec<Intervals>> = vec![Vec::new()];
    for field in &bounds[..singled] {
        let each = |fields: &Vec<Intervals>| {
            let fields = fields.clone();
            field.each().map(move |value| {
                let mut fields = fields.clone();
                fields.push(value);
                fields
            })
        };
        all = all.iter().flat_map(each).collect();
    }
    let scan = |mut fields: Vec<Intervals>| {
        fields.extend_from_slice(&bounds[singled..]);
        let bounds = ScanBounds::Fields(fields);
        IndexAccess { index: access.index.clone(), bounds, direction, partitions: None, picks: Picks::Every }
    };
    let mut scans: Vec<IndexAccess> = all.into_iter().map(scan).collect();
    if direction == ScanDirection::Backward {
        scans.reverse();
    }
    scans
}

/// The bytes by which an entry is merged: those of its sort fields, all ascending; `None` if its key does not
/// decode.
pub(crate) fn merge_key(
    fields: &[SortField],
    directions: &[Direction],
    field_bytes: &[u8],
    key: &mut Vec<u8>,
) -> Option<()> {
    key.clear();
    for field in fields {
        let before = pando_keyorder::parts_length(field_bytes, directions.get(..field.at)?).ok()?;
        let rest = field_bytes.get(before..)?;
        let length = pando_keyorder::parts_length(rest, directions.get(field.at..=field.at)?).ok()?;
        let part = rest.get(..length)?;
        match field.inverted {
            false => key.extend_from_slice(part),
            true => key.extend(part.iter().map(|byte| !byte)),
        }
    }
    Some(())
}
