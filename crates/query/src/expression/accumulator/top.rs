//! `$top`, `$topN`, `$bottom`, `$bottomN`: values by the order of a sort pattern.
//!
//! A value comes as a pair: the key bytes of its document, whose order is that of the pattern, and the value
//! itself. Pairs with equal keys stay in the order in which they came. Of those, a full state keeps the ones
//! that MongoDB keeps (observed on 6.0): a value as good as the worst is not taken, but for the bottom ones
//! of a window that slides. For a better one the outermost goes: the last of the top ones, the first of the
//! bottom ones.

use std::collections::BTreeMap;

use pando_document::{ArrayWriter, RawArray, RawValue};

use super::super::Evaluated;
use super::{Accumulator, for_saved, give, give_all, not_saved};
use crate::error::QueryError;
use crate::literal::Literal;

/// Which end of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Top,
    Bottom,
}

/// How the result is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The one value itself; null where there is none.
    Value,
    /// An array.
    Array,
}

/// Which of two values with equal keys a full state keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ties {
    Earlier,
    Later,
}

/// Memory of a pair beside its bytes: its place in the tree, and the allocations.
const PAIR_BYTES: usize = 128;

#[derive(Debug)]
pub(crate) struct Top {
    end: End,
    shape: Shape,
    n: usize,
    ties: Ties,
    /// By key and age.
    kept: BTreeMap<(Box<[u8]>, u64), Literal>,
    /// Values that were taken so far.
    taken: u64,
    bytes: usize,
}

impl Top {
    pub(crate) fn new(end: End, shape: Shape, n: usize) -> Top {
        Top { end, shape, n, ties: Ties::Earlier, kept: BTreeMap::new(), taken: 0, bytes: 0 }
    }

    /// The same with another choice between values with equal keys.
    pub(crate) fn with_ties(self, ties: Ties) -> Top {
        Top { ties, ..self }
    }

    /// Makes room for a pair with this key; false where it is not among the wanted ones.
    fn make_room(&mut self, key: &[u8]) -> bool {
        if self.kept.len() < self.n {
            return true;
        }
        let worst = match self.end {
            End::Top => self.kept.last_entry(),
            End::Bottom => self.kept.first_entry(),
        };
        let Some(worst) = worst else { return false };
        let known = &*worst.key().0;
        let is_better = match self.end {
            _ if key == known => self.ties == Ties::Later,
            End::Top => key < known,
            End::Bottom => key > known,
        };
        if is_better {
            let ((key, _), value) = worst.remove_entry();
            self.bytes -= bytes_of_pair(&key, &value);
        }
        is_better
    }

    fn take(&mut self, pair: &RawArray) -> Result<(), QueryError> {
        let mut parts = pair.iter();
        let (Some(key), Some(value)) = (parts.next(), parts.next()) else { return Err(not_saved()) };
        let (RawValue::Binary(key), value) = (key?, value?) else { return Err(not_saved()) };
        if self.make_room(key.bytes) {
            let value = Literal::new(value);
            self.bytes += bytes_of_pair(key.bytes, &value);
            self.taken += 1;
            self.kept.insert((Box::from(key.bytes), self.taken), value);
        }
        Ok(())
    }
}

fn bytes_of_pair(key: &[u8], value: &Literal) -> usize {
    PAIR_BYTES + key.len() + super::bytes_of(&Evaluated::Raw(value.raw()))
}

impl Accumulator for Top {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        self.take(value.as_array().ok_or_else(not_saved)?)
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        match self.shape {
            Shape::Array => give_all(self.kept.values()),
            Shape::Value => Ok(self.kept.values().next().cloned().map_or(Evaluated::NULL, give)),
        }
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        let mut by_age: Vec<_> = self.kept.iter().map(|((key, age), value)| (age, key, value)).collect();
        by_age.sort_unstable_by_key(|(age, ..)| **age);
        let mut pairs = out.array();
        for (_, key, value) in by_age {
            let mut pair = pairs.array();
            pair.push(RawValue::Binary(pando_document::RawBinary { subtype: 0, bytes: key }));
            pair.push(value.raw());
            pair.finish();
        }
        pairs.finish();
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        for_saved(saved, |pair| {
            let RawValue::Array(pair) = pair else { return Err(not_saved()) };
            self.take(pair)
        })
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{RawBinary, Value};

    use super::*;
    use crate::expression::array_of;

    fn pair(key: u8, value: i32) -> Evaluated<'static> {
        array_of(|writer| {
            writer.push(RawValue::Binary(RawBinary { subtype: 0, bytes: &[key] }));
            writer.push(RawValue::Int32(value));
            Ok(())
        })
        .unwrap()
    }

    /// The kept values, also of a state that was saved in between.
    fn kept(end: End, n: usize, keys: &[u8]) -> Vec<i32> {
        let add = |top: &mut Top, (key, value): (&u8, i32)| top.add(&pair(*key, value)).unwrap();
        let values = |top: &Top| match top.finish().unwrap().to_value() {
            Some(Value::Array(values)) => {
                let number = |value: &Value| if let Value::Int32(number) = value { *number } else { 0 };
                values.iter().map(number).collect::<Vec<i32>>()
            }
            other => panic!("{other:?}"),
        };
        let (mut whole, mut first, mut second) =
            (Top::new(end, Shape::Array, n), Top::new(end, Shape::Array, n), Top::new(end, Shape::Array, n));
        for (at, numbered) in keys.iter().zip(1..).enumerate() {
            add(&mut whole, numbered);
            add(if at < keys.len() / 2 { &mut first } else { &mut second }, numbered);
        }
        let mut bytes = Vec::new();
        let mut out = ArrayWriter::begin(&mut bytes);
        first.save(&mut out);
        second.save(&mut out);
        out.finish();
        let mut merged = Top::new(end, Shape::Array, n);
        let document = pando_document::RawDocument::from_bytes(&bytes).unwrap();
        for saved in RawArray::from_document(document).iter() {
            merged.merge(saved.unwrap()).unwrap();
        }
        assert_eq!(values(&merged), values(&whole));
        values(&whole)
    }

    #[test]
    fn of_equal_keys_those_stay_that_a_real_server_keeps() {
        let keys = [1, 1, 2, 1, 2, 0];
        assert_eq!(kept(End::Top, 2, &keys), [6, 1]);
        assert_eq!(kept(End::Top, 4, &keys), [6, 1, 2, 4]);
        assert_eq!(kept(End::Bottom, 2, &keys), [3, 5]);
        assert_eq!(kept(End::Bottom, 3, &keys), [2, 3, 5]);
        assert_eq!(kept(End::Bottom, 4, &keys), [2, 4, 3, 5]);
    }

    #[test]
    fn later_ones_of_equal_keys_stay_in_a_window_that_slides() {
        let mut bottom = Top::new(End::Bottom, Shape::Array, 2).with_ties(Ties::Later);
        for (key, value) in [(1, 1), (1, 2), (1, 3), (0, 4)] {
            bottom.add(&pair(key, value)).unwrap();
        }
        let kept = bottom.finish().unwrap().to_value();
        assert_eq!(kept, Some(Value::Array(vec![Value::Int32(2), Value::Int32(3)])));
    }
}
