//! `$sum`: the sum of all numbers; other values count as nothing.

use pando_document::NumberSum;

use super::super::Evaluated;
use super::Accumulator;
use crate::error::QueryError;

#[derive(Debug, Default)]
pub(crate) struct Sum {
    sum: NumberSum,
}

impl Accumulator for Sum {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if let Some(number) = value.as_number() {
            self.sum.add(number);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Evaluated<'static>, QueryError> {
        Ok(Evaluated::number(self.sum.total()))
    }
}
