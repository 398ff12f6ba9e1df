//! The lookup of one document by its `_id`: the plan of most requests, found without planning.

use pando_collation::TextOrder;
use pando_document::{RawDocument, RawValue};

use super::{Access, Coverage, FindSpecification, Plan, candidate};
use crate::filter::{Comparison, Node, Operator, Test};
use crate::metadata::Metadata;
use crate::sort::Sort;

/// The `_id` of a filter that is `{ _id: value }` and nothing else, with a value that
/// is looked up by its key.
///
/// The filter compares strings as the collection does. Such a find needs no parsed filter, no plan and no
/// executor: the caller fetches the document by its `_id`.
pub fn point_lookup(filter: &RawDocument) -> Option<RawValue<'_>> {
    let mut fields = filter.iter();
    let Some(Ok(("_id", value))) = fields.next() else { return None };
    let is_plain = match value {
        RawValue::Document(document) => match document.iter().next() {
            None => true,
            Some(first) => !first.ok()?.0.starts_with('$'),
        },
        value => is_key(value),
    };
    (is_plain && fields.next().is_none()).then_some(value)
}

/// Whether equality with a value is equality of keys: not of null (which a missing field is), nor of
/// arrays (which no `_id` is), nor of patterns (which match).
fn is_key(value: RawValue<'_>) -> bool {
    !matches!(value, RawValue::Null | RawValue::Undefined | RawValue::Array(_) | RawValue::Regex(_))
}

/// The plan of a filter that wants `_id` to be equal to a plain value, among other things, and of a request
/// that forces no other: no index needs to be known for it. `order` is that of strings in the keys of `_id`.
pub fn plan_by_id(find: &FindSpecification<'_>, order: &TextOrder) -> Option<Plan> {
    if find.hint.is_some()
        || find.min.is_some()
        || find.max.is_some()
        || matches!(find.sort, Sort::Natural(_))
        || find.metadata.has_any(&[Metadata::TextScore, Metadata::GeoDistance, Metadata::GeoPoint])
    {
        return None;
    }
    let nodes = super::predicates::conjunction(find.filter);
    // A search for words needs its index.
    if nodes.iter().any(|node| matches!(node, Node::Text(_) | Node::Or(_)) && node.has_search()) {
        return None;
    }
    let is_looked_up = |comparison: &Comparison| {
        let literal = comparison.literal.raw();
        comparison.operator == Operator::Equal
            && is_key(literal)
            && order.agrees_on(&comparison.order, literal)
    };
    // An expression is asked again.
    let (settled, literal) = nodes.iter().enumerate().find_map(|(at, node)| match node {
        Node::Field(field) if field.path.as_str() == "_id" => match &field.test {
            Test::Comparison(comparison) if is_looked_up(comparison) => Some((Some(at), &comparison.literal)),
            _ => None,
        },
        Node::Expression(test) => {
            let mut of_id = test.implied().iter().filter(|implied| implied.path.as_str() == "_id");
            let found = of_id.find(|implied| is_looked_up(&implied.comparison))?;
            Some((None, &found.comparison.literal))
        }
        _ => None,
    })?;
    if find.filter.near().is_some() {
        return None;
    }
    let residual: Vec<&Node> =
        nodes.iter().enumerate().filter(|(at, _)| Some(*at) != settled).map(|(_, node)| node).collect();
    Some(Plan {
        access: Access::Id(literal.clone()),
        residual: candidate::residual_of(&residual),
        coverage: Coverage::Document,
        // One document is in any order.
        sort: None,
        skip: find.skip,
        limit: find.limit,
    })
}
