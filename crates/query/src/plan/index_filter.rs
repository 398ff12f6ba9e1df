//! The use of index filters: plans of a shape among the indexes that its filter allows.
//!
//! A filter overrides a hint, as in MongoDB, and an index that it allows comes before a scan of the
//! collection. It leaves alone a lookup by `_id`, a count of all documents by the counter, and the steps of a
//! `distinct` from value to value, which MongoDB plans before it looks for filters.

use std::sync::Arc;

use pando_catalog::{Collection, IndexDescription, IndexFilter};

use super::query_shape::{is_lookup_by_id, query_shape};
use super::{
    Access, Consumer, Estimates, FindSpecification, Hint, IndexFilterUse, PlanChoice, ProjectionNeeds, choose,
};
use crate::QueryError;

/// The index filter that a find has to keep to.
#[inline]
pub(super) fn of(find: &FindSpecification<'_>, collection: &Collection) -> Option<Arc<IndexFilter>> {
    if collection.index_filters().is_empty() {
        return None;
    }
    of_shape(find, collection)
}

#[cold]
fn of_shape(find: &FindSpecification<'_>, collection: &Collection) -> Option<Arc<IndexFilter>> {
    let is_of_server = matches!(find.hint, Some(Hint::OfServer(_)));
    let counts_all = matches!(find.needs, ProjectionNeeds::Nothing)
        && matches!(find.consumer, Consumer::Groups)
        && find.filter.is_everything()
        && find.hint.is_none();
    if is_of_server || counts_all {
        return None;
    }
    let needs = match find.consumer {
        Consumer::Values(_) => ProjectionNeeds::Everything,
        Consumer::Documents | Consumer::Groups | Consumer::Ends(_) => find.needs,
    };
    let shape = query_shape(&FindSpecification { needs, ..*find }, collection.text_order());
    collection.index_filters().of_shape(&shape)
}

/// Plans a find among the indexes that a filter allows.
pub(super) fn choose_allowed(
    find: &FindSpecification<'_>,
    filter: &IndexFilter,
    indexes: &[IndexDescription],
    estimates: &dyn Estimates,
) -> Result<PlanChoice, QueryError> {
    if matches!(find.consumer, Consumer::Values(_)) {
        let free = choose(find, indexes, estimates)?;
        if free.plan.is_distinct() {
            return Ok(free);
        }
    }
    let allowed: Vec<IndexDescription> =
        indexes.iter().filter(|index| filter.allows(index)).cloned().collect();
    // The order of the collection is no hint on an index.
    let hint = find.hint.filter(|hint| matches!(hint, Hint::Natural(_)));
    let choice = match is_lookup_by_id(find) {
        true => choose(find, indexes, estimates)?,
        false => choose(&FindSpecification { hint, ..*find }, &allowed, estimates)?,
    };
    let PlanChoice { mut plan, mut rejected, .. } = choice;
    // Who allows an index wants it rather than all documents.
    if matches!(plan.access, Access::Collection(_)) && !rejected.is_empty() {
        plan = rejected.swap_remove(0);
    }
    Ok(PlanChoice { plan, rejected, index_filter: IndexFilterUse::Applied })
}
