//! Arithmetic on Decimal128: the exact result, rounded half to even to 34 digits.
//!
//! A finite number is a signed integer times a power of ten. Sums and products are computed exactly in big integers and
//! rounded once; a quotient is computed to 34 digits and one more that remembers whether anything was left. The exponent
//! of an exact result is the *preferred* one of IEEE 754-2008: the lesser of both for sums, the sum for products, the
//! difference for quotients.
//!
//! A double becomes a decimal of 15 significant digits, as MongoDB does it: 1.1 is 1.10000000000000.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};
use pando_document::{Decimal128, DecimalParts};

const DIGITS_MAX: usize = 34;
const EXPONENT_MIN: i64 = -6176;
const EXPONENT_MAX: i64 = 6111;

/// A finite number in full: `value * 10^exponent`; zero keeps its sign apart.
#[derive(Clone, Debug)]
struct Exact {
    value: BigInt,
    exponent: i64,
    negative_zero: bool,
}

enum Kind {
    Finite(Exact),
    Infinity { negative: bool },
    NaN,
}

/// What to do with digits that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    HalfEven,
    TowardZero,
    Up,
    Down,
}

fn kind(number: Decimal128) -> Kind {
    match number.parts() {
        DecimalParts::NaN => Kind::NaN,
        DecimalParts::Infinity { negative } => Kind::Infinity { negative },
        DecimalParts::Finite { negative, coefficient, exponent } => {
            let sign = if negative { Sign::Minus } else { Sign::Plus };
            Kind::Finite(Exact {
                value: BigInt::from_biguint(sign, BigUint::from(coefficient)),
                exponent: i64::from(exponent),
                negative_zero: negative && coefficient == 0,
            })
        }
    }
}

fn infinity(negative: bool) -> Decimal128 {
    Decimal128::from_parts(DecimalParts::Infinity { negative })
}

pub(crate) fn add(a: Decimal128, b: Decimal128) -> Decimal128 {
    match (kind(a), kind(b)) {
        (Kind::NaN, _) | (_, Kind::NaN) => Decimal128::NAN,
        (Kind::Infinity { negative: x }, Kind::Infinity { negative: y }) if x != y => Decimal128::NAN,
        (Kind::Infinity { negative }, _) | (_, Kind::Infinity { negative }) => infinity(negative),
        (Kind::Finite(a), Kind::Finite(b)) => {
            let both_negative = a.negative_zero && b.negative_zero;
            let (a, b) = align(a, b);
            finish(
                Exact { value: a.value + b.value, exponent: a.exponent, negative_zero: both_negative },
                Rounding::HalfEven,
            )
        }
    }
}

/// Brings both to one exponent. Where they are so far apart that the lesser cannot show in 34 digits, it becomes a
/// trace that only decides the rounding.
fn align(a: Exact, b: Exact) -> (Exact, Exact) {
    if a.exponent < b.exponent {
        let (b, a) = align(b, a);
        return (a, b);
    }
    const FAR: i64 = 80;
    let gap = a.exponent - b.exponent;
    if gap <= FAR || a.value.sign() == Sign::NoSign {
        let a_scaled = if a.value.sign() == Sign::NoSign { a.value } else { a.value * power_of_ten(gap) };
        return (Exact { value: a_scaled, exponent: b.exponent, negative_zero: a.negative_zero }, b);
    }
    let exponent = a.exponent - FAR;
    let trace = match b.value.sign() {
        Sign::Minus => BigInt::from(-1),
        Sign::NoSign => BigInt::from(0),
        Sign::Plus => BigInt::from(1),
    };
    let a = Exact { value: a.value * power_of_ten(FAR), exponent, negative_zero: false };
    (a, Exact { value: trace, exponent, negative_zero: false })
}

pub(crate) fn negate(number: Decimal128) -> Decimal128 {
    match number.parts() {
        DecimalParts::NaN => Decimal128::NAN,
        DecimalParts::Infinity { negative } => infinity(!negative),
        DecimalParts::Finite { negative, coefficient, exponent } => {
            Decimal128::from_parts(DecimalParts::Finite { negative: !negative, coefficient, exponent })
        }
    }
}

pub(crate) fn absolute(number: Decimal128) -> Decimal128 {
    if is_negative(number) { negate(number) } else { number }
}

pub(crate) fn is_negative(number: Decimal128) -> bool {
    matches!(
        number.parts(),
        DecimalParts::Infinity { negative: true } | DecimalParts::Finite { negative: true, .. }
    )
}

pub(crate) fn is_infinite(number: Decimal128) -> bool {
    matches!(number.parts(), DecimalParts::Infinity { .. })
}

pub(crate) fn subtract(a: Decimal128, b: Decimal128) -> Decimal128 {
    add(a, negate(b))
}

pub(crate) fn multiply(a: Decimal128, b: Decimal128) -> Decimal128 {
    let negative = is_negative(a) != is_negative(b);
    match (kind(a), kind(b)) {
        (Kind::NaN, _) | (_, Kind::NaN) => Decimal128::NAN,
        (Kind::Infinity { .. }, Kind::Finite(x)) | (Kind::Finite(x), Kind::Infinity { .. })
            if x.value.sign() == Sign::NoSign =>
        {
            Decimal128::NAN
        }
        (Kind::Infinity { .. }, _) | (_, Kind::Infinity { .. }) => infinity(negative),
        (Kind::Finite(a), Kind::Finite(b)) => {
            let value = a.value * b.value;
            finish(
                Exact { value, exponent: a.exponent + b.exponent, negative_zero: negative },
                Rounding::HalfEven,
            )
        }
    }
}

pub(crate) fn divide(a: Decimal128, b: Decimal128) -> Decimal128 {
    let negative = is_negative(a) != is_negative(b);
    let (a, b) = match (kind(a), kind(b)) {
        (Kind::NaN, _) | (_, Kind::NaN) | (Kind::Infinity { .. }, Kind::Infinity { .. }) => {
            return Decimal128::NAN;
        }
        (Kind::Infinity { .. }, _) => return infinity(negative),
        (Kind::Finite(_), Kind::Infinity { .. }) => {
            let zero = Exact { value: BigInt::from(0), exponent: EXPONENT_MIN, negative_zero: negative };
            return finish(zero, Rounding::HalfEven);
        }
        (Kind::Finite(a), Kind::Finite(b)) => (a, b),
    };
    match (a.value.sign(), b.value.sign()) {
        (Sign::NoSign, Sign::NoSign) => return Decimal128::NAN,
        (_, Sign::NoSign) => return infinity(negative),
        _ => {}
    }
    let preferred = a.exponent - b.exponent;
    // 36 digits of quotient at least, and a last one that says whether a remainder was left.
    let shift = (36 + digits(&b.value) as i64 - digits(&a.value) as i64).max(0);
    let scaled = a.value * power_of_ten(shift);
    let quotient = &scaled / &b.value;
    let is_exact = &quotient * &b.value == scaled;
    if is_exact {
        let reduced = strip_zeroes(
            Exact { value: quotient, exponent: preferred - shift, negative_zero: negative },
            preferred,
        );
        return finish(reduced, Rounding::HalfEven);
    }
    let sticky = if negative { BigInt::from(-1) } else { BigInt::from(1) };
    let value = quotient * BigInt::from(10) + sticky;
    finish(Exact { value, exponent: preferred - shift - 1, negative_zero: negative }, Rounding::HalfEven)
}

/// The remainder of a division toward zero, with the sign of the dividend.
pub(crate) fn remainder(a: Decimal128, b: Decimal128) -> Decimal128 {
    let negative = is_negative(a);
    match (kind(a), kind(b)) {
        (Kind::NaN, _) | (_, Kind::NaN) | (Kind::Infinity { .. }, _) => Decimal128::NAN,
        (Kind::Finite(_), Kind::Infinity { .. }) => a,
        (Kind::Finite(_), Kind::Finite(b)) if b.value.sign() == Sign::NoSign => Decimal128::NAN,
        (Kind::Finite(x), Kind::Finite(y)) => {
            let exponent = x.exponent.min(y.exponent);
            // Modular exponentiation keeps the dividend small however far the exponents are apart.
            let divisor = y.value.magnitude() * power_of_ten(y.exponent - exponent).magnitude();
            let scale =
                BigUint::from(10u8).modpow(&BigUint::from((x.exponent - exponent).unsigned_abs()), &divisor);
            let value = (x.value.magnitude() % &divisor) * scale % &divisor;
            let sign = if negative { Sign::Minus } else { Sign::Plus };
            let value = BigInt::from_biguint(sign, value);
            finish(Exact { value, exponent, negative_zero: negative }, Rounding::HalfEven)
        }
    }
}

/// Rounds to a multiple of `10^exponent`.
pub(crate) fn quantize(number: Decimal128, exponent: i64, rounding: Rounding) -> Decimal128 {
    let Kind::Finite(exact) = kind(number) else { return number };
    if exact.exponent >= exponent {
        return number;
    }
    let negative = is_negative(number);
    let value = drop_digits(&exact.value, exponent - exact.exponent, rounding);
    finish(Exact { value, exponent, negative_zero: negative }, Rounding::HalfEven)
}

/// The root, to 34 digits; NaN of a negative number.
pub(crate) fn square_root(number: Decimal128) -> Decimal128 {
    let exact = match kind(number) {
        Kind::NaN => return Decimal128::NAN,
        Kind::Infinity { negative } => return if negative { Decimal128::NAN } else { number },
        Kind::Finite(exact) => exact,
    };
    match exact.value.sign() {
        Sign::Minus => return Decimal128::NAN,
        Sign::NoSign => {
            return finish(Exact { exponent: exact.exponent.div_euclid(2), ..exact }, Rounding::HalfEven);
        }
        Sign::Plus => {}
    }
    let preferred = exact.exponent.div_euclid(2);
    // An even exponent, and twice as many digits as the result needs.
    let mut shift = (2 * 36 - digits(&exact.value) as i64).max(0);
    if (exact.exponent - shift).rem_euclid(2) == 1 {
        shift += 1;
    }
    let scaled = exact.value * power_of_ten(shift);
    let root = scaled.magnitude().sqrt();
    let is_exact = &root * &root == *scaled.magnitude();
    let exponent = (exact.exponent - shift) / 2;
    let root = BigInt::from(root);
    if is_exact {
        return finish(
            strip_zeroes(Exact { value: root, exponent, negative_zero: false }, preferred),
            Rounding::HalfEven,
        );
    }
    let value = root * BigInt::from(10) + BigInt::from(1);
    finish(Exact { value, exponent: exponent - 1, negative_zero: false }, Rounding::HalfEven)
}

/// 15 significant digits.
pub(crate) fn from_f64(number: f64) -> Decimal128 {
    if number.is_nan() {
        return Decimal128::NAN;
    }
    if number.is_infinite() {
        return infinity(number < 0.0);
    }
    if number == 0.0 {
        let negative = number.is_sign_negative();
        return Decimal128::from_parts(DecimalParts::Finite { negative, coefficient: 0, exponent: 0 });
    }
    let text = format!("{number:.14e}");
    parse(&text).expect("a formatted double is a decimal number")
}

/// The nearest double.
pub(crate) fn to_f64(number: Decimal128) -> f64 {
    match number.parts() {
        DecimalParts::NaN => f64::NAN,
        DecimalParts::Infinity { negative } => {
            if negative {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        DecimalParts::Finite { negative, coefficient, exponent } => {
            let sign = if negative { "-" } else { "" };
            format!("{sign}{coefficient}e{exponent}").parse().expect("digits and an exponent are a double")
        }
    }
}

/// The integer that is left without the fraction; `None` if it does not fit or is none.
pub(crate) fn truncate_to_i64(number: Decimal128) -> Option<i64> {
    quantize(number, 0, Rounding::TowardZero).to_i64_exact()
}

/// Text as a decimal number: digits with an optional point and exponent, `NaN`, `Infinity`; rounded to 34 digits.
pub(crate) fn parse(text: &str) -> Option<Decimal128> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    match rest.to_ascii_lowercase().as_str() {
        "nan" => return Some(Decimal128::NAN),
        "inf" | "infinity" => return Some(infinity(negative)),
        _ => {}
    }
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], parse_exponent(&rest[at + 1..])?),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = BigUint::parse_bytes(digits.as_bytes(), 10)?;
    let sign = if negative { Sign::Minus } else { Sign::Plus };
    let exponent = exponent - i64::try_from(fraction.len()).ok()?;
    let exact = Exact { value: BigInt::from_biguint(sign, value), exponent, negative_zero: negative };
    Some(finish(exact, Rounding::HalfEven))
}

fn parse_exponent(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Far out of range is as good as any other number out of range.
    Some(text.parse::<i64>().ok()?.clamp(-1_000_000, 1_000_000))
}

/// The number as text, as MongoDB prints it: plain where the exponent is small, scientific otherwise.
pub(crate) fn text(number: Decimal128) -> String {
    let (negative, coefficient, exponent) = match number.parts() {
        DecimalParts::NaN => return "NaN".to_owned(),
        DecimalParts::Infinity { negative } => {
            return if negative { "-Infinity" } else { "Infinity" }.to_owned();
        }
        DecimalParts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
    };
    let digits = coefficient.to_string();
    let sign = if negative { "-" } else { "" };
    let scientific = i64::try_from(digits.len()).expect("34 digits at most") - 1 + i64::from(exponent);
    if exponent > 0 || scientific < -6 {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if scientific < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}E{exponent_sign}{}", scientific.abs());
    }
    let fraction = usize::try_from(-exponent).expect("the exponent is not positive here");
    if fraction == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = fraction + 1);
    let (whole, fraction) = padded.split_at(padded.len() - fraction);
    format!("{sign}{whole}.{fraction}")
}

/// Rounds to what a Decimal128 can hold.
fn finish(exact: Exact, rounding: Rounding) -> Decimal128 {
    let negative = match exact.value.sign() {
        Sign::Minus => true,
        Sign::Plus => false,
        Sign::NoSign => exact.negative_zero,
    };
    let Exact { mut value, mut exponent, .. } = exact;
    let excess = (digits(&value) as i64 - DIGITS_MAX as i64).max(EXPONENT_MIN - exponent);
    if excess > 0 {
        value = drop_digits(&value, excess, rounding);
        exponent += excess;
        // Rounding up may have made one digit more: a one and zeroes.
        if digits(&value) > DIGITS_MAX {
            value /= BigInt::from(10);
            exponent += 1;
        }
    }
    if value.sign() == Sign::NoSign {
        let exponent = exponent.clamp(EXPONENT_MIN, EXPONENT_MAX) as i32;
        return Decimal128::from_parts(DecimalParts::Finite { negative, coefficient: 0, exponent });
    }
    if exponent > EXPONENT_MAX {
        let room = DIGITS_MAX as i64 - digits(&value) as i64;
        if exponent - EXPONENT_MAX > room {
            return infinity(negative);
        }
        value *= power_of_ten(exponent - EXPONENT_MAX);
        exponent = EXPONENT_MAX;
    }
    let coefficient = u128::try_from(value.magnitude()).expect("34 digits fit 128 bits");
    Decimal128::from_parts(DecimalParts::Finite { negative, coefficient, exponent: exponent as i32 })
}

/// The value without its last `count` digits.
fn drop_digits(value: &BigInt, count: i64, rounding: Rounding) -> BigInt {
    if count > digits(value) as i64 + 1 {
        return match (rounding, value.sign()) {
            (Rounding::Up, Sign::Plus) => BigInt::from(1),
            (Rounding::Down, Sign::Minus) => BigInt::from(-1),
            _ => BigInt::from(0),
        };
    }
    let divisor = power_of_ten(count);
    let quotient = value / &divisor;
    let rest = value - &quotient * &divisor;
    if rest.sign() == Sign::NoSign {
        return quotient;
    }
    let twice = rest.magnitude() * BigUint::from(2u8);
    let away = match rounding {
        Rounding::TowardZero => false,
        Rounding::Up => rest.sign() == Sign::Plus,
        Rounding::Down => rest.sign() == Sign::Minus,
        Rounding::HalfEven => match twice.cmp(divisor.magnitude()) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => quotient.bit(0),
        },
    };
    match (away, rest.sign()) {
        (false, _) => quotient,
        (true, Sign::Minus) => quotient - BigInt::from(1),
        (true, _) => quotient + BigInt::from(1),
    }
}

/// Takes zeroes off the end until the exponent is the preferred one.
fn strip_zeroes(mut exact: Exact, preferred: i64) -> Exact {
    let ten = BigInt::from(10);
    while exact.exponent < preferred
        && exact.value.sign() != Sign::NoSign
        && (&exact.value % &ten).sign() == Sign::NoSign
    {
        exact.value /= &ten;
        exact.exponent += 1;
    }
    exact
}

fn digits(value: &BigInt) -> usize {
    match u128::try_from(value.magnitude()) {
        Ok(0) => 1,
        Ok(small) => small.ilog10() as usize + 1,
        Err(_) => value.magnitude().to_string().len(),
    }
}

fn power_of_ten(exponent: i64) -> BigInt {
    BigInt::from(10)
        .pow(u32::try_from(exponent).expect("a power of ten that was checked to be small and positive"))
}
