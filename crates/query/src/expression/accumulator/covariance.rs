//! `$covariancePop` and `$covarianceSamp`: how two numbers vary together; null where there are too few pairs.
//!
//! A value that is no array of two numbers does not count. The means and the sum of products are corrected
//! with each pair, and two states combined, as for [standard deviations](super::StdDev). A decimal among the
//! numbers makes the result a decimal.

use pando_document::{ArrayWriter, Number, Overflow, RawValue};

use super::super::Evaluated;
use super::{Accumulator, Deviation, for_saved, not_saved};
use crate::error::QueryError;

#[derive(Debug)]
pub(crate) struct Covariance {
    deviation: Deviation,
    count: i64,
    mean_x: Number,
    mean_y: Number,
    products: Number,
}

impl Covariance {
    pub(crate) fn new(deviation: Deviation) -> Covariance {
        let zero = Number::Double(0.0);
        Covariance { deviation, count: 0, mean_x: zero, mean_y: zero, products: zero }
    }
}

fn sum(a: Number, b: Number) -> Number {
    a.add(b, Overflow::Double).unwrap_or(Number::Double(f64::NAN))
}

fn difference(a: Number, b: Number) -> Number {
    a.subtract(b, Overflow::Double).unwrap_or(Number::Double(f64::NAN))
}

fn product(a: Number, b: Number) -> Number {
    a.multiply(b, Overflow::Double).unwrap_or(Number::Double(f64::NAN))
}

fn quotient(a: Number, b: i64) -> Number {
    a.divide(Number::Int64(b)).unwrap_or(Number::Double(f64::NAN))
}

/// The two numbers of a value, if it is a pair of them.
pub(super) fn pair_of(value: &Evaluated<'_>) -> Result<Option<(Number, Number)>, QueryError> {
    let Some(array) = value.as_array() else { return Ok(None) };
    let mut parts = array.iter();
    let (Some(x), Some(y), None) = (parts.next(), parts.next(), parts.next()) else { return Ok(None) };
    Ok(Number::from_value(x?).zip(Number::from_value(y?)))
}

impl Accumulator for Covariance {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if let Some((x, y)) = pair_of(value)? {
            self.count += 1;
            let distance = difference(x, self.mean_x);
            self.mean_x = sum(self.mean_x, quotient(distance, self.count));
            self.mean_y = sum(self.mean_y, quotient(difference(y, self.mean_y), self.count));
            self.products = sum(self.products, product(distance, difference(y, self.mean_y)));
        }
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        let divisor = match self.deviation {
            Deviation::Population => self.count,
            Deviation::Sample => self.count - 1,
        };
        if divisor <= 0 {
            return Ok(Evaluated::NULL);
        }
        Ok(Evaluated::number(quotient(self.products, divisor)))
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        let mut array = out.array();
        array.push(RawValue::Int64(self.count));
        for part in [self.mean_x, self.mean_y, self.products] {
            array.push(part.to_raw());
        }
        array.finish();
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        let mut parts = Vec::with_capacity(4);
        for_saved(saved, |part| {
            parts.push(Number::from_value(part).ok_or_else(not_saved)?);
            Ok(())
        })?;
        let [count, mean_x, mean_y, products] = parts.as_slice() else { return Err(not_saved()) };
        let count = count.to_i64_exact().ok_or_else(not_saved)?;
        if count > 0 {
            let all = self.count + count;
            let (x, y) = (difference(*mean_x, self.mean_x), difference(*mean_y, self.mean_y));
            let weight = Number::Double(self.count as f64 * count as f64 / all as f64);
            self.products = sum(sum(self.products, *products), product(product(x, y), weight));
            self.mean_x = sum(self.mean_x, quotient(product(x, Number::Int64(count)), all));
            self.mean_y = sum(self.mean_y, quotient(product(y, Number::Int64(count)), all));
            self.count = all;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::array_of;

    fn of(pairs: &[(f64, f64)]) -> Covariance {
        let mut state = Covariance::new(Deviation::Sample);
        for (x, y) in pairs {
            let pair = array_of(|writer| {
                writer.push(RawValue::Double(*x));
                writer.push(RawValue::Double(*y));
                Ok(())
            });
            state.add(&pair.unwrap()).unwrap();
        }
        state
    }

    #[test]
    fn merged_states_have_the_covariance_of_all_pairs() {
        let pairs = [(1.0, 10.0), (2.0, 20.0), (4.0, 7.5), (7.0, 1.0), (3.0, 3.0)];
        let whole = of(&pairs).finish().unwrap().as_number().unwrap().to_f64();
        for cut in 0..=pairs.len() {
            let (mut first, second) = (of(&pairs[..cut]), of(&pairs[cut..]));
            let mut bytes = Vec::new();
            let mut out = ArrayWriter::begin(&mut bytes);
            second.save(&mut out);
            out.finish();
            let document = pando_document::RawDocument::from_bytes(&bytes).unwrap();
            first.merge(document.get("0").unwrap().unwrap()).unwrap();
            let merged = first.finish().unwrap().as_number().unwrap().to_f64();
            assert!((merged - whole).abs() < 1e-9, "{cut}: {merged} of {whole}");
        }
        assert!(of(&pairs[..1]).finish().unwrap().is_nullish());
    }
}
