//! Implication: whether every document that matches a query also matches the filter of a partial index.
//!
//! The answer errs on the side of "no": an index that is left out costs time, one that is used wrongly costs
//! answers.
//!
//! # Rules
//! - The query implies a conjunction if it implies each part, and a disjunction if it implies one branch.
//! - A conjunction implies what one of its parts does. A disjunction implies what all of its branches do.
//! - A test implies another of the same path if every leaf that passes the one passes the other. Both tests
//!   look at the same leaves of a document.
//! - Two orders of strings imply nothing of each other.
//! - A test that no missing field passes implies that the field exists.

use std::cmp::Ordering;

use pando_document::{CanonicalType, RawValue, canonical_type};

use super::predicate_bounds;
use crate::filter::{Comparison, FieldTest, InList, Node, Operator, Test, is_nan};
use crate::regular_expression::RegularExpression;

/// Whether the parts of a conjunction together imply the filter of an index.
pub(super) fn of_conjunction(query: &[Node], wanted: &Node) -> bool {
    match wanted {
        Node::And(parts) => parts.iter().all(|part| of_conjunction(query, part)),
        _ => {
            query.iter().any(|node| of_node(node, wanted))
                || matches!(wanted, Node::Or(branches) if branches.iter().any(|branch| of_conjunction(query, branch)))
        }
    }
}

/// Whether a part of a query implies the filter of an index.
fn of_node(query: &Node, wanted: &Node) -> bool {
    if let Node::And(parts) = wanted {
        return parts.iter().all(|part| of_node(query, part));
    }
    match query {
        Node::Never => true,
        Node::And(parts) => of_conjunction(parts, wanted),
        Node::Or(branches) => branches.iter().all(|branch| of_node(branch, wanted)),
        Node::Field(_)
        | Node::Not(_)
        | Node::Nor(_)
        | Node::Expression(_)
        | Node::Schema(_)
        | Node::Text(_) => match wanted {
            Node::Or(branches) => branches.iter().any(|branch| of_node(query, branch)),
            Node::Field(wanted) => of_field(query, wanted),
            _ => false,
        },
    }
}

fn of_field(query: &Node, wanted: &FieldTest) -> bool {
    match query {
        Node::Field(field) => field.path == wanted.path && of_test(&field.test, &wanted.test),
        // `$ne: null` on a field of the document itself. Behind a dot an array without documents has no leaf.
        Node::Not(inner) => match (&**inner, &wanted.test) {
            (Node::Field(FieldTest { path, test: Test::Comparison(comparison) }), Test::Exists) => {
                *path == wanted.path
                    && !path.as_str().contains('.')
                    && comparison.operator == Operator::Equal
                    && matches!(comparison.literal.raw(), RawValue::Null)
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether every leaf that passes `test` passes `wanted`.
fn of_test(test: &Test, wanted: &Test) -> bool {
    match (test, wanted) {
        (_, Test::Exists) => predicate_bounds::implies_existence(test),
        (Test::Comparison(comparison), Test::Comparison(wanted)) => of_comparison(comparison, wanted),
        (Test::Comparison(comparison), Test::In(wanted)) => {
            comparison.operator == Operator::Equal
                && wanted.order().agrees_on(&comparison.order, comparison.literal.raw())
                && wanted.has(as_compared(comparison.literal.raw()))
        }
        (Test::In(list), Test::Comparison(wanted)) => {
            list.regexes().is_empty()
                && list.values().iter().all(|value| {
                    wanted.order.agrees_on(list.order(), value.raw()) && wanted.holds(Some(value.raw()))
                })
        }
        (Test::In(list), Test::In(wanted)) => is_part_of(list, wanted),
        (Test::Geo(geo), Test::Geo(wanted)) => geo.is_same(wanted),
        (Test::Type(types), Test::Type(wanted)) => types.iter().all(|kind| wanted.contains(kind)),
        _ => false,
    }
}

/// A value as the comparisons see it.
fn as_compared(value: RawValue<'_>) -> RawValue<'_> {
    match value {
        RawValue::Undefined => RawValue::Null,
        value => value,
    }
}

fn is_part_of(list: &InList, wanted: &InList) -> bool {
    list.values().iter().all(|value| {
        wanted.order().agrees_on(list.order(), value.raw()) && wanted.has(as_compared(value.raw()))
    }) && list.regexes().iter().all(|regex| {
        let is_same = |other: &RegularExpression| {
            (other.pattern(), other.options()) == (regex.pattern(), regex.options())
        };
        wanted.regexes().iter().any(is_same)
    })
}

fn of_comparison(comparison: &Comparison, wanted: &Comparison) -> bool {
    let (have, limit) = (comparison.literal.raw(), wanted.literal.raw());
    let order = &wanted.order;
    if !order.agrees_on(&comparison.order, have) || !order.agrees_on(&comparison.order, limit) {
        return false;
    }
    if comparison.operator == Operator::Equal {
        // Each leaf that passes is equal to the literal, or missing where that is null.
        return wanted.holds(Some(have));
    }
    let ordering = order.compare(have, limit);
    if comparison.operator == wanted.operator && ordering.is_eq() {
        return true;
    }
    let canonical = canonical_type(have.element_type());
    let is_bracketed = canonical == canonical_type(limit.element_type())
        && !matches!(canonical, CanonicalType::Null | CanonicalType::MinKey | CanonicalType::MaxKey);
    if !is_bracketed || is_nan(have) || is_nan(limit) {
        return false;
    }
    match (comparison.operator, wanted.operator) {
        (Operator::Greater, Operator::Greater | Operator::GreaterOrEqual)
        | (Operator::GreaterOrEqual, Operator::GreaterOrEqual) => ordering != Ordering::Less,
        (Operator::GreaterOrEqual, Operator::Greater) => ordering == Ordering::Greater,
        (Operator::Less, Operator::Less | Operator::LessOrEqual)
        | (Operator::LessOrEqual, Operator::LessOrEqual) => ordering != Ordering::Greater,
        (Operator::LessOrEqual, Operator::Less) => ordering == Ordering::Less,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
