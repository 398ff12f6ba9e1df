//! Arithmetic of decimals as IEEE 754-2008 defines it, with 34 digits, ties to even.
//!
//! Every operation has an exact result in mind, `(coefficient, exponent)` with a coefficient of any length,
//! which [`rounded`] brings into range. An exact result keeps the exponent that the operation prefers (the
//! lesser one of a sum, the sum of a product's, …). If there is no room for its digits, it takes the nearest
//! exponent. An inexact result has all 34 digits.
//!
//! Coefficients that need no more than 128 bits on the way never become big integers.
//!
//! Not here: functions that are not algebraic (`exp`, `ln`, `sin`, …).

use num_bigint::BigUint;

use crate::decimal128::{COEFFICIENT_MAX, EXPONENT_MAX, EXPONENT_MIN};
use crate::{Decimal128, DecimalParts, RawValue};

/// Digits of a decimal.
const DIGITS: i32 = 34;
/// Exponents further apart than this count as infinitely far apart. The smaller number only decides on which
/// side of the greater one the sum lies.
const FAR: i32 = 100;

/// Where the digits go that are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, from half-way to an even last digit.
    HalfEven,
    /// Away.
    TowardZero,
    /// Towards minus infinity.
    Floor,
    /// Towards infinity.
    Ceiling,
}

/// Whether an exact result lies above its digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remainder {
    Zero,
    Positive,
}

/// A finite number on the way to a result.
#[derive(Clone, Debug)]
struct Exact {
    negative: bool,
    coefficient: BigUint,
    exponent: i32,
}

fn ten_to(power: u32) -> BigUint {
    match 10u128.checked_pow(power) {
        Some(small) => BigUint::from(small),
        None => BigUint::from(10u32).pow(power),
    }
}

fn digits(number: &BigUint) -> i32 {
    let bits = number.bits();
    if bits == 0 {
        return 1;
    }
    // log10(2) from below: at most one too few for any length that occurs.
    let least = ((bits - 1) * 1233 / 4096) as u32;
    let mut digits = least;
    let mut limit = ten_to(least);
    while *number >= limit {
        digits += 1;
        limit *= 10u32;
    }
    digits as i32
}

fn finite(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
    Decimal128::from_parts(DecimalParts::Finite { negative, coefficient, exponent })
}

fn infinity(negative: bool) -> Decimal128 {
    Decimal128::from_parts(DecimalParts::Infinity { negative })
}

fn to_u128(number: &BigUint) -> u128 {
    u128::try_from(number).expect("a coefficient that was cut to 34 digits has at most 113 bits")
}

/// Divides by `10^drop` and rounds.
fn drop_digits(
    coefficient: &BigUint,
    drop: i32,
    remainder: Remainder,
    negative: bool,
    rounding: Rounding,
) -> BigUint {
    let power = ten_to(drop.unsigned_abs());
    let kept = coefficient / &power;
    let rest = coefficient - &kept * &power;
    let inexact = rest != BigUint::ZERO || remainder == Remainder::Positive;
    let up = match rounding {
        Rounding::TowardZero => false,
        Rounding::Floor => negative && inexact,
        Rounding::Ceiling => !negative && inexact,
        Rounding::HalfEven => match (rest * 2u32).cmp(&power) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => remainder == Remainder::Positive || kept.bit(0),
        },
    };
    if up { kept + 1u32 } else { kept }
}

/// The decimal nearest to an exact number. Where there is a remainder, the coefficient must have more than 34
/// digits.
fn rounded(exact: Exact, remainder: Remainder) -> Decimal128 {
    let Exact { negative, mut coefficient, mut exponent } = exact;
    let drop = (digits(&coefficient) - DIGITS).max(EXPONENT_MIN - exponent).max(0);
    if drop > 0 {
        if drop > digits(&coefficient) {
            return finite(negative, 0, EXPONENT_MIN);
        }
        coefficient = drop_digits(&coefficient, drop, remainder, negative, Rounding::HalfEven);
        exponent += drop;
    }
    let mut coefficient = to_u128(&coefficient);
    if coefficient > COEFFICIENT_MAX {
        coefficient /= 10;
        exponent += 1;
    }
    fold_down(negative, coefficient, exponent)
}

/// A coefficient that fits, and an exponent that may be too great.
fn fold_down(negative: bool, mut coefficient: u128, mut exponent: i32) -> Decimal128 {
    if coefficient == 0 {
        exponent = exponent.min(EXPONENT_MAX);
    }
    while exponent > EXPONENT_MAX {
        coefficient *= 10;
        exponent -= 1;
        if coefficient > COEFFICIENT_MAX {
            return infinity(negative);
        }
    }
    finite(negative, coefficient, exponent)
}

/// Takes zeros off the coefficient's end until the exponent is the preferred one.
fn towards_exponent(exact: &mut Exact, preferred: i32) {
    while exact.exponent < preferred && &exact.coefficient % 10u32 == BigUint::ZERO {
        exact.coefficient /= 10u32;
        exact.exponent += 1;
    }
}

/// Sign of a product or quotient.
fn signs_differ(a: DecimalParts, b: DecimalParts) -> bool {
    is_negative(a) != is_negative(b)
}

fn is_negative(parts: DecimalParts) -> bool {
    matches!(parts, DecimalParts::Finite { negative: true, .. } | DecimalParts::Infinity { negative: true })
}

impl Decimal128 {
    /// The number with the other sign. NaN stays.
    pub fn negated(self) -> Self {
        Self::from_parts(match self.parts() {
            DecimalParts::NaN => DecimalParts::NaN,
            DecimalParts::Infinity { negative } => DecimalParts::Infinity { negative: !negative },
            DecimalParts::Finite { negative, coefficient, exponent } => {
                DecimalParts::Finite { negative: !negative, coefficient, exponent }
            }
        })
    }

    /// The magnitude.
    pub fn magnitude(self) -> Self {
        if is_negative(self.parts()) { self.negated() } else { self }
    }

    /// Whether the sign is minus; of zero too.
    pub fn is_negative(self) -> bool {
        is_negative(self.parts())
    }

    /// Whether it is neither infinite nor NaN.
    pub fn is_finite(self) -> bool {
        matches!(self.parts(), DecimalParts::Finite { .. })
    }

    /// The sum.
    #[expect(
        clippy::should_implement_trait,
        reason = "an operator would not say that it rounds, nor stand beside `modulo` and `square_root`"
    )]
    pub fn add(self, other: Self) -> Self {
        use DecimalParts::{Finite, Infinity, NaN};
        match (self.parts(), other.parts()) {
            (NaN, _) | (_, NaN) => Self::NAN,
            (Infinity { negative: a }, Infinity { negative: b }) if a != b => Self::NAN,
            (Infinity { negative }, _) | (_, Infinity { negative }) => infinity(negative),
            (
                Finite { negative: a_negative, coefficient: a, exponent: a_exponent },
                Finite { negative: b_negative, coefficient: b, exponent: b_exponent },
            ) => {
                let a = Term { negative: a_negative, coefficient: a, exponent: a_exponent };
                let b = Term { negative: b_negative, coefficient: b, exponent: b_exponent };
                if a.exponent >= b.exponent { add_finite(a, b) } else { add_finite(b, a) }
            }
        }
    }

    /// The difference.
    pub fn subtract(self, other: Self) -> Self {
        self.add(other.negated())
    }

    /// The product.
    pub fn multiply(self, other: Self) -> Self {
        use DecimalParts::{Finite, Infinity, NaN};
        let (a, b) = (self.parts(), other.parts());
        let negative = signs_differ(a, b);
        match (a, b) {
            (NaN, _) | (_, NaN) => Self::NAN,
            (Infinity { .. }, Finite { coefficient: 0, .. })
            | (Finite { coefficient: 0, .. }, Infinity { .. }) => Self::NAN,
            (Infinity { .. }, _) | (_, Infinity { .. }) => infinity(negative),
            (
                Finite { coefficient: a, exponent: a_exponent, .. },
                Finite { coefficient: b, exponent: b_exponent, .. },
            ) => {
                let exponent = a_exponent + b_exponent;
                match a.checked_mul(b).filter(|product| *product <= COEFFICIENT_MAX) {
                    Some(product) if exponent >= EXPONENT_MIN => fold_down(negative, product, exponent),
                    _ => {
                        let coefficient = BigUint::from(a) * b;
                        rounded(Exact { negative, coefficient, exponent }, Remainder::Zero)
                    }
                }
            }
        }
    }

    /// The quotient; by zero infinite, or NaN of zero.
    pub fn divide(self, other: Self) -> Self {
        use DecimalParts::{Finite, Infinity, NaN};
        let (a, b) = (self.parts(), other.parts());
        let negative = signs_differ(a, b);
        match (a, b) {
            (NaN, _) | (_, NaN) | (Infinity { .. }, Infinity { .. }) => Self::NAN,
            (Finite { coefficient: 0, .. }, Finite { coefficient: 0, .. }) => Self::NAN,
            (Infinity { .. }, _) | (_, Finite { coefficient: 0, .. }) => infinity(negative),
            (_, Infinity { .. }) => finite(negative, 0, EXPONENT_MIN),
            (
                Finite { coefficient: a, exponent: a_exponent, .. },
                Finite { coefficient: b, exponent: b_exponent, .. },
            ) => divide_finite(negative, (a, a_exponent), (b, b_exponent)),
        }
    }

    /// Remainder of a division whose quotient is cut to a whole number; it has the dividend's sign. Exact.
    /// NaN of an infinite dividend or a zero divisor.
    pub fn modulo(self, other: Self) -> Self {
        use DecimalParts::{Finite, Infinity, NaN};
        match (self.parts(), other.parts()) {
            (NaN, _) | (_, NaN) | (Infinity { .. }, _) | (_, Finite { coefficient: 0, .. }) => Self::NAN,
            (_, Infinity { .. }) => self,
            (
                Finite { negative, coefficient: a, exponent: a_exponent },
                Finite { coefficient: b, exponent: b_exponent, .. },
            ) => {
                let apart = a_exponent.abs_diff(b_exponent);
                if a_exponent >= b_exponent {
                    let scaled = BigUint::from(10u32).modpow(&BigUint::from(apart), &BigUint::from(b));
                    let rest = BigUint::from(a) * scaled % b;
                    return finite(negative, to_u128(&rest), b_exponent);
                }
                // Where the divisor does not fit, it is greater than the dividend.
                let divisor = 10u128.checked_pow(apart).and_then(|power| power.checked_mul(b));
                finite(negative, divisor.map_or(a, |divisor| a % divisor), a_exponent)
            }
        }
    }

    /// The square root, NaN of negative numbers.
    pub fn square_root(self) -> Self {
        let (negative, coefficient, exponent) = match self.parts() {
            DecimalParts::NaN | DecimalParts::Infinity { negative: true } => return Self::NAN,
            DecimalParts::Infinity { negative: false } => return self,
            DecimalParts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        let preferred = exponent.div_euclid(2);
        if coefficient == 0 {
            return finite(negative, 0, preferred);
        }
        if negative {
            return Self::NAN;
        }
        // 36 more digits give a root of 35 or more, however short the number.
        let scale = 36;
        let even = ten_to(exponent.rem_euclid(2).unsigned_abs() + 2 * scale as u32);
        let square = BigUint::from(coefficient) * even;
        let root = square.sqrt();
        let remainder = if &root * &root == square { Remainder::Zero } else { Remainder::Positive };
        let mut exact = Exact { negative, coefficient: root, exponent: preferred - scale };
        if remainder == Remainder::Zero {
            towards_exponent(&mut exact, preferred);
        }
        rounded(exact, remainder)
    }

    /// The number with this exponent: digits behind it are rounded, zeros are added as there is room for
    /// them. Numbers that are not finite stay.
    pub fn with_exponent(self, exponent: i32, rounding: Rounding) -> Self {
        let DecimalParts::Finite { negative, coefficient, exponent: current } = self.parts() else {
            return self;
        };
        let target = exponent.clamp(EXPONENT_MIN, EXPONENT_MAX);
        if target >= current {
            // A coefficient has 34 digits; one more place than that gives zero or one in every rounding.
            let drop = (target - current).min(DIGITS + 1);
            let coefficient = BigUint::from(coefficient);
            let kept = drop_digits(&coefficient, drop, Remainder::Zero, negative, rounding);
            return finite(negative, to_u128(&kept), target);
        }
        if coefficient == 0 {
            return finite(negative, 0, target);
        }
        let (mut coefficient, mut current) = (coefficient, current);
        while current > target && coefficient * 10 <= COEFFICIENT_MAX {
            coefficient *= 10;
            current -= 1;
        }
        finite(negative, coefficient, current)
    }
}

/// A finite number of a sum.
struct Term {
    negative: bool,
    coefficient: u128,
    exponent: i32,
}

/// `a` has the greater exponent, or the same.
fn add_finite(a: Term, b: Term) -> Decimal128 {
    let Term { negative: a_negative, coefficient: a, exponent: a_exponent } = a;
    let Term { negative: b_negative, coefficient: b, exponent: b_exponent } = b;
    if a == 0 && b == 0 {
        return finite(a_negative && b_negative, 0, b_exponent);
    }
    let (b, b_exponent) = match a_exponent - b_exponent {
        far if far > FAR && a != 0 => (u128::from(b != 0), a_exponent - FAR),
        _ if a == 0 => return finite(b_negative, b, b_exponent),
        _ => (b, b_exponent),
    };
    let apart = (a_exponent - b_exponent).unsigned_abs();
    let small =
        10u128.checked_pow(apart).and_then(|power| power.checked_mul(a)).filter(|a| *a <= u128::MAX / 2);
    if let Some(a) = small {
        let (negative, sum) = if a_negative == b_negative {
            (a_negative, a + b)
        } else if a >= b {
            (a_negative && a != b, a - b)
        } else {
            (b_negative, b - a)
        };
        if sum <= COEFFICIENT_MAX && b_exponent >= EXPONENT_MIN {
            return finite(negative, sum, b_exponent);
        }
        let exact = Exact { negative, coefficient: BigUint::from(sum), exponent: b_exponent };
        return rounded(exact, Remainder::Zero);
    }
    // More than 128 bits, so `a` is the greater one.
    let a = BigUint::from(a) * ten_to(apart);
    let coefficient = if a_negative == b_negative { a + b } else { a - b };
    rounded(Exact { negative: a_negative, coefficient, exponent: b_exponent }, Remainder::Zero)
}

/// Neither is infinite and the divisor is not zero.
fn divide_finite(negative: bool, a: (u128, i32), b: (u128, i32)) -> Decimal128 {
    let ((a, a_exponent), (b, b_exponent)) = (a, b);
    let preferred = a_exponent - b_exponent;
    if a == 0 {
        return fold_down(negative, 0, preferred.max(EXPONENT_MIN));
    }
    if a.is_multiple_of(b) && preferred >= EXPONENT_MIN {
        return fold_down(negative, a / b, preferred);
    }
    // Enough that the quotient has 35 digits or more.
    let scale = DIGITS + 1 + b.ilog10() as i32 - a.ilog10() as i32;
    let scale = scale.max(0);
    let dividend = BigUint::from(a) * ten_to(scale.unsigned_abs());
    let quotient = &dividend / b;
    let remainder = if &quotient * b == dividend { Remainder::Zero } else { Remainder::Positive };
    let mut exact = Exact { negative, coefficient: quotient, exponent: preferred - scale };
    if remainder == Remainder::Zero {
        towards_exponent(&mut exact, preferred);
    }
    rounded(exact, remainder)
}

/// How many digits of a double become decimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubleDigits {
    /// The digits that a double holds for sure, for the server's arithmetic and conversions. The result
    /// always has 15.
    Fifteen,
    /// The double's exact value as far as a decimal holds it: the server's sums. Where it is exact, there are
    /// no zeros at the end of a fraction.
    ThirtyFour,
}

impl Decimal128 {
    /// The decimal of a double.
    pub fn from_f64(number: f64, digits: DoubleDigits) -> Self {
        if number.is_nan() {
            return Self::NAN;
        }
        let negative = number.is_sign_negative();
        if number.is_infinite() {
            return infinity(negative);
        }
        if number == 0.0 {
            return finite(negative, 0, 0);
        }
        let behind_point = match digits {
            DoubleDigits::Fifteen => 14,
            DoubleDigits::ThirtyFour => 33,
        };
        let text = format!("{:.*e}", behind_point, number.abs());
        let (mantissa, exponent) = text.split_once('e').expect("this format always writes an exponent");
        let mantissa = mantissa.replace('.', "");
        let mut coefficient: u128 = mantissa.parse().expect("this format writes digits and a point");
        let exponent: i32 = exponent.parse().expect("this format writes a whole exponent");
        let mut exponent = exponent - behind_point as i32;
        let decimal = finite(negative, coefficient, exponent);
        if digits == DoubleDigits::Fifteen || !decimal.equals_f64(number) {
            return decimal;
        }
        while exponent < 0 && coefficient.is_multiple_of(10) {
            coefficient /= 10;
            exponent += 1;
        }
        finite(negative, coefficient, exponent)
    }

    fn equals_f64(self, number: f64) -> bool {
        crate::compare_values(RawValue::Decimal128(self), RawValue::Double(number)).is_eq()
    }
}

#[cfg(test)]
mod tests;
