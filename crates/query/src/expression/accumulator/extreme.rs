//! `$min` and `$max`: the least or greatest value in the order of all values. Null and missing do not count,
//! and give null where there is no other value.

use std::cmp::Ordering;

use pando_collation::TextOrder;
use pando_document::{ArrayWriter, RawValue};

use super::super::Evaluated;
use super::{Accumulator, Ties, bytes_of, for_saved, give, keep, save_all};
use crate::error::QueryError;
use crate::literal::Literal;

/// Which end of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Least,
    Greatest,
}

impl Wanted {
    /// How a better value compares with the one at hand.
    pub(crate) fn better(self) -> Ordering {
        match self {
            Wanted::Least => Ordering::Less,
            Wanted::Greatest => Ordering::Greater,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Extreme {
    wanted: Wanted,
    best: Option<Literal>,
    bytes: usize,
    order: TextOrder,
    ties: Ties,
}

impl Extreme {
    pub(crate) fn new(wanted: Wanted, order: &TextOrder) -> Extreme {
        Extreme { wanted, best: None, bytes: 0, order: order.clone(), ties: Ties::Earlier }
    }

    /// The same with another choice between values that are equal.
    pub(crate) fn with_ties(self, ties: Ties) -> Extreme {
        Extreme { ties, ..self }
    }
}

impl Accumulator for Extreme {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if value.is_nullish() {
            return Ok(());
        }
        let is_better = match &self.best {
            None => true,
            Some(best) => {
                let order = self.order.compare(value.raw_or_null(), best.raw());
                order == self.wanted.better() || order.is_eq() && self.ties == Ties::Later
            }
        };
        if is_better {
            self.bytes = bytes_of(value);
            self.best = Some(keep(value));
        }
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(self.best.clone().map_or(Evaluated::NULL, give))
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        save_all(self.best.iter(), out);
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        for_saved(saved, |value| self.add(&Evaluated::Raw(value)))
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }
}
