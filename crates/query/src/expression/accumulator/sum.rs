//! `$sum`: the sum of all numbers; other values count as nothing.

use pando_document::{ArrayWriter, Number, NumberSum, RawBinary, RawValue};

use super::super::{Evaluated, narrowed};
use super::{Accumulator, not_saved};
use crate::error::QueryError;

#[derive(Debug, Default)]
pub(crate) struct Sum {
    sum: NumberSum,
}

impl Sum {
    /// Takes in a number.
    pub fn add_number(&mut self, number: Number) {
        self.sum.add(number);
    }

    /// Takes in another state.
    pub fn absorb(&mut self, later: &Sum) {
        self.sum.merge(&later.sum);
    }
}

impl Accumulator for Sum {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if let Some(number) = value.as_number() {
            self.sum.add(number);
        }
        Ok(())
    }

    fn add_times(&mut self, value: &Evaluated<'_>, times: u64) -> Result<(), QueryError> {
        if let Some(number) = value.as_number() {
            self.sum.add_times(number, times);
        }
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(Evaluated::number(self.sum.total()))
    }

    /// An int32 wherever the sum fits.
    fn finish_in_sliding_window(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(Evaluated::number(match self.sum.total() {
            Number::Int64(sum) => narrowed(sum),
            other => other,
        }))
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        save_sum(&self.sum, out);
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        self.sum.merge(&saved_sum(saved)?);
        Ok(())
    }
}

/// Appends a sum as a saved state.
pub(super) fn save_sum(sum: &NumberSum, out: &mut ArrayWriter<'_>) {
    out.push(RawValue::Binary(RawBinary { subtype: 0, bytes: &sum.to_bytes() }));
}

/// The sum of a saved state.
pub(super) fn saved_sum(saved: RawValue<'_>) -> Result<NumberSum, QueryError> {
    match saved {
        RawValue::Binary(sum) => NumberSum::from_bytes(sum.bytes).ok_or_else(not_saved),
        _ => Err(not_saved()),
    }
}
