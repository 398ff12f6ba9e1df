//! Sets of values as intervals of order-preserving bytes.
//!
//! # Terms
//! - *Cut*: a place between values: just before or just after all keys that begin with some value's bytes. No
//!   value's bytes are a prefix of another's, so cuts are ordered by their bytes and then by their side.
//! - *Interval*: what lies between two cuts. *Intervals*: a sorted list of disjoint ones,
//!   not touching each other.
//!
//! Sets are made and combined in ascending order; [`Intervals::directed`] turns them for a descending field.

use pando_collation::TextOrder;
use pando_document::{RawValue, Value};
use pando_keyorder::{Direction, TypeBits};

/// Which side of a value's bytes a cut is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Before all keys that begin with the bytes.
    Before,
    /// After them.
    After,
}

/// A place between values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cut {
    /// The value's bytes.
    pub bytes: Vec<u8>,
    /// Which side.
    pub side: Side,
}

impl Cut {
    /// The place just before a value, in an index with this order of strings.
    pub fn before(value: RawValue<'_>, order: &TextOrder) -> Cut {
        Cut { bytes: encoded(value, order), side: Side::Before }
    }

    /// The place just after a value, in an index with this order of strings.
    pub fn after(value: RawValue<'_>, order: &TextOrder) -> Cut {
        Cut { bytes: encoded(value, order), side: Side::After }
    }

    fn inverted(self) -> Cut {
        let side = match self.side {
            Side::Before => Side::After,
            Side::After => Side::Before,
        };
        Cut { bytes: self.bytes.into_iter().map(|byte| !byte).collect(), side }
    }
}

fn encoded(value: RawValue<'_>, order: &TextOrder) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16);
    order.encode(value, Direction::Ascending, &mut bytes, &mut TypeBits::discarded());
    bytes
}

/// The values between two cuts, the lower before the upper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The lower end.
    pub lower: Cut,
    /// The upper end.
    pub upper: Cut,
}

impl Interval {
    /// One value.
    pub fn point(value: RawValue<'_>, order: &TextOrder) -> Interval {
        let bytes = encoded(value, order);
        Interval {
            lower: Cut { bytes: bytes.clone(), side: Side::Before },
            upper: Cut { bytes, side: Side::After },
        }
    }

    /// Whether it holds one value only.
    pub fn is_point(&self) -> bool {
        self.lower.bytes == self.upper.bytes
    }

    /// Whether a key's part lies within.
    pub fn contains(&self, part: &[u8]) -> bool {
        self.compare(part).is_eq()
    }

    /// Where a key's part lies: less than, within or greater than the interval.
    pub fn compare(&self, part: &[u8]) -> std::cmp::Ordering {
        use std::cmp::Ordering;
        match (part.cmp(&self.lower.bytes), self.lower.side) {
            (Ordering::Less, _) | (Ordering::Equal, Side::After) => return Ordering::Less,
            _ => {}
        }
        match (part.cmp(&self.upper.bytes), self.upper.side) {
            (Ordering::Greater, _) | (Ordering::Equal, Side::Before) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
}

/// A set of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervals {
    list: Vec<Interval>,
}

impl Intervals {
    /// No value.
    pub fn none() -> Intervals {
        Intervals { list: Vec::new() }
    }

    /// Every value, MinKey and MaxKey included.
    pub fn all() -> Intervals {
        Intervals::between(
            Cut::before(RawValue::MinKey, &TextOrder::SIMPLE),
            Cut::after(RawValue::MaxKey, &TextOrder::SIMPLE),
        )
    }

    /// One value.
    pub fn point(value: RawValue<'_>, order: &TextOrder) -> Intervals {
        Intervals { list: vec![Interval::point(value, order)] }
    }

    /// The values between two cuts; none if the upper cut is not behind the lower.
    pub fn between(lower: Cut, upper: Cut) -> Intervals {
        if lower < upper { Intervals { list: vec![Interval { lower, upper }] } } else { Intervals::none() }
    }

    /// The intervals in their order.
    pub fn list(&self) -> &[Interval] {
        &self.list
    }

    /// Each interval as a set.
    pub fn each(&self) -> impl Iterator<Item = Intervals> + '_ {
        self.list.iter().map(|interval| Intervals { list: vec![interval.clone()] })
    }

    /// The first intervals of the set.
    pub fn first(&self, most: usize) -> Intervals {
        Intervals { list: self.list[..self.list.len().min(most)].to_vec() }
    }

    /// Whether no value is in the set.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether every value is in the set, in ascending bytes or descending ones. A set that leaves out MinKey
    /// or MaxKey has the same bytes at its ends, and other sides.
    pub fn is_all(&self) -> bool {
        let is_last = |bytes: &[u8]| matches!(bytes, [0x08 | 0xF0 | 0x0F | 0xF7]);
        match self.list.as_slice() {
            [Interval { lower, upper }] => {
                is_last(&lower.bytes)
                    && is_last(&upper.bytes)
                    && lower.bytes != upper.bytes
                    && lower.side == Side::Before
                    && upper.side == Side::After
            }
            _ => false,
        }
    }

    /// Whether there are only single values in it, and at least one.
    pub fn is_points(&self) -> bool {
        !self.is_empty() && self.list.iter().all(Interval::is_point)
    }

    /// The values in either set.
    #[must_use]
    pub fn union(mut self, other: Intervals) -> Intervals {
        self.list.extend(other.list);
        Intervals::joined(self.list)
    }

    /// The union of many sets.
    pub fn union_of(sets: impl IntoIterator<Item = Intervals>) -> Intervals {
        Intervals::joined(sets.into_iter().flat_map(|set| set.list).collect())
    }

    /// Sorts intervals and joins those that overlap or touch.
    fn joined(mut list: Vec<Interval>) -> Intervals {
        list.sort_by(|a, b| a.lower.cmp(&b.lower).then_with(|| a.upper.cmp(&b.upper)));
        let mut joined: Vec<Interval> = Vec::with_capacity(list.len());
        for next in list {
            match joined.last_mut() {
                Some(last) if next.lower <= last.upper => last.upper = last.upper.clone().max(next.upper),
                _ => joined.push(next),
            }
        }
        Intervals { list: joined }
    }

    /// The values in both sets.
    #[must_use]
    pub fn intersection(self, other: &Intervals) -> Intervals {
        let (mut a, mut b) = (self.list.iter().peekable(), other.list.iter().peekable());
        let mut list = Vec::new();
        while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
            let lower = (&left.lower).max(&right.lower);
            let upper = (&left.upper).min(&right.upper);
            if lower < upper {
                list.push(Interval { lower: lower.clone(), upper: upper.clone() });
            }
            if left.upper < right.upper {
                a.next();
            } else {
                b.next();
            }
        }
        Intervals { list }
    }

    /// The values in all of these sets; `None` if there are none. Sets are combined pair by pair: one after
    /// the other would go through a long result again and again.
    pub fn intersection_of(sets: impl IntoIterator<Item = Intervals>) -> Option<Intervals> {
        let mut sets: Vec<Intervals> = sets.into_iter().collect();
        while sets.len() > 1 {
            let mut met = Vec::with_capacity(sets.len().div_ceil(2));
            let mut left = sets.into_iter();
            while let Some(first) = left.next() {
                met.push(match left.next() {
                    Some(second) => first.intersection(&second),
                    None => first,
                });
            }
            sets = met;
        }
        sets.pop()
    }

    /// The values that are not in the set.
    #[must_use]
    pub fn complement(self) -> Intervals {
        let mut list = Vec::with_capacity(self.list.len() + 1);
        let mut from = Cut::before(RawValue::MinKey, &TextOrder::SIMPLE);
        for interval in self.list {
            if from < interval.lower {
                list.push(Interval { lower: from, upper: interval.lower });
            }
            from = interval.upper;
        }
        let end = Cut::after(RawValue::MaxKey, &TextOrder::SIMPLE);
        if from < end {
            list.push(Interval { lower: from, upper: end });
        }
        Intervals { list }
    }

    /// The set in the order of a field: of a descending one, every bit inverted and the order turned.
    #[must_use]
    pub fn directed(self, direction: Direction) -> Intervals {
        match direction {
            Direction::Ascending => self,
            Direction::Descending => {
                let turned = |interval: Interval| Interval {
                    lower: interval.upper.inverted(),
                    upper: interval.lower.inverted(),
                };
                Intervals { list: self.list.into_iter().rev().map(turned).collect() }
            }
        }
    }
}

/// The value that a cut in the order of a field is at, as far as its bytes tell: number types are the
/// commonest ones.
pub(crate) fn value_of(cut: &Cut, direction: Direction, order: &TextOrder) -> Option<Value> {
    order.decode(&cut.bytes, &[], &[direction]).ok()?.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_without_the_least_or_the_greatest_key_is_not_all() {
        let point = |key| Intervals::point(key, &TextOrder::SIMPLE);
        let [least, greatest] = [RawValue::MinKey, RawValue::MaxKey].map(point);
        for direction in [Direction::Ascending, Direction::Descending] {
            assert!(Intervals::all().directed(direction).is_all());
            assert!(Intervals::none().complement().directed(direction).is_all());
            for left_out in [least.clone(), greatest.clone(), least.clone().union(greatest.clone())] {
                assert!(!left_out.clone().directed(direction).is_all(), "{left_out:?}");
                assert!(!left_out.clone().complement().directed(direction).is_all(), "all but {left_out:?}");
            }
        }
    }
}
