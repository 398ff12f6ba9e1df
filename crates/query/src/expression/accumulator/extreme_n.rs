//! `$minN` and `$maxN`: the n least or greatest values, best first; null and missing do not count.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use pando_collation::TextOrder;
use pando_document::{ArrayWriter, RawValue};

use super::super::Evaluated;
use super::extreme::Wanted;
use super::{Accumulator, bytes_of, for_saved, give_all, keep, save_all};
use crate::error::QueryError;
use crate::literal::Literal;

#[derive(Debug)]
pub(crate) struct ExtremeN {
    wanted: Wanted,
    n: usize,
    /// The worst on top.
    best: BinaryHeap<Kept>,
    /// Values that were taken so far.
    taken: u64,
    bytes: usize,
    order: TextOrder,
}

/// A value among the best. A greater one is worse: by its value, then by its age.
#[derive(Debug)]
struct Kept {
    value: Literal,
    /// How the better of two values compares with the other.
    better: Ordering,
    /// How many values were taken before it.
    age: u64,
    bytes: usize,
    order: TextOrder,
}

impl Ord for Kept {
    fn cmp(&self, other: &Kept) -> Ordering {
        let order = self.order.compare(self.value.raw(), other.value.raw());
        let worse = if self.better == Ordering::Less { order } else { order.reverse() };
        worse.then(self.age.cmp(&other.age))
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
        ExtremeN { wanted, n, best: BinaryHeap::new(), taken: 0, bytes: 0, order: order.clone() }
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
            // A value that is as good as the worst comes behind it.
            let is_better = self
                .best
                .peek()
                .is_some_and(|worst| self.order.compare(value.raw_or_null(), worst.value.raw()) == better);
            if !is_better {
                return Ok(());
            }
            self.bytes -= self.best.pop().map_or(0, |worst| worst.bytes);
        }
        let bytes = bytes_of(value) + size_of::<Kept>();
        self.bytes += bytes;
        let order = self.order.clone();
        self.best.push(Kept { value: keep(value), better, age: self.taken, bytes, order });
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        give_all(self.sorted().into_iter().map(|kept| &kept.value))
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        save_all(self.sorted().into_iter().map(|kept| &kept.value), out);
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        for_saved(saved, |value| self.add(&Evaluated::Raw(value)))
    }
}
