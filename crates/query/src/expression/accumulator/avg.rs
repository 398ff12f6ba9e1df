//! `$avg`: the mean of all numbers; null if there are none.

use pando_document::NumberSum;

use super::super::Evaluated;
use super::Accumulator;
use crate::error::QueryError;

#[derive(Debug, Default)]
pub(crate) struct Avg {
    sum: NumberSum,
    count: i64,
}

impl Accumulator for Avg {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if let Some(number) = value.as_number() {
            self.sum.add(number);
            self.count += 1;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Evaluated<'static>, QueryError> {
        Ok(match self.count {
            0 => Evaluated::NULL,
            count => Evaluated::number(self.sum.mean(count)),
        })
    }
}
