//! `$avg`: the mean of all numbers; null if there are none.

use pando_document::{ArrayWriter, Number, NumberSum, RawValue};

use super::super::Evaluated;
use super::sum::{save_sum, saved_sum};
use super::{Accumulator, for_saved};
use crate::error::QueryError;

#[derive(Debug, Default)]
pub(crate) struct Avg {
    sum: NumberSum,
    count: i64,
}

impl Avg {
    /// Takes in a number.
    pub fn add_number(&mut self, number: Number) {
        self.sum.add(number);
        self.count += 1;
    }

    /// Takes in another state.
    pub fn absorb(&mut self, later: &Avg) {
        self.sum.merge(&later.sum);
        self.count = self.count.saturating_add(later.count);
    }
}

impl Accumulator for Avg {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        value.as_number().into_iter().for_each(|number| self.add_number(number));
        Ok(())
    }

    fn add_times(&mut self, value: &Evaluated<'_>, times: u64) -> Result<(), QueryError> {
        if let Some(number) = value.as_number() {
            self.sum.add_times(number, times);
            self.count = self.count.saturating_add_unsigned(times);
        }
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(match self.count {
            0 => Evaluated::NULL,
            count => Evaluated::number(self.sum.mean(count)),
        })
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        let mut array = out.array();
        save_sum(&self.sum, &mut array);
        array.push(RawValue::Int64(self.count));
        array.finish();
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        for_saved(saved, |part| {
            match part {
                RawValue::Int64(count) => self.count += count,
                sum => self.sum.merge(&saved_sum(sum)?),
            }
            Ok(())
        })
    }
}
