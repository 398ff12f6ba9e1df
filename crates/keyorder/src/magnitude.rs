//! A number's magnitude, taken apart as the layout of numbers has it (see the crate's page).
//!
//! Any magnitude that is neither 0 nor infinite is a [`Size`] and a [`Rest`] of decimal digits. The size
//! holds everything that a double or an integer can have; only decimals have a rest. Two magnitudes with the
//! same size compare by their rests.

use std::cmp::Ordering;

use pando_document::{Decimal128, DecimalParts, RawValue, compare_values};

/// The first part of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Below 1: the bits of the double.
    Small(u64),
    /// From 1 to below 2^63.
    Whole {
        whole: u64,
        /// The fraction in units of 2^-64, cut off after [`group_bits`] bits.
        fraction: u64,
    },
    /// From 2^63: the bits of the double.
    Large(u64),
}

/// Decimal digits, each 0 to 9; the last is not 0. Empty if there is no rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    digits: [u8; Rest::DIGITS_MAX],
    count: usize,
    /// The places before the decimal point, where the size is not `Whole`.
    pub places: i32,
}

impl Rest {
    pub const DIGITS_MAX: usize = 34;
    pub const NONE: Rest = Rest { digits: [0; Self::DIGITS_MAX], count: 0, places: 0 };

    pub fn is_none(&self) -> bool {
        self.count == 0
    }

    pub fn digits(&self) -> &[u8] {
        &self.digits[..self.count]
    }

    /// Appends a digit; false if there is no room for it.
    pub fn push(&mut self, digit: u8) -> bool {
        if self.count == Self::DIGITS_MAX {
            return false;
        }
        self.digits[self.count] = digit;
        self.count += 1;
        true
    }

    pub fn drop_trailing_zeros(&mut self) {
        while self.count > 0 && self.digits[self.count - 1] == 0 {
            self.count -= 1;
        }
    }

    /// The lowest `count` digits of `number`, with leading zeros and without trailing ones.
    fn of(mut number: u128, count: u32, places: i32) -> Rest {
        let mut rest = Rest { count: count as usize, places, ..Self::NONE };
        for digit in rest.digits[..count as usize].iter_mut().rev() {
            *digit = (number % 10) as u8;
            number /= 10;
        }
        rest.drop_trailing_zeros();
        rest
    }
}

/// 2^63, where whole numbers end and doubles go on.
pub(crate) const WHOLE_END: u64 = 1 << 63;
const WHOLE_END_F64: f64 = 9_223_372_036_854_775_808.0;
/// 2^64, the unit of fractions.
const FRACTION_UNIT: f64 = 18_446_744_073_709_551_616.0;

/// How many bits of the fraction the groups hold at most, for a whole part with that many bits: all that a
/// double has.
#[inline]
pub(crate) fn group_bits(whole: u64) -> u32 {
    let whole_bits = 64 - whole.leading_zeros();
    53u32.saturating_sub(whole_bits).div_ceil(7) * 7
}

/// The size of a positive finite double.
#[inline]
pub(crate) fn size_of_f64(number: f64) -> Size {
    if number < 1.0 {
        return Size::Small(number.to_bits());
    }
    if number >= WHOLE_END_F64 {
        return Size::Large(number.to_bits());
    }
    let whole = number.trunc();
    // Exact: the fraction of a double from 1 has at most 52 bits behind the point.
    Size::Whole { whole: whole as u64, fraction: ((number - whole) * FRACTION_UNIT) as u64 }
}

/// A decimal's magnitude in shortest form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortest {
    /// Does not end with the digit 0.
    pub coefficient: u128,
    pub exponent: i32,
    /// How many zeros the number was written with at the end of its coefficient.
    pub zeros: u16,
}

impl Shortest {
    /// Of a coefficient that is not 0.
    pub fn of(mut coefficient: u128, mut exponent: i32) -> Self {
        let mut zeros = 0;
        while coefficient.is_multiple_of(10) {
            coefficient /= 10;
            exponent += 1;
            zeros += 1;
        }
        Self { coefficient, exponent, zeros }
    }

    /// Size and rest.
    pub fn magnitude(self) -> (Size, Rest) {
        let power = 10u128.checked_pow(self.exponent.unsigned_abs());
        if self.exponent >= 0 {
            let whole = power.and_then(|power| self.coefficient.checked_mul(power));
            if let Some(whole) =
                whole.and_then(|whole| u64::try_from(whole).ok()).filter(|whole| *whole < WHOLE_END)
            {
                return (Size::Whole { whole, fraction: 0 }, Rest::NONE);
            }
            return self.doubled();
        }
        let Some(power) = power else { return self.doubled() };
        match u64::try_from(self.coefficient / power) {
            Ok(whole) if (1..WHOLE_END).contains(&whole) => {
                let digits = Rest::of(self.coefficient % power, self.exponent.unsigned_abs(), 0);
                self.with_fraction(whole, digits)
            }
            _ => self.doubled(),
        }
    }

    /// From 1 to 2^63, with digits behind the point.
    fn with_fraction(self, whole: u64, digits: Rest) -> (Size, Rest) {
        if group_bits(whole) == 0 {
            return (Size::Whole { whole, fraction: 0 }, digits);
        }
        let (below, exact) = self.greatest_double_not_above();
        let rest = if exact == Ordering::Equal { Rest::NONE } else { digits };
        (size_of_f64(below), rest)
    }

    /// Below 1 or from 2^63.
    fn doubled(self) -> (Size, Rest) {
        let (below, exact) = self.greatest_double_not_above();
        let bits = below.to_bits();
        let size = if below < 1.0 { Size::Small(bits) } else { Size::Large(bits) };
        if exact == Ordering::Equal {
            return (size, Rest::NONE);
        }
        let digits = self.coefficient.ilog10() + 1;
        (size, Rest::of(self.coefficient, digits, digits as i32 + self.exponent))
    }

    /// The double, and how the number compares with it: equal or greater.
    fn greatest_double_not_above(self) -> (f64, Ordering) {
        let exact = Decimal128::from_parts(DecimalParts::Finite {
            negative: false,
            coefficient: self.coefficient * 10u128.pow(u32::from(self.zeros)),
            exponent: self.exponent - i32::from(self.zeros),
        });
        let order = |double| compare_values(RawValue::Decimal128(exact), RawValue::Double(double));
        let nearest = f64::from(exact);
        match order(nearest) {
            Ordering::Less => (nearest.next_down(), Ordering::Greater),
            order => (nearest, order),
        }
    }
}
