//! `$minN` and `$maxN`: the n least or greatest values, best first; null and missing do not count.

use pando_document::compare_values;

use super::super::Evaluated;
use super::extreme::Wanted;
use super::{Accumulator, bytes_of, give_all, keep};
use crate::error::QueryError;
use crate::literal::Literal;

#[derive(Debug)]
pub(crate) struct ExtremeN {
    wanted: Wanted,
    n: usize,
    /// Best first.
    best: Vec<(Literal, usize)>,
}

impl ExtremeN {
    pub(crate) fn new(wanted: Wanted, n: usize) -> ExtremeN {
        ExtremeN { wanted, n, best: Vec::new() }
    }
}

impl Accumulator for ExtremeN {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if value.is_nullish() {
            return Ok(());
        }
        let better = self.wanted.better();
        // Behind all that are as good.
        let place = self
            .best
            .partition_point(|(known, _)| compare_values(value.raw_or_null(), known.raw()) != better);
        if place < self.n {
            self.best.insert(place, (keep(value), bytes_of(value)));
            self.best.truncate(self.n);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Evaluated<'static>, QueryError> {
        give_all(self.best.iter().map(|(value, _)| value))
    }

    fn held_bytes(&self) -> usize {
        self.best.iter().map(|(_, bytes)| bytes).sum()
    }
}
