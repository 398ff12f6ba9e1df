//! `$stdDevPop` and `$stdDevSamp`: the standard deviation of all numbers, as a double; null where there are
//! too few.
//!
//! Computed in one pass by Welford's method (1962): mean and sum of squared differences are corrected with
//! each number.

use pando_document::RawValue;

use super::super::Evaluated;
use super::Accumulator;
use crate::error::QueryError;

/// Whether the numbers are all there are, or a sample of more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deviation {
    Population,
    Sample,
}

#[derive(Debug)]
pub(crate) struct StdDev {
    deviation: Deviation,
    count: f64,
    mean: f64,
    squares: f64,
}

impl StdDev {
    pub(crate) fn new(deviation: Deviation) -> StdDev {
        StdDev { deviation, count: 0.0, mean: 0.0, squares: 0.0 }
    }
}

impl Accumulator for StdDev {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if let Some(number) = value.as_number() {
            let number = number.to_f64();
            self.count += 1.0;
            let distance = number - self.mean;
            self.mean += distance / self.count;
            self.squares += distance * (number - self.mean);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Evaluated<'static>, QueryError> {
        let divisor = match self.deviation {
            Deviation::Population => self.count,
            Deviation::Sample => self.count - 1.0,
        };
        if divisor <= 0.0 {
            return Ok(Evaluated::NULL);
        }
        Ok(Evaluated::Raw(RawValue::Double((self.squares / divisor).sqrt())))
    }
}
