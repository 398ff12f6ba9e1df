//! The lookup of one document by a primary key of several fields: one read, where a lookup by its `_id` takes
//! two.

use pando_catalog::IndexDescription;

use super::interval::Intervals;
use super::{FindSpecification, Plan, candidate, index_bounds, predicates};
use crate::sort::Sort;

/// The plan of a filter that has one value for each field of the primary key, and of a request that forces no
/// other.
pub(super) fn plan(find: &FindSpecification<'_>, indexes: &[IndexDescription]) -> Option<Plan> {
    let is_free = find.hint.is_none() && !matches!(find.sort, Sort::Natural(_));
    let index = indexes.iter().find(|index| is_free && index.is_primary() && index.fields.len() > 1)?;
    let nodes = predicates::conjunction(find.filter);
    let bounds = index_bounds::of_index(index, &predicates::of_conjunction(nodes));
    let is_value = |field: &Intervals| field.is_points() && field.list().len() == 1;
    if !bounds.fields.iter().all(is_value) {
        return None;
    }
    let candidate = candidate::through_index(find, nodes, index, bounds);
    // One document is in any order.
    Some(Plan { sort: None, ..candidate.plan })
}
