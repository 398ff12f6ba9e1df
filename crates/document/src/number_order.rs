//! Numbers of all four types in the order of their exact values.
//!
//! NaN of either floating type is the smallest number and equal to itself; -0 equals 0. No number is rounded
//! to be compared. So 2^53 + 1 as Int64 lies above 2^53 as a double, and the decimal 0.1 below the double
//! that is written 0.1.

use std::cmp::Ordering;

use num_bigint::BigUint;

use crate::{Decimal128, DecimalParts, RawValue};

/// Orders two numbers; `None` if one of them is none.
#[inline]
pub(crate) fn compare_numbers(a: RawValue<'_>, b: RawValue<'_>) -> Option<Ordering> {
    use RawValue::{Decimal128 as Decimal, Double, Int32, Int64};
    Some(match (a, b) {
        (Int32(a), Int32(b)) => a.cmp(&b),
        (Int64(a), Int64(b)) => a.cmp(&b),
        (Int32(a), Int64(b)) => i64::from(a).cmp(&b),
        (Int64(a), Int32(b)) => a.cmp(&i64::from(b)),
        (Double(a), Double(b)) => compare_f64(a, b),
        (Int32(a), Double(b)) => compare_f64(f64::from(a), b),
        (Double(a), Int32(b)) => compare_f64(a, f64::from(b)),
        (Int64(a), Double(b)) => compare_i64_f64(a, b),
        (Double(a), Int64(b)) => compare_i64_f64(b, a).reverse(),
        (Decimal(a), Decimal(b)) => compare_decimals(a.parts(), b.parts()),
        (Decimal(a), Double(b)) => compare_decimal_f64(a, b),
        (Double(a), Decimal(b)) => compare_decimal_f64(b, a).reverse(),
        (Decimal(a), Int32(b)) => compare_decimals(a.parts(), Decimal128::from(b).parts()),
        (Int32(a), Decimal(b)) => compare_decimals(Decimal128::from(a).parts(), b.parts()),
        (Decimal(a), Int64(b)) => compare_decimals(a.parts(), Decimal128::from(b).parts()),
        (Int64(a), Decimal(b)) => compare_decimals(Decimal128::from(a).parts(), b.parts()),
        _ => return None,
    })
}

#[inline]
fn compare_f64(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// 2^63, one more than the greatest Int64.
const INT64_END: f64 = 9_223_372_036_854_775_808.0;

#[inline]
fn compare_i64_f64(a: i64, b: f64) -> Ordering {
    if b.is_nan() || b < -INT64_END {
        return Ordering::Greater;
    }
    if b >= INT64_END {
        return Ordering::Less;
    }
    // The double's whole part fits; its fraction, which has the double's sign, decides between equal whole
    // parts.
    let whole = b.trunc();
    a.cmp(&(whole as i64)).then_with(|| compare_f64(whole, b))
}

/// Where a number lies before its magnitude is looked at: NaN, -∞, negative, zero, positive, ∞.
fn decimal_class(parts: DecimalParts) -> i8 {
    match parts {
        DecimalParts::NaN => -3,
        DecimalParts::Infinity { negative: true } => -2,
        DecimalParts::Infinity { negative: false } => 2,
        DecimalParts::Finite { coefficient: 0, .. } => 0,
        DecimalParts::Finite { negative, .. } => {
            if negative {
                -1
            } else {
                1
            }
        }
    }
}

fn f64_class(number: f64) -> i8 {
    match number {
        _ if number.is_nan() => -3,
        _ if number == 0.0 => 0,
        _ => (if number < 0.0 { -1 } else { 1 }) * (if number.is_infinite() { 2 } else { 1 }),
    }
}

/// `magnitudes` for two finite numbers of the class `class`.
fn by_class(a: i8, b: i8, magnitudes: impl FnOnce() -> Ordering) -> Ordering {
    match a.cmp(&b) {
        Ordering::Equal if a == 1 => magnitudes(),
        Ordering::Equal if a == -1 => magnitudes().reverse(),
        different => different,
    }
}

/// Coefficient and exponent of a number that its class has shown to be finite.
fn finite(parts: DecimalParts) -> (u128, i32) {
    match parts {
        DecimalParts::Finite { coefficient, exponent, .. } => (coefficient, exponent),
        _ => unreachable!("only finite numbers have the classes -1 and 1"),
    }
}

/// How many digits the whole part has: the number is in `10^(places - 1) .. 10^places`. Not for zero.
fn places(coefficient: u128, exponent: i32) -> i32 {
    coefficient.ilog10() as i32 + 1 + exponent
}

fn compare_decimals(a: DecimalParts, b: DecimalParts) -> Ordering {
    by_class(decimal_class(a), decimal_class(b), || {
        let ((a, a_exponent), (b, b_exponent)) = (finite(a), finite(b));
        places(a, a_exponent).cmp(&places(b, b_exponent)).then_with(|| {
            // With as many places, lowering the greater exponent to the other gives it as many digits as the
            // other has.
            let scale = 10u128.pow(a_exponent.abs_diff(b_exponent));
            if a_exponent >= b_exponent { (a * scale).cmp(&b) } else { a.cmp(&(b * scale)) }
        })
    })
}

fn compare_decimal_f64(a: Decimal128, b: f64) -> Ordering {
    let parts = a.parts();
    by_class(decimal_class(parts), f64_class(b), || {
        let (coefficient, exponent) = finite(parts);
        let magnitude = b.abs();
        // The logarithm is off by far less than a hundredth, which settles all but close neighbours.
        let (places, logarithm) = (f64::from(places(coefficient, exponent)), magnitude.log10());
        if places - 1.0 > logarithm + 0.01 {
            return Ordering::Greater;
        }
        if places < logarithm - 0.01 {
            return Ordering::Less;
        }
        let (mantissa, binary_exponent) = f64_parts(magnitude);
        let mut left = BigUint::from(coefficient);
        let mut right = BigUint::from(mantissa);
        scale_decimal(&mut left, &mut right, exponent);
        if binary_exponent >= 0 {
            right <<= binary_exponent
        } else {
            left <<= -binary_exponent
        }
        left.cmp(&right)
    })
}

/// Multiplies `left` by `10^exponent`, or `right` by `10^-exponent`: never divides.
fn scale_decimal(left: &mut BigUint, right: &mut BigUint, exponent: i32) {
    let power = BigUint::from(10u32).pow(exponent.unsigned_abs());
    if exponent >= 0 { *left *= power } else { *right *= power }
}

/// `mantissa * 2^exponent` of a finite number that is not negative.
pub(crate) fn f64_parts(number: f64) -> (u64, i32) {
    let bits = number.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match (bits >> 52 & 0x7FF) as i32 {
        0 => (fraction, -1074),
        exponent => (fraction | 1 << 52, exponent - 1075),
    }
}
