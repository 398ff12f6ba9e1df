//! The bounds of one test of a field: intervals of the keys of an index on that field.
//!
//! # Terms
//! - *Bounds*: intervals such that each document that passes the test has at least one key within.
//! - *Exact*: each key within belongs to a document that passes, so that the test need not be asked again.
//!
//! # Rules
//! - A missing field is null in an index, an empty array `undefined`, and arrays stand element by element. So
//!   tests that tell null from missing, or look at an array as a whole, are never exact.
//! - A comparison with an array literal finds the array where it stands as a value, and by its first element
//!   where it is the field's value.
//! - An index with another order of strings than a comparison has bounds for it only if its literal has none.
//!   The brackets of types are the same in all orders.
//! - A comparison that follows from an `$expr` is of the whole value, in the order of all types. On a field
//!   that has met arrays only equality has bounds: an array is greater than what is no array, whatever its
//!   elements.
//! - On a field that has met arrays, a negation's bounds hold every document that passes, and others.

use pando_collation::TextOrder;
use pando_document::{CanonicalType, ElementType, RawArray, RawValue, canonical_type};

use super::brackets;
use super::interval::{Cut, Intervals};
use super::predicates::{Predicate, PredicateTest};
use crate::filter::{Comparison, ElementTest, InList, Node, Operator, Test, TypeSet};
use crate::regular_expression::RegularExpression;

/// Whether the field of a test has met arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrays {
    /// It has not.
    None,
    /// It has met some.
    Met,
}

/// Whether bounds stand for their test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tightness {
    /// They do.
    Exact,
    /// The test is to be asked again.
    Inexact,
}

/// The bounds of one test.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub intervals: Intervals,
    pub tightness: Tightness,
}

impl Bounds {
    fn exact(intervals: Intervals) -> Bounds {
        Bounds { intervals, tightness: Tightness::Exact }
    }

    fn inexact(intervals: Intervals) -> Bounds {
        Bounds { intervals, tightness: Tightness::Inexact }
    }
}

/// The bounds of a test in an index with this order of strings; `None` where it says nothing about keys, as a
/// comparison with a string in another order does.
pub(super) fn of_test(test: &Test, arrays: Arrays, order: &TextOrder) -> Option<Bounds> {
    match test {
        Test::Comparison(comparison) => order
            .agrees_on(&comparison.order, comparison.literal.raw())
            .then(|| of_comparison(comparison.operator, comparison.literal.raw(), arrays, order)),
        Test::In(list) => {
            let agrees = list.values().iter().all(|value| order.agrees_on(list.order(), value.raw()));
            agrees.then(|| of_list(list, order))
        }
        Test::Regex(regex) => Some(of_regex(regex, order)),
        Test::Exists => Some(Bounds::inexact(Intervals::all())),
        Test::Type(types) => of_types(*types),
        Test::Modulo(_) => Some(Bounds::inexact(bracket(CanonicalType::Number))),
        Test::Element(ElementTest::Value(node)) => of_element(node, order),
        // Of geometries an index of their own kind has bounds (`geo_bounds`).
        Test::Size(_)
        | Test::Bits(_)
        | Test::Element(ElementTest::Document(_))
        | Test::Geo(_)
        | Test::Near(_) => None,
    }
}

/// The bounds of a negated test on a field that has met arrays or not.
pub(super) fn of_negation(test: &Test, arrays: Arrays, order: &TextOrder) -> Option<Bounds> {
    let literal_is_plain = |value: RawValue<'_>| !matches!(value, RawValue::Null | RawValue::Array(_));
    match test {
        Test::Comparison(comparison) if literal_is_plain(comparison.literal.raw()) => {}
        Test::In(list)
            if list.regexes().is_empty()
                && list.values().iter().all(|value| literal_is_plain(value.raw())) => {}
        // With arrays, null also stands for a path that leads through an empty one, which is not null.
        Test::Comparison(comparison) if matches!(comparison.literal.raw(), RawValue::Null) => {
            let kept =
                of_comparison(comparison.operator, RawValue::Null, arrays, order).intervals.complement();
            return (arrays == Arrays::None).then_some(Bounds::inexact(kept));
        }
        // Missing fields are null in the index.
        Test::Exists => return Some(Bounds::inexact(Intervals::point(RawValue::Null, order))),
        _ => return None,
    }
    let bounds = of_test(test, arrays, order)?;
    (bounds.tightness == Tightness::Exact).then(|| Bounds::exact(bounds.intervals.complement()))
}

/// The bounds of a comparison that follows from an expression. They are never exact: a missing field is less
/// than null, and stands as null in the index.
pub(super) fn of_implied(comparison: &Comparison, arrays: Arrays, order: &TextOrder) -> Option<Bounds> {
    let literal = comparison.literal.raw();
    if !order.agrees_on(&comparison.order, literal) {
        return None;
    }
    let (least, greatest) = (Cut::before(RawValue::MinKey, order), Cut::after(RawValue::MaxKey, order));
    let intervals = match comparison.operator {
        Operator::Equal => Intervals::point(literal, order),
        _ if arrays == Arrays::Met => return None,
        Operator::Greater => Intervals::between(Cut::after(literal, order), greatest),
        Operator::GreaterOrEqual => Intervals::between(Cut::before(literal, order), greatest),
        Operator::Less => Intervals::between(least, Cut::before(literal, order)),
        Operator::LessOrEqual => Intervals::between(least, Cut::after(literal, order)),
    };
    Some(Bounds::inexact(intervals))
}

/// Whether a predicate never holds where its field is missing.
///
/// In an expression a path that leads through an array is an array, be it one without elements. It is greater
/// than most values, and the field may be missing in all documents behind it.
pub(super) fn needs_field(predicate: &Predicate<'_>) -> bool {
    let comparison = match predicate.test {
        PredicateTest::Field(test) => return implies_existence(test),
        PredicateTest::Implied(comparison) => comparison,
    };
    let is_above_missing = !matches!(comparison.literal.raw(), RawValue::Null | RawValue::MinKey);
    match comparison.operator {
        Operator::Equal => is_above_missing,
        Operator::Greater | Operator::GreaterOrEqual => is_above_missing && !predicate.path.has_dot(),
        Operator::Less | Operator::LessOrEqual => false,
    }
}

/// Whether a test never holds where the field is missing, so that a sparse index has
/// every document that passes.
pub(super) fn implies_existence(test: &Test) -> bool {
    match test {
        Test::Comparison(comparison) => {
            !matches!(comparison.literal.raw(), RawValue::Null | RawValue::MinKey | RawValue::MaxKey)
        }
        Test::In(list) => !list.values().iter().any(|value| matches!(value.raw(), RawValue::Null)),
        Test::Regex(_)
        | Test::Exists
        | Test::Type(_)
        | Test::Modulo(_)
        | Test::Size(_)
        | Test::Bits(_)
        | Test::Element(_)
        | Test::Geo(_)
        | Test::Near(_) => true,
    }
}

fn bracket(canonical: CanonicalType) -> Intervals {
    // Unlike a range, the whole bracket has NaN in it.
    let lower = match canonical {
        CanonicalType::Number => Cut::before(RawValue::Double(f64::NAN), &TextOrder::SIMPLE),
        canonical => brackets::lower(canonical),
    };
    Intervals::between(lower, brackets::upper(canonical))
}

fn of_comparison(operator: Operator, literal: RawValue<'_>, arrays: Arrays, order: &TextOrder) -> Bounds {
    match (literal, operator) {
        (RawValue::Null, Operator::Greater | Operator::Less) => Bounds::exact(Intervals::none()),
        (RawValue::Null, _) => {
            let points =
                Intervals::point(RawValue::Undefined, order).union(Intervals::point(RawValue::Null, order));
            Bounds::inexact(points)
        }
        (RawValue::Array(array), Operator::Equal) => of_array(array, literal, order),
        // Any element may be the one that makes the array greater.
        (RawValue::Array(_), _) => Bounds::inexact(Intervals::all()),
        (literal, Operator::Equal) => Bounds::exact(Intervals::point(literal, order)),
        (literal, operator) if crate::filter::is_nan(literal) => match operator {
            Operator::GreaterOrEqual | Operator::LessOrEqual => {
                Bounds::exact(Intervals::point(literal, order))
            }
            Operator::Equal | Operator::Greater | Operator::Less => Bounds::exact(Intervals::none()),
        },
        // They compare with a missing field, too, but not with a path that leads through an array without
        // documents: the index has null for both.
        (RawValue::MinKey | RawValue::MaxKey, operator) if arrays == Arrays::Met => {
            Bounds::inexact(of_range(literal, operator, order))
        }
        (literal, operator) => Bounds::exact(of_range(literal, operator, order)),
    }
}

fn of_range(literal: RawValue<'_>, operator: Operator, order: &TextOrder) -> Intervals {
    let canonical = canonical_type(literal.element_type());
    // MinKey and MaxKey compare with values of every bracket.
    let (least, greatest) = match canonical {
        CanonicalType::MinKey | CanonicalType::MaxKey => {
            (Cut::before(RawValue::MinKey, order), Cut::after(RawValue::MaxKey, order))
        }
        canonical => (brackets::lower(canonical), brackets::upper(canonical)),
    };
    match operator {
        Operator::Equal => Intervals::point(literal, order),
        Operator::Greater => Intervals::between(Cut::after(literal, order), greatest),
        Operator::GreaterOrEqual => Intervals::between(Cut::before(literal, order), greatest),
        Operator::Less => Intervals::between(least, Cut::before(literal, order)),
        Operator::LessOrEqual => Intervals::between(least, Cut::after(literal, order)),
    }
}

/// An array is found by its first element, or as it stands where it is itself an element.
fn of_array(array: &RawArray, literal: RawValue<'_>, order: &TextOrder) -> Bounds {
    let first = match array.iter().next() {
        Some(Ok(first)) => first,
        Some(Err(_)) | None => RawValue::Undefined,
    };
    Bounds::inexact(Intervals::point(first, order).union(Intervals::point(literal, order)))
}

fn of_list(list: &InList, order: &TextOrder) -> Bounds {
    let mut tightness = Tightness::Exact;
    let mut sets = Vec::with_capacity(list.values().len());
    for value in list.values() {
        let bounds = of_comparison(Operator::Equal, value.raw(), Arrays::Met, order);
        if bounds.tightness == Tightness::Inexact {
            tightness = Tightness::Inexact;
        }
        sets.push(bounds.intervals);
    }
    for regex in list.regexes() {
        tightness = Tightness::Inexact;
        sets.push(of_regex(regex, order).intervals);
    }
    Bounds { intervals: Intervals::union_of(sets), tightness }
}

fn of_regex(regex: &RegularExpression, order: &TextOrder) -> Bounds {
    // A sort key does not begin with that of a prefix.
    let strings = match regex.literal_prefix().filter(|_| order.is_simple()) {
        Some(prefix) => {
            let upper = match successor(&prefix) {
                Some(next) => Cut::before(RawValue::String(&next), order),
                None => brackets::upper(CanonicalType::String),
            };
            Intervals::between(Cut::before(RawValue::String(&prefix), order), upper)
        }
        None => bracket(CanonicalType::String),
    };
    let itself =
        RawValue::Regex(pando_document::RawRegex { pattern: regex.pattern(), options: regex.options() });
    Bounds::inexact(strings.union(Intervals::point(itself, order)))
}

/// The least string that is greater than all that begin with a prefix.
fn successor(prefix: &str) -> Option<String> {
    let mut characters: Vec<char> = prefix.chars().collect();
    while let Some(last) = characters.pop() {
        // Surrogates are no characters, so the one before them is followed by the one behind them.
        let next = if last == '\u{D7FF}' { Some('\u{E000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            characters.push(next);
            return Some(characters.into_iter().collect());
        }
    }
    None
}

fn of_types(types: TypeSet) -> Option<Bounds> {
    // Arrays stand element by element, and a key's undefined or null may be an empty
    // array or a missing field.
    if types.contains(ElementType::Array) || types.contains(ElementType::Undefined) {
        return None;
    }
    let sets = types.iter().map(|kind| bracket(canonical_type(kind)));
    Some(Bounds::inexact(Intervals::union_of(sets)))
}

/// `$elemMatch` on values: one element meets all, so the bounds of its tests meet.
fn of_element(node: &Node, order: &TextOrder) -> Option<Bounds> {
    let nodes = match node {
        Node::And(nodes) => nodes.as_slice(),
        single => std::slice::from_ref(single),
    };
    let sets = nodes.iter().filter_map(|node| match node {
        // An element that is itself an array is compared whole, and stands whole in the index.
        Node::Field(field) => of_element_test(&field.test, order),
        _ => None,
    });
    Intervals::intersection_of(sets).map(Bounds::inexact)
}

fn of_element_test(test: &Test, order: &TextOrder) -> Option<Intervals> {
    match test {
        Test::Comparison(comparison) => match comparison.literal.raw() {
            literal @ RawValue::Array(_) => order
                .agrees_on(&comparison.order, literal)
                .then(|| of_range(literal, comparison.operator, order)),
            _ => of_test(test, Arrays::Met, order).map(|bounds| bounds.intervals),
        },
        Test::In(_) | Test::Regex(_) | Test::Modulo(_) => {
            of_test(test, Arrays::Met, order).map(|bounds| bounds.intervals)
        }
        Test::Exists | Test::Type(_) | Test::Size(_) | Test::Bits(_) | Test::Element(_) => None,
        Test::Geo(_) | Test::Near(_) => None,
    }
}
