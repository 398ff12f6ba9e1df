//! `$stdDevPop` and `$stdDevSamp`: the standard deviation of all numbers, as a double; null where there are
//! too few.
//!
//! Computed in one pass by Welford's method (1962): mean and sum of squared differences are corrected with
//! each number. Two states are combined by the method of Chan, Golub and LeVeque (1979).

use pando_document::{ArrayWriter, RawValue};

use super::super::Evaluated;
use super::{Accumulator, for_saved, not_saved};
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

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        let divisor = match self.deviation {
            Deviation::Population => self.count,
            Deviation::Sample => self.count - 1.0,
        };
        if divisor <= 0.0 {
            return Ok(Evaluated::NULL);
        }
        Ok(Evaluated::Raw(RawValue::Double((self.squares / divisor).sqrt())))
    }

    /// The int32 zero of a population of one number; null where a number is infinite.
    fn finish_in_sliding_window(&self) -> Result<Evaluated<'static>, QueryError> {
        if self.squares.is_nan() {
            return Ok(Evaluated::NULL);
        }
        if self.deviation == Deviation::Population && self.count == 1.0 {
            return Ok(Evaluated::Raw(RawValue::Int32(0)));
        }
        self.finish()
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        let mut array = out.array();
        for part in [self.count, self.mean, self.squares] {
            array.push(RawValue::Double(part));
        }
        array.finish();
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        let mut parts = Vec::with_capacity(3);
        for_saved(saved, |part| {
            let RawValue::Double(part) = part else { return Err(not_saved()) };
            parts.push(part);
            Ok(())
        })?;
        let [count, mean, squares] = parts.as_slice() else { return Err(not_saved()) };
        if *count > 0.0 {
            let (all, distance) = (self.count + count, mean - self.mean);
            self.squares += squares + distance * distance * self.count * count / all;
            self.mean += distance * count / all;
            self.count = all;
        }
        Ok(())
    }
}
