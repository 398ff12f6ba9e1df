//! Sums of many numbers, as `$sum` and `$avg` make them.
//!
//! Integers are added exactly, decimals as decimals, doubles with a running correction. Two doubles hold the
//! sum, so that `0.1 + 0.2 + 0.3` is 0.6. Only the end result is rounded. So the order of the terms hardly
//! matters, and integers may pass through values beyond Int64.

use crate::{Decimal128, DoubleDigits, ElementType, Number};

/// A sum, and the widest type among its terms.
#[derive(Clone, Copy, Debug)]
pub struct NumberSum {
    integers: i128,
    /// Rounded sum of the doubles, and the rest that the rounding left out.
    double: f64,
    correction: f64,
    decimals: Decimal128,
    widest: ElementType,
}

impl Default for NumberSum {
    fn default() -> Self {
        Self::new()
    }
}

impl NumberSum {
    /// Bytes of a saved sum.
    pub const BYTES: usize = 49;

    /// The sum of nothing: Int32 zero.
    pub const fn new() -> Self {
        Self {
            integers: 0,
            double: 0.0,
            correction: 0.0,
            decimals: Decimal128::ZERO,
            widest: ElementType::Int32,
        }
    }

    /// Adds a term.
    pub fn add(&mut self, number: Number) {
        match number {
            Number::Int32(number) => self.integers += i128::from(number),
            Number::Int64(number) => {
                self.integers += i128::from(number);
                self.widen(ElementType::Int64);
            }
            Number::Double(number) => {
                self.add_double(number);
                self.widen(ElementType::Double);
            }
            Number::Decimal128(number) => {
                self.decimals = self.decimals.add(number);
                self.widen(ElementType::Decimal128);
            }
        }
    }

    /// Adds a term so many times. Integers are multiplied.
    pub fn add_times(&mut self, number: Number, times: u64) {
        match number {
            Number::Int32(number) => self.integers += i128::from(number) * i128::from(times),
            Number::Int64(number) => {
                self.integers += i128::from(number) * i128::from(times);
                self.widen(ElementType::Int64);
            }
            Number::Double(_) | Number::Decimal128(_) => (0..times).for_each(|_| self.add(number)),
        }
    }

    /// Adds all terms of another sum.
    pub fn merge(&mut self, other: &NumberSum) {
        self.integers += other.integers;
        self.add_double(other.double);
        self.add_double(other.correction);
        // The others have none. The addition of a decimal zero would cost more than all the rest.
        if other.widest == ElementType::Decimal128 {
            self.decimals = self.decimals.add(other.decimals);
        }
        self.widen(other.widest);
    }

    /// The sum as bytes, from which [`from_bytes`](NumberSum::from_bytes) makes the same sum.
    pub fn to_bytes(&self) -> [u8; NumberSum::BYTES] {
        let mut bytes = [0; NumberSum::BYTES];
        bytes[..16].copy_from_slice(&self.integers.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.double.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.correction.to_le_bytes());
        bytes[32..48].copy_from_slice(&self.decimals.to_le_bytes());
        bytes[48] = Self::rank(self.widest);
        bytes
    }

    /// The sum that [`to_bytes`](NumberSum::to_bytes) gave; `None` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (integers, rest) = bytes.split_first_chunk()?;
        let (double, rest) = rest.split_first_chunk()?;
        let (correction, rest) = rest.split_first_chunk()?;
        let (decimals, rest) = rest.split_first_chunk()?;
        let widest = match rest {
            [0] => ElementType::Int32,
            [1] => ElementType::Int64,
            [2] => ElementType::Double,
            [3] => ElementType::Decimal128,
            _ => return None,
        };
        Some(Self {
            integers: i128::from_le_bytes(*integers),
            double: f64::from_le_bytes(*double),
            correction: f64::from_le_bytes(*correction),
            decimals: Decimal128::from_le_bytes(*decimals),
            widest,
        })
    }

    fn widen(&mut self, kind: ElementType) {
        if Self::rank(kind) > Self::rank(self.widest) {
            self.widest = kind;
        }
    }

    fn rank(kind: ElementType) -> u8 {
        match kind {
            ElementType::Int32 => 0,
            ElementType::Int64 => 1,
            ElementType::Double => 2,
            _ => 3,
        }
    }

    /// Knuth's two-sum: `double + correction` stays the exact sum of what was added, but for the correction's
    /// own rounding.
    fn add_double(&mut self, number: f64) {
        let sum = self.double + number;
        let added = sum - self.double;
        let error = (self.double - (sum - added)) + (number - added);
        self.double = sum;
        // Once the sum is infinite or NaN, a correction of NaN must not creep in.
        if error.is_finite() {
            self.correction += error;
        }
    }

    /// Doubles and integers together.
    fn binary_total(&self) -> NumberSum {
        let mut total = *self;
        if self.integers == 0 {
            return total;
        }
        // The integers as two doubles. The rest that the first leaves out is below 2^74, and has few enough
        // bits for the second. It goes first: beside the great one the sum has no digits left for both.
        let high = self.integers as f64;
        total.add_double((self.integers - high as i128) as f64);
        total.add_double(high);
        total
    }

    fn binary_f64(&self) -> f64 {
        let total = self.binary_total();
        if total.double.is_finite() { total.double + total.correction } else { total.double }
    }

    fn decimal_total(&self) -> Decimal128 {
        let binary = if self.double == 0.0 && self.correction == 0.0 {
            integer_decimal(self.integers)
        } else {
            let mut total = self.binary_total();
            // As much as the first double can hold goes into it, as MongoDB does: the digits depend on it.
            let rest = std::mem::take(&mut total.correction);
            total.add_double(rest);
            let high = Decimal128::from_f64(total.double, DoubleDigits::ThirtyFour);
            high.add(Decimal128::from_f64(total.correction, DoubleDigits::ThirtyFour))
        };
        self.decimals.add(binary)
    }

    /// The sum in the widest type of its terms; integers beyond that type in the next that holds them, at
    /// last a double.
    pub fn total(&self) -> Number {
        match self.widest {
            ElementType::Decimal128 => Number::Decimal128(self.decimal_total()),
            ElementType::Double => Number::Double(self.binary_f64()),
            _ => match (i32::try_from(self.integers), i64::try_from(self.integers)) {
                (Ok(number), _) if self.widest == ElementType::Int32 => Number::Int32(number),
                (_, Ok(number)) => Number::Int64(number),
                _ => Number::Double(self.integers as f64),
            },
        }
    }

    /// The sum divided by a count that is not zero: a double, or a decimal if a term was.
    pub fn mean(&self, count: i64) -> Number {
        match self.widest {
            ElementType::Decimal128 => {
                Number::Decimal128(self.decimal_total().divide(Decimal128::from(count)))
            }
            _ => Number::Double(self.binary_f64() / count as f64),
        }
    }
}

fn integer_decimal(number: i128) -> Decimal128 {
    let (high, low) = (number / 1_000_000_000_000, number % 1_000_000_000_000);
    match (i64::try_from(high), i64::try_from(low)) {
        (Ok(high), Ok(low)) => {
            Decimal128::from(high).multiply(Decimal128::from(1_000_000_000_000i64)).add(Decimal128::from(low))
        }
        _ => Decimal128::from_f64(number as f64, DoubleDigits::ThirtyFour),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: &[Number]) -> NumberSum {
        let mut sum = NumberSum::new();
        numbers.iter().for_each(|number| sum.add(*number));
        sum
    }

    fn total(numbers: &[Number]) -> String {
        format!("{:?}", sum(numbers).total().to_value())
    }

    /// The answers are the server's.
    #[test]
    fn totals_have_the_type_and_the_digits_of_the_server() {
        use Number::{Decimal128 as Decimal, Double, Int32, Int64};
        let (max, min) = (Int64(i64::MAX), Int64(i64::MIN));
        let one = Decimal(Decimal128::from(1));
        for (numbers, expected) in [
            (&[][..], "Int32(0)"),
            (&[Int32(1), Int64(2)], "Int64(3)"),
            (&[Int32(i32::MAX), Int32(1)], "Int64(2147483648)"),
            (&[max, max], "Double(1.8446744073709552e19)"),
            (&[max, max, min], "Int64(9223372036854775806)"),
            (&[max, max, Double(0.5)], "Double(1.8446744073709552e19)"),
            (&[Double(0.1), Double(0.2), Double(0.3)], "Double(0.6)"),
            (&[Double(1e308), Double(1e308), Double(-1e308)], "Double(inf)"),
            (&[Double(f64::INFINITY), Double(f64::NEG_INFINITY)], "Double(NaN)"),
            (&[one, Double(0.1)], "Decimal128(Decimal128(1.100000000000000005551115123125783))"),
            (&[one, Double(0.1), Double(0.2)], "Decimal128(Decimal128(1.300000000000000016653345369377348))"),
            (&[one, max], "Decimal128(Decimal128(9223372036854775808))"),
            (
                &[Int32(1), Decimal(Decimal128::ZERO), Double(0.1)],
                "Decimal128(Decimal128(1.100000000000000005551115123125782))",
            ),
            (
                &[
                    Decimal(Decimal128::ZERO),
                    Int64((1 << 53) + 1),
                    Double(0.1),
                    Double(0.1),
                    Double(0.1),
                    Double(0.1),
                ],
                "Decimal128(Decimal128(9007199254740993.400000000000000022))",
            ),
        ] {
            assert_eq!(total(numbers), expected, "{numbers:?}");
        }
    }

    #[test]
    fn merged_sums_are_the_sum_of_all_terms() {
        use Number::{Double, Int64};
        let mut left = sum(&[Double(0.1), Int64(5)]);
        left.merge(&sum(&[Double(0.2), Double(0.3)]));
        assert_eq!(format!("{:?}", left.total()), "Double(5.6)");
        assert_eq!(format!("{:?}", left.mean(2)), "Double(2.8)");
    }
}
