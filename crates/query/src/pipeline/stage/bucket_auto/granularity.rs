//! Granularities: the series of preferred numbers to which `$bucketAuto` rounds its boundaries.
//!
//! A series is given for one decade, and continues in all others: Renard's R5 to R80 (ISO 3), E6 to E192 of
//! IEC 60063, 1-2-5, and the powers of two. As in MongoDB, R80 has only the numbers that R40 lacks.
//!
//! Rounding goes to the next number of the series that is greater, or less, and never the number itself. Zero
//! stays zero.

use std::cmp::Ordering;

use pando_document::{Decimal128, DoubleDigits, Number, RawValue, compare_values};

use crate::expression::decimal_power;
use crate::literal::Literal;

/// Renard's series of five numbers.
static R5: [f64; 5] = [10.0, 16.0, 25.0, 40.0, 63.0];
/// Renard's series of ten numbers.
static R10: [f64; 10] = [100.0, 125.0, 160.0, 200.0, 250.0, 315.0, 400.0, 500.0, 630.0, 800.0];
/// Renard's series of 20 numbers.
static R20: [f64; 20] = [
    100.0, 112.0, 125.0, 140.0, 160.0, 180.0, 200.0, 224.0, 250.0, 280.0, 315.0, 355.0, 400.0, 450.0, 500.0,
    560.0, 630.0, 710.0, 800.0, 900.0,
];
/// Renard's series of 40 numbers, without 335, which MongoDB's lacks.
static R40: [f64; 39] = [
    100.0, 106.0, 112.0, 118.0, 125.0, 132.0, 140.0, 150.0, 160.0, 170.0, 180.0, 190.0, 200.0, 212.0, 224.0,
    236.0, 250.0, 265.0, 280.0, 300.0, 315.0, 355.0, 375.0, 400.0, 425.0, 450.0, 475.0, 500.0, 530.0, 560.0,
    600.0, 630.0, 670.0, 710.0, 750.0, 800.0, 850.0, 900.0, 950.0,
];
/// The 40 numbers of Renard's series of 80 that are not in the one of 40.
static R80: [f64; 40] = [
    103.0, 109.0, 115.0, 122.0, 128.0, 136.0, 145.0, 155.0, 165.0, 175.0, 185.0, 195.0, 206.0, 218.0, 230.0,
    243.0, 258.0, 272.0, 290.0, 307.0, 325.0, 345.0, 365.0, 387.0, 412.0, 437.0, 462.0, 487.0, 515.0, 545.0,
    575.0, 615.0, 650.0, 690.0, 730.0, 775.0, 825.0, 875.0, 925.0, 975.0,
];
/// The series of coins.
static ONE_TWO_FIVE: [f64; 3] = [10.0, 20.0, 50.0];
/// The E series of 24 numbers; those of 12 and 6 are parts of it.
static E24: [f64; 24] = [
    10.0, 11.0, 12.0, 13.0, 15.0, 16.0, 18.0, 20.0, 22.0, 24.0, 27.0, 30.0, 33.0, 36.0, 39.0, 43.0, 47.0,
    51.0, 56.0, 62.0, 68.0, 75.0, 82.0, 91.0,
];
/// The E series of 192 numbers; those of 96 and 48 are parts of it.
static E192: [f64; 192] = [
    100.0, 101.0, 102.0, 104.0, 105.0, 106.0, 107.0, 109.0, 110.0, 111.0, 113.0, 114.0, 115.0, 117.0, 118.0,
    120.0, 121.0, 123.0, 124.0, 126.0, 127.0, 129.0, 130.0, 132.0, 133.0, 135.0, 137.0, 138.0, 140.0, 142.0,
    143.0, 145.0, 147.0, 149.0, 150.0, 152.0, 154.0, 156.0, 158.0, 160.0, 162.0, 164.0, 165.0, 167.0, 169.0,
    172.0, 174.0, 176.0, 178.0, 180.0, 182.0, 184.0, 187.0, 189.0, 191.0, 193.0, 196.0, 198.0, 200.0, 203.0,
    205.0, 208.0, 210.0, 213.0, 215.0, 218.0, 221.0, 223.0, 226.0, 229.0, 232.0, 234.0, 237.0, 240.0, 243.0,
    246.0, 249.0, 252.0, 255.0, 258.0, 261.0, 264.0, 267.0, 271.0, 274.0, 277.0, 280.0, 284.0, 287.0, 291.0,
    294.0, 298.0, 301.0, 305.0, 309.0, 312.0, 316.0, 320.0, 324.0, 328.0, 332.0, 336.0, 340.0, 344.0, 348.0,
    352.0, 357.0, 361.0, 365.0, 370.0, 374.0, 379.0, 383.0, 388.0, 392.0, 397.0, 402.0, 407.0, 412.0, 417.0,
    422.0, 427.0, 432.0, 437.0, 442.0, 448.0, 453.0, 459.0, 464.0, 470.0, 475.0, 481.0, 487.0, 493.0, 499.0,
    505.0, 511.0, 517.0, 523.0, 530.0, 536.0, 542.0, 549.0, 556.0, 562.0, 569.0, 576.0, 583.0, 590.0, 597.0,
    604.0, 612.0, 619.0, 626.0, 634.0, 642.0, 649.0, 657.0, 665.0, 673.0, 681.0, 690.0, 698.0, 706.0, 715.0,
    723.0, 732.0, 741.0, 750.0, 759.0, 768.0, 777.0, 787.0, 796.0, 806.0, 816.0, 825.0, 835.0, 845.0, 856.0,
    866.0, 876.0, 887.0, 898.0, 909.0, 920.0, 931.0, 942.0, 953.0, 965.0, 976.0, 988.0,
];

/// A series of preferred numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Granularity {
    /// One decade.
    Decade(Vec<f64>),
    PowersOfTwo,
}

/// The direction of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Towards {
    Greater,
    Less,
}

impl Granularity {
    /// The granularity of a name.
    pub fn of(name: &str) -> Option<Granularity> {
        let every = |step: usize, series: &[f64]| series.iter().copied().step_by(step).collect();
        Some(Granularity::Decade(match name {
            "R5" => R5.to_vec(),
            "R10" => R10.to_vec(),
            "R20" => R20.to_vec(),
            "R40" => R40.to_vec(),
            "R80" => R80.to_vec(),
            "1-2-5" => ONE_TWO_FIVE.to_vec(),
            "E6" => every(4, &E24),
            "E12" => every(2, &E24),
            "E24" => E24.to_vec(),
            "E48" => every(4, &E192),
            "E96" => every(2, &E192),
            "E192" => E192.to_vec(),
            "POWERSOF2" => return Some(Granularity::PowersOfTwo),
            _ => return None,
        }))
    }

    /// The next number of the series in a direction. The number is not negative, and no NaN.
    pub fn rounded(&self, value: RawValue<'_>, towards: Towards) -> Literal {
        let Some(number) = Number::from_value(value) else { return Literal::new(value) };
        let is_finite = match number {
            Number::Decimal128(decimal) => decimal.is_finite(),
            other => other.to_f64().is_finite(),
        };
        if number.is_zero() || !is_finite {
            return Literal::new(value);
        }
        let rounded = match (self, number) {
            (Granularity::Decade(series), Number::Decimal128(decimal)) => {
                let series: Vec<Decimal128> = series
                    .iter()
                    .map(|preferred| Decimal128::from_f64(*preferred, DoubleDigits::Fifteen))
                    .collect();
                Number::Decimal128(in_decades(&series, decimal, towards))
            }
            (Granularity::Decade(series), other) => {
                Number::Double(in_decades(series, other.to_f64(), towards))
            }
            (Granularity::PowersOfTwo, number) => power_of_two(number, towards),
        };
        Literal::new(rounded.to_raw())
    }
}

/// A number that a series consists of.
trait Preferred: Copy {
    fn one() -> Self;
    fn times(self, factor: Self) -> Self;
    fn tenfold(self) -> Self;
    fn tenth(self) -> Self;
    fn is_zero(self) -> bool;
    fn order(self, other: Self) -> Ordering;
}

impl Preferred for f64 {
    fn one() -> f64 {
        1.0
    }

    fn times(self, factor: f64) -> f64 {
        self * factor
    }

    fn tenfold(self) -> f64 {
        self * 10.0
    }

    fn tenth(self) -> f64 {
        self / 10.0
    }

    fn is_zero(self) -> bool {
        self == 0.0
    }

    fn order(self, other: f64) -> Ordering {
        self.total_cmp(&other)
    }
}

impl Preferred for Decimal128 {
    fn one() -> Decimal128 {
        Decimal128::from(1)
    }

    fn times(self, factor: Decimal128) -> Decimal128 {
        self.multiply(factor)
    }

    fn tenfold(self) -> Decimal128 {
        self.multiply(Decimal128::from(10))
    }

    fn tenth(self) -> Decimal128 {
        self.divide(Decimal128::from(10))
    }

    fn is_zero(self) -> bool {
        Decimal128::is_zero(self)
    }

    fn order(self, other: Decimal128) -> Ordering {
        compare_values(RawValue::Decimal128(self), RawValue::Decimal128(other))
    }
}

/// Finds the decade of a number by steps of ten, as MongoDB does: so the same digits are lost. A decade below
/// the least number of the type has the scale zero. Steps of ten lead never out of it, and the next number
/// that is less is zero.
fn in_decades<P: Preferred>(series: &[P], number: P, towards: Towards) -> P {
    let (Some(first), Some(last)) = (series.first(), series.last()) else { return number };
    let is_below = |preferred: P| match towards {
        // Below the next greater one, or at it.
        Towards::Greater => number.order(preferred) == Ordering::Less,
        Towards::Less => number.order(preferred) != Ordering::Greater,
    };
    let mut scale = P::one();
    match towards {
        Towards::Greater => {
            while !is_below(last.times(scale)) {
                scale = scale.tenfold();
            }
            while is_below(first.times(scale)) {
                let least = first.times(scale);
                scale = scale.tenth();
                if !is_below(last.times(scale)) {
                    return least;
                }
            }
        }
        Towards::Less => {
            while is_below(first.times(scale)) {
                scale = scale.tenth();
            }
            while !is_below(last.times(scale)) {
                let greatest = last.times(scale);
                scale = scale.tenfold();
                if scale.is_zero() || is_below(first.times(scale)) {
                    return greatest;
                }
            }
        }
    }
    let at = series.partition_point(|preferred| !is_below(preferred.times(scale)));
    let at = if towards == Towards::Less { at.saturating_sub(1) } else { at.min(series.len() - 1) };
    series[at].times(scale)
}

fn power_of_two(number: Number, towards: Towards) -> Number {
    /// The greatest power that an int64 holds.
    const INTEGER_MAX: i32 = 62;
    let exponent = match number {
        Number::Decimal128(decimal) => return Number::Decimal128(decimal_power_of_two(decimal, towards)),
        Number::Double(double) => {
            let floor = exponent_of(double);
            match towards {
                Towards::Greater => floor + 1,
                Towards::Less if two_to(floor) == double => floor - 1,
                Towards::Less => floor,
            }
        }
        integer => {
            let whole = integer.to_i64_exact().unwrap_or(1).unsigned_abs().max(1);
            let floor = i32::try_from(whole.ilog2()).unwrap_or(INTEGER_MAX);
            match towards {
                Towards::Greater => floor + 1,
                Towards::Less if whole.is_power_of_two() => floor - 1,
                Towards::Less => floor,
            }
        }
    };
    match exponent {
        0..=INTEGER_MAX => {
            let power = 1_i64 << exponent;
            i32::try_from(power).map_or(Number::Int64(power), Number::Int32)
        }
        _ => Number::Double(two_to(exponent)),
    }
}

/// The exponent of the greatest power of two that is not above a positive number.
fn exponent_of(number: f64) -> i32 {
    let mut exponent = number.log2().floor() as i32;
    while two_to(exponent) > number {
        exponent -= 1;
    }
    while two_to(exponent + 1) <= number {
        exponent += 1;
    }
    exponent
}

fn two_to(exponent: i32) -> f64 {
    // In two steps, since the powers below the normal numbers have no reciprocal.
    if exponent < -1000 { 2_f64.powi(exponent + 100) * 2_f64.powi(-100) } else { 2_f64.powi(exponent) }
}

fn decimal_power_of_two(number: Decimal128, towards: Towards) -> Decimal128 {
    let power = |exponent: i64| decimal_power(Decimal128::from(2), Decimal128::from(exponent));
    // Powers near the least number may be rounded to the number itself, so a next exponent does not suffice.
    let is_beyond = |exponent: i64| match (power(exponent).order(number), towards) {
        (Ordering::Greater, _) | (Ordering::Equal, Towards::Less) => true,
        (Ordering::Less, _) | (Ordering::Equal, Towards::Greater) => false,
    };
    // 10^6145 is less than 2^20414.
    let (mut low, mut high) = (-20_600_i64, 20_600_i64);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if is_beyond(middle) { high = middle } else { low = middle }
    }
    match towards {
        Towards::Greater => power(high),
        Towards::Less => power(low),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(name: &str, value: RawValue<'_>) -> [String; 2] {
        let granularity = Granularity::of(name).expect("a name");
        [Towards::Less, Towards::Greater]
            .map(|towards| crate::shell_text::value_text(granularity.rounded(value, towards).raw()))
    }

    /// Answers of MongoDB 6.0.27.
    #[test]
    fn numbers_are_rounded_as_in_mongodb() {
        for (name, value, expected) in [
            ("R5", RawValue::Int32(5), ["4.0", "6.300000000000001"]),
            ("R5", RawValue::Int32(1), ["0.63", "1.6"]),
            ("R5", RawValue::Double(1e-300), ["6.300000000000014e-301", "1.000000000000002e-300"]),
            ("R5", RawValue::Int64(i64::MAX), ["6.3e+18", "1e+19.0"]),
            ("E12", RawValue::Int32(5), ["4.7", "5.600000000000001"]),
            ("POWERSOF2", RawValue::Int32(1), ["0.5", "2"]),
            ("POWERSOF2", RawValue::Int32(16), ["8", "32"]),
            ("POWERSOF2", RawValue::Double(0.001), ["0.0009765625", "0.001953125"]),
            ("POWERSOF2", RawValue::Double(1e-300), ["7.466108948025751e-301", "1.49322178960515e-300"]),
            ("R10", RawValue::Double(0.0), ["0.0", "0.0"]),
        ] {
            let [less, greater] = rounded(name, value);
            assert_eq!([less.as_str(), greater.as_str()], expected, "{name} of {value:?}");
        }
    }

    #[test]
    fn the_least_and_the_greatest_numbers_are_rounded() {
        let decimal = |text: &str| text.parse::<Decimal128>().expect("a decimal");
        let compared = |one: &Literal, other: RawValue<'_>| compare_values(one.raw(), other);
        for name in ["R5", "R80", "1-2-5", "E6", "E192", "POWERSOF2"] {
            let granularity = Granularity::of(name).expect("a name");
            for value in [
                RawValue::Double(5e-324),
                RawValue::Double(1e-322),
                RawValue::Double(f64::MIN_POSITIVE),
                RawValue::Double(f64::MAX),
                RawValue::Decimal128(decimal("1E-6176")),
                RawValue::Decimal128(decimal("9.99E-6170")),
                RawValue::Decimal128(decimal("9.999E+6144")),
            ] {
                let less = granularity.rounded(value, Towards::Less);
                assert_eq!(compared(&less, value), Ordering::Less, "{name}: {less:?} and {value:?}");
                let more = granularity.rounded(value, Towards::Greater);
                assert_eq!(compared(&more, value), Ordering::Greater, "{name}: {more:?} and {value:?}");
            }
        }
        assert_eq!(rounded("R5", RawValue::Double(5e-324))[0], "0.0");
    }

    #[test]
    fn every_series_ascends() {
        for name in ["R5", "R10", "R20", "R40", "R80", "1-2-5", "E6", "E12", "E24", "E48", "E96", "E192"] {
            let Some(Granularity::Decade(series)) = Granularity::of(name) else { panic!("{name}") };
            assert!(series.windows(2).all(|pair| pair[0] < pair[1]), "{name}");
            assert!(series[series.len() - 1] < 10.0 * series[0], "{name}");
        }
        assert_eq!(Granularity::of("R7"), None);
    }
}
