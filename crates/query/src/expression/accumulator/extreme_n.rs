//! `$minN` and `$maxN`: the n least or greatest values, best first; null and missing do not count.
//!
//! Equal values (`1` and `1.0`) can be told apart, and MongoDB keeps them in one ascending order, from which
//! `$maxN` reads backwards: of those the newest comes first and the oldest gives way, with `$minN` the other
//! way. Which of the equal values a full state keeps, [`Ties`] tells.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use pando_collation::TextOrder;
use pando_document::{ArrayWriter, RawValue};

use super::super::Evaluated;
use super::extreme::Wanted;
use super::{Accumulator, Ties, bytes_of, for_saved, give_all, keep, save_all};
use crate::error::QueryError;
use crate::literal::Literal;

#[derive(Debug)]
pub(crate) struct ExtremeN {
    wanted: Wanted,
    n: usize,
    ties: Ties,
    /// The worst on top.
    best: BinaryHeap<Kept>,
    /// Values that were taken so far.
    taken: u64,
    bytes: usize,
    order: TextOrder,
}

/// A value among the best. A greater one is worse: by its value, then by its turn.
#[derive(Debug)]
struct Kept {
    value: Literal,
    /// How the better of two values compares with the other.
    better: Ordering,
    /// Its number among the values that were taken, from 1.
    turn: u64,
    bytes: usize,
    order: TextOrder,
}

impl Ord for Kept {
    fn cmp(&self, other: &Kept) -> Ordering {
        let ascending =
            self.order.compare(self.value.raw(), other.value.raw()).then(self.turn.cmp(&other.turn));
        if self.better == Ordering::Less { ascending } else { ascending.reverse() }
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Kept) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Kept) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Kept {}

impl ExtremeN {
    pub(crate) fn new(wanted: Wanted, n: usize, order: &TextOrder) -> ExtremeN {
        ExtremeN {
            wanted,
            n,
            ties: Ties::Earlier,
            best: BinaryHeap::new(),
            taken: 0,
            bytes: 0,
            order: order.clone(),
        }
    }

    /// The same with another choice between values that are equal.
    pub(crate) fn with_ties(self, ties: Ties) -> ExtremeN {
        ExtremeN { ties, ..self }
    }

    /// The best first.
    fn sorted(&self) -> Vec<&Kept> {
        let mut best: Vec<&Kept> = self.best.iter().collect();
        best.sort_unstable();
        best
    }
}

impl Accumulator for ExtremeN {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if value.is_nullish() {
            return Ok(());
        }
        let better = self.wanted.better();
        self.taken += 1;
        if self.best.len() == self.n {
            let takes_place = self.best.peek().is_some_and(|worst| {
                let order = self.order.compare(value.raw_or_null(), worst.value.raw());
                order == better || order.is_eq() && self.ties == Ties::Later
            });
            if !takes_place {
                return Ok(());
            }
            self.bytes -= self.best.pop().map_or(0, |worst| worst.bytes);
        }
        let bytes = bytes_of(value) + size_of::<Kept>();
        self.bytes += bytes;
        let order = self.order.clone();
        self.best.push(Kept { value: keep(value), better, turn: self.taken, bytes, order });
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        give_all(self.sorted().into_iter().map(|kept| &kept.value))
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        // By turn, in which the receiver of the values takes them again.
        let mut kept: Vec<&Kept> = self.best.iter().collect();
        kept.sort_unstable_by_key(|kept| kept.turn);
        save_all(kept.into_iter().map(|kept| &kept.value), out);
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        for_saved(saved, |value| self.add(&Evaluated::Raw(value)))
    }
}

#[cfg(test)]
mod tests {
    use pando_document::Value;

    use super::*;

    const EQUAL: [RawValue<'static>; 3] = [RawValue::Int32(1), RawValue::Double(1.0), RawValue::Int64(1)];

    /// The two greatest of equal values, also after the state was saved and merged.
    fn greatest_of_equal_values(ties: Ties) -> Vec<Value> {
        let state = || ExtremeN::new(Wanted::Greatest, 2, &TextOrder::default()).with_ties(ties);
        let (mut state, mut restored) = (state(), state());
        EQUAL.into_iter().for_each(|value| state.add(&Evaluated::Raw(value)).unwrap());
        super::super::absorb(&mut restored, &state).unwrap();
        let (kept, restored) = (state.finish().unwrap().to_value(), restored.finish().unwrap().to_value());
        assert_eq!(kept, restored, "a state that was saved is the same");
        let Some(Value::Array(kept)) = kept else { panic!("no array: {kept:?}") };
        kept
    }

    #[test]
    fn of_equal_values_the_newest_comes_first() {
        assert_eq!(greatest_of_equal_values(Ties::Earlier), [Value::Double(1.0), Value::Int32(1)]);
        assert_eq!(greatest_of_equal_values(Ties::Later), [Value::Int64(1), Value::Double(1.0)]);
    }
}
