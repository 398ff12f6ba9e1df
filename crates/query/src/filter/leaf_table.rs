//! The leaves of one path in one document, in the order of values: which of them a test meets first is found
//! without a walk.
//!
//! # Terms
//! - *Place*: where a leaf came in the walk of its path. The first leaf that meets a test decides what the
//!   positional `$` stands for.
//!
//! # Invariants
//! - The answers are those of a walk that asks [`Test::holds`] of each leaf.
//!
//! # Not here
//! Patterns, `$mod`, bits and `$elemMatch`: order does not help them, so they walk.

use std::cmp::Ordering;

use pando_collation::TextOrder;
use pando_document::{CanonicalType, ElementType, RawValue, canonical_type};

use super::comparison::is_nan;
use super::{Comparison, InList, Operator, Test};
use crate::path::Leaf;

/// Where a leaf came in the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// How many leaves came before it.
    order: usize,
    /// Where in the first array of the path it was found.
    pub(super) index: Option<usize>,
}

/// A value of the table.
#[derive(Clone, Copy, Debug)]
struct Entry<'d> {
    value: RawValue<'d>,
    place: Place,
    /// The first place among the numbers that a range to this value covers: those of its bracket up to it.
    up_to: Place,
    /// The first place among those of its bracket from it on.
    from: Place,
}

/// The leaves of a path.
#[derive(Debug, Default)]
pub(super) struct LeafTable<'d> {
    /// Ascending, each value once. A missing leaf counts as null.
    entries: Vec<Entry<'d>>,
    /// The first leaf of each type.
    types: Vec<(ElementType, Place)>,
    /// The order of strings, which all tests of a filter share.
    order: TextOrder,
}

impl<'d> LeafTable<'d> {
    /// The order of strings by which a test compares; `None` where it compares nothing.
    pub(super) fn order_of(test: &Test) -> Option<&TextOrder> {
        match test {
            Test::Comparison(comparison) => Some(&comparison.order),
            Test::In(list) => Some(list.order()),
            _ => None,
        }
    }

    /// Whether the table knows the answer of a test.
    pub(super) fn can_answer(test: &Test) -> bool {
        match test {
            Test::Comparison(_) | Test::Exists | Test::Type(_) => true,
            Test::In(list) => list.regexes().is_empty(),
            Test::Regex(_) | Test::Modulo(_) | Test::Size(_) | Test::Bits(_) => false,
            Test::Element(_) | Test::Geo(_) | Test::Near(_) => false,
        }
    }

    /// The table of all leaves of a path, which come in the order of the walk.
    pub(super) fn of(leaves: &[Leaf<'d>], text_order: &TextOrder) -> LeafTable<'d> {
        let mut table = LeafTable { order: text_order.clone(), ..LeafTable::default() };
        for (order, leaf) in leaves.iter().enumerate() {
            let place = Place { order, index: leaf.outermost_index };
            if let Some(value) = leaf.value
                && !table.types.iter().any(|(kind, _)| *kind == value.element_type())
            {
                table.types.push((value.element_type(), place));
            }
            let value = match leaf.value {
                None | Some(RawValue::Undefined) => RawValue::Null,
                Some(value) => value,
            };
            table.entries.push(Entry { value, place, up_to: place, from: place });
        }
        // The sort is stable and the first of equal ones stays: that is the one of the walk.
        table.entries.sort_by(|a, b| text_order.compare(a.value, b.value));
        table.entries.dedup_by(|later, first| text_order.is_equal(later.value, first.value));
        for at in 1..table.entries.len() {
            let before = table.entries[at - 1];
            let entry = &mut table.entries[at];
            // No range holds NaN.
            if bracket(before.value) == bracket(entry.value) && !is_nan(before.value) {
                entry.up_to = earlier(entry.up_to, before.up_to);
            }
        }
        for at in (1..table.entries.len()).rev() {
            let behind = table.entries[at];
            let entry = &mut table.entries[at - 1];
            if bracket(behind.value) == bracket(entry.value) {
                entry.from = earlier(entry.from, behind.from);
            }
        }
        table
    }

    /// The first leaf that meets a test which the table [can answer](LeafTable::can_answer).
    pub(super) fn first_that_meets(&self, test: &Test) -> Option<Place> {
        match test {
            Test::Comparison(comparison) => self.first_that_compares(comparison),
            Test::In(list) => self.first_in(list),
            Test::Exists => first_of(self.types.iter().map(|(_, place)| *place)),
            Test::Type(types) => {
                first_of(self.types.iter().filter(|(kind, _)| types.contains(*kind)).map(|(_, place)| *place))
            }
            Test::Regex(_)
            | Test::Modulo(_)
            | Test::Size(_)
            | Test::Bits(_)
            | Test::Element(_)
            | Test::Geo(_)
            | Test::Near(_) => {
                unreachable!("the table is not asked about these")
            }
        }
    }

    /// Whether its strings are in this order.
    pub(super) fn has_order(&self, order: &TextOrder) -> bool {
        self.order == *order
    }

    fn equal_to(&self, value: RawValue<'_>) -> Option<Place> {
        let at = self.entries.binary_search_by(|entry| self.order.compare(entry.value, value)).ok()?;
        Some(self.entries[at].place)
    }

    fn first_in(&self, list: &InList) -> Option<Place> {
        if list.values().len() <= self.entries.len() {
            return first_of(list.values().iter().filter_map(|value| self.equal_to(value.raw())));
        }
        first_of(self.entries.iter().filter(|entry| list.has(entry.value)).map(|entry| entry.place))
    }

    fn first_that_compares(&self, Comparison { operator, literal, .. }: &Comparison) -> Option<Place> {
        let literal = literal.raw();
        if *operator == Operator::Equal {
            return self.equal_to(literal);
        }
        if is_nan(literal) {
            let holds_nan = matches!(operator, Operator::GreaterOrEqual | Operator::LessOrEqual);
            return self.equal_to(literal).filter(|_| holds_nan);
        }
        let bracket_of_literal = bracket(literal);
        let is_inside =
            |entry: &&Entry<'d>| bracket(entry.value) == bracket_of_literal && !is_nan(entry.value);
        let below = |limit: fn(Ordering) -> bool| {
            self.entries.partition_point(|entry| limit(self.order.compare(entry.value, literal)))
        };
        let inside = match operator {
            Operator::Equal => unreachable!("answered above"),
            Operator::Greater => {
                self.entries.get(below(Ordering::is_le)).filter(is_inside).map(|entry| entry.from)
            }
            Operator::GreaterOrEqual => {
                self.entries.get(below(Ordering::is_lt)).filter(is_inside).map(|entry| entry.from)
            }
            Operator::Less => {
                self.entries[..below(Ordering::is_lt)].last().filter(is_inside).map(|entry| entry.up_to)
            }
            Operator::LessOrEqual => {
                self.entries[..below(Ordering::is_le)].last().filter(is_inside).map(|entry| entry.up_to)
            }
        };
        // MinKey and MaxKey compare with values of every bracket.
        let covers_others = match literal {
            RawValue::MaxKey => matches!(operator, Operator::Less | Operator::LessOrEqual),
            RawValue::MinKey => matches!(operator, Operator::Greater | Operator::GreaterOrEqual),
            _ => false,
        };
        if !covers_others {
            return inside;
        }
        let others = self.entries.iter().filter(|entry| bracket(entry.value) != bracket_of_literal);
        first_of(others.map(|entry| entry.place).chain(inside))
    }
}

fn bracket(value: RawValue<'_>) -> CanonicalType {
    canonical_type(value.element_type())
}

fn earlier(a: Place, b: Place) -> Place {
    if b.order < a.order { b } else { a }
}

fn first_of(places: impl Iterator<Item = Place>) -> Option<Place> {
    places.reduce(earlier)
}

#[cfg(test)]
mod tests;
