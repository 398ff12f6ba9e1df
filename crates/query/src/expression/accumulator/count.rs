//! `$count`: the number of documents.

use super::super::{Evaluated, narrowed};
use super::Accumulator;
use crate::error::QueryError;

#[derive(Debug, Default)]
pub(crate) struct Count {
    count: i64,
}

impl Accumulator for Count {
    fn add(&mut self, _: &Evaluated<'_>) -> Result<(), QueryError> {
        self.count += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<Evaluated<'static>, QueryError> {
        Ok(Evaluated::number(narrowed(self.count)))
    }
}
