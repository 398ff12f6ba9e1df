//! `$count`: the number of documents.

use pando_document::{ArrayWriter, RawValue};

use super::super::{Evaluated, narrowed};
use super::{Accumulator, not_saved};
use crate::error::QueryError;

#[derive(Debug, Default)]
pub(crate) struct Count {
    count: i64,
}

impl Count {
    /// Takes in another state.
    pub fn absorb(&mut self, later: &Count) {
        self.count = self.count.saturating_add(later.count);
    }
}

impl Accumulator for Count {
    fn add(&mut self, _: &Evaluated<'_>) -> Result<(), QueryError> {
        self.count += 1;
        Ok(())
    }

    fn add_times(&mut self, _: &Evaluated<'_>, times: u64) -> Result<(), QueryError> {
        self.count = self.count.saturating_add_unsigned(times);
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(Evaluated::number(narrowed(self.count)))
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        out.push(RawValue::Int64(self.count));
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        self.count += saved.as_i64_exact().ok_or_else(not_saved)?;
        Ok(())
    }
}
