//! Plans that leave no choice: `hint`, `min` and `max`.

use pando_catalog::{IndexDescription, Visibility};
use pando_collation::TextOrder;
use pando_document::{RawDocument, RawValue};
use pando_keyorder::TypeBits;

use super::fault::PlanFault;
use super::usable_index::UsableIndex;
use super::{
    Access, AssumedShares, FindSpecification, Hint, Plan, ScanBounds, candidate, index_bounds, predicates,
    union, wildcard,
};
use crate::sort::Sort;
use crate::{ErrorCode, QueryError};

/// The plan that the request asks for, where it does.
pub(super) fn plan(
    find: &FindSpecification<'_>,
    indexes: &[IndexDescription],
) -> Result<Option<Plan>, QueryError> {
    let bounded_by_keys = find.min.is_some() || find.max.is_some();
    match find.hint {
        None if bounded_by_keys => Err(planner_error(
            PlanFault::MinMaxWithoutHint.code(),
            "When using min()/max() a hint of which index to use must be provided",
        )),
        None => Ok(match find.sort {
            // The order of the collection is that of the collection scan.
            Sort::Natural(_) => Some(candidate::of_collection(find).plan),
            Sort::Unordered | Sort::By(_) => None,
        }),
        Some(Hint::Natural(_)) if bounded_by_keys => {
            Err(planner_error(ErrorCode::NoQueryExecutionPlans, "min and max are incompatible with $natural"))
        }
        Some(Hint::Natural(direction)) => {
            let mut plan = candidate::of_collection(find).plan;
            if let (Access::Collection(way), Sort::Unordered | Sort::By(_)) = (&mut plan.access, find.sort) {
                *way = super::natural(*direction);
            }
            Ok(Some(plan))
        }
        Some(hint) => {
            let index = hinted(hint, indexes)?;
            if index.is_wildcard() {
                return through_wildcard(find, index, bounded_by_keys).map(Some);
            }
            if index.is_text() {
                let reason = "a text index serves no query without $text";
                return Err(planner_error(ErrorCode::NoQueryExecutionPlans, reason));
            }
            let mut plan = through(find, index);
            if bounded_by_keys {
                bound_by_keys(find, index, &mut plan)?;
            }
            Ok(Some(plan))
        }
    }
}

fn planner_error(kind: ErrorCode, message: &str) -> QueryError {
    QueryError::new(kind, format!("error processing query: planner returned error :: caused by :: {message}"))
}

/// The index that a hint names.
pub(super) fn hinted<'i>(
    hint: &Hint,
    indexes: &'i [IndexDescription],
) -> Result<&'i IndexDescription, QueryError> {
    let is_visible = |index: &IndexDescription| index.hidden == Visibility::Visible;
    let fits = |index: &&IndexDescription| match hint {
        Hint::OfServer(name) => index.name == *name,
        Hint::Name(name) => is_visible(index) && index.name == *name,
        Hint::Pattern(pattern) => is_visible(index) && has_pattern(index, pattern),
        Hint::Natural(_) => false,
    };
    let mut fitting = indexes.iter().filter(fits);
    let found = fitting.next();
    if fitting.next().is_some() {
        return Err(planner_error(
            ErrorCode::IndexNotFound,
            "Hint matched multiple indexes, must hint by index name",
        ));
    }
    found.ok_or_else(|| {
        planner_error(ErrorCode::BadValue, "hint provided does not correspond to an existing index")
    })
}

fn has_pattern(index: &IndexDescription, pattern: &RawDocument) -> bool {
    match index.specification.get("key") {
        Ok(Some(RawValue::Document(key))) => pando_document::compare_documents(key, pattern).is_eq(),
        _ => false,
    }
}

fn through(find: &FindSpecification<'_>, index: &IndexDescription) -> Plan {
    let nodes = predicates::conjunction(find.filter);
    let bounds = index_bounds::of_index(index, &predicates::of_conjunction(nodes));
    candidate::through_index(find, nodes, index, bounds).plan
}

/// The best plan through a wildcard index, which has no documents but those with a path of the filter.
fn through_wildcard(
    find: &FindSpecification<'_>,
    index: &IndexDescription,
    bounded_by_keys: bool,
) -> Result<Plan, QueryError> {
    if bounded_by_keys {
        return Err(does_not_fit());
    }
    let nodes = predicates::conjunction(find.filter);
    let of_conjunction = predicates::of_conjunction(nodes);
    let described = wildcard::described(std::slice::from_ref(index), nodes);
    let candidates =
        described.iter().filter(|index| index_bounds::has_all_matches(index, &of_conjunction)).map(|index| {
            let bounds = index_bounds::of_index(index, &of_conjunction);
            candidate::through_index(find, nodes, index, bounds)
        });
    let usable: Vec<UsableIndex<'_>> = described.iter().filter_map(UsableIndex::of).collect();
    let best = candidates.min_by(|a, b| a.work.found.total_cmp(&b.work.found));
    let best = best.or_else(|| union::of_branches(find, nodes, &usable, &AssumedShares));
    best.map(|candidate| candidate.plan).ok_or_else(|| {
        let reason = match of_conjunction.is_empty() {
            true => "No query solutions",
            false => "$hint: refusing to build whole-index solution, because it's a wildcard index",
        };
        planner_error(ErrorCode::NoQueryExecutionPlans, reason)
    })
}

/// Puts `min` and `max` in the place of the bounds that the filter gives: the filter is asked again, the
/// order stays.
fn bound_by_keys(
    find: &FindSpecification<'_>,
    index: &IndexDescription,
    plan: &mut Plan,
) -> Result<(), QueryError> {
    if let (Some(min), Some(max)) = (find.min, find.max)
        && !min.is_empty()
        && !max.is_empty()
        && !same_names(min, max)?
    {
        return Err(PlanFault::MinMaxDiffer.error("min and max must have the same field names"));
    }
    let min = find.min.map(|min| key_of(min, find.order, index)).transpose()?.flatten();
    let max = find.max.map(|max| key_of(max, find.order, index)).transpose()?.flatten();
    if let (Some(min), Some(max)) = (&min, &max)
        && min >= max
    {
        return Err(planner_error(
            PlanFault::MinNotBelowMax.code(),
            "The value provided for min() does not come before the value provided for max() in the hinted index",
        ));
    }
    let unbounded = index_bounds::IndexBounds::unbounded(index);
    let nodes = predicates::conjunction(find.filter);
    *plan = candidate::through_index(find, nodes, index, unbounded).plan;
    if let Access::Index(access) = &mut plan.access {
        access.bounds = ScanBounds::Keys { min, max };
    }
    Ok(())
}

fn same_names(min: &RawDocument, max: &RawDocument) -> Result<bool, QueryError> {
    let (mut a, mut b) = (min.iter(), max.iter());
    loop {
        match (a.next().transpose()?, b.next().transpose()?) {
            (None, None) => return Ok(true),
            (Some((left, _)), Some((right, _))) if left == right => {}
            _ => return Ok(false),
        }
    }
}

/// The field bytes of a key that names all fields of the index in their order; `None` for an empty one.
fn key_of(
    key: &RawDocument,
    order: &TextOrder,
    index: &IndexDescription,
) -> Result<Option<Vec<u8>>, QueryError> {
    if key.is_empty() {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(32);
    let mut fields = index.fields.iter();
    for part in key {
        let (name, value) = part?;
        let field = fields.next().filter(|field| field.path == name).ok_or_else(does_not_fit)?;
        if !index.text_order.agrees_on(order, value) {
            return Err(does_not_fit());
        }
        index.text_order.encode(value, field.direction, &mut bytes, &mut TypeBits::discarded());
    }
    if fields.next().is_some() { Err(does_not_fit()) } else { Ok(Some(bytes)) }
}

fn does_not_fit() -> QueryError {
    planner_error(PlanFault::HintDoesNotFitMinMax.code(), "The index chosen is not compatible with min/max")
}
