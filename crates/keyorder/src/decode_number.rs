//! Key bytes and type bits back to a number.

use std::cmp::Ordering;

use pando_document::{Decimal128, DecimalParts, Value};

use crate::encode::{PLACES_BIAS, commonest_of_size};
use crate::magnitude::{Rest, Shortest, Size, WHOLE_END, group_bits};
use crate::number_bits::{NumberType, Zero, read_rest_zeros};
use crate::reader::Reader;
use crate::type_bits::TypeBitsReader;
use crate::{DecodeError, lead_byte};

const COEFFICIENT_MAX: u128 = 10u128.pow(34) - 1;

/// A number's bytes.
pub(crate) enum NumberBytes {
    NaN,
    Zero,
    Infinite { negative: bool },
    Finite { negative: bool, size: Size, rest: Rest },
}

/// Reads what follows a number's lead byte.
pub(crate) fn read_number(lead: u8, reader: &mut Reader<'_>) -> Result<NumberBytes, DecodeError> {
    if lead == lead_byte::NAN {
        return Ok(NumberBytes::NaN);
    }
    let negative = lead < lead_byte::ZERO;
    let distance = lead.abs_diff(lead_byte::ZERO);
    if negative {
        reader.invert();
    }
    let number = match distance {
        0 => NumberBytes::Zero,
        lead_byte::INFINITE => NumberBytes::Infinite { negative },
        lead_byte::SMALL => {
            let (bits, rest) = read_doubled(reader)?;
            if f64::from_bits(bits).partial_cmp(&1.0) != Some(Ordering::Less) {
                return Err(reader.impossible());
            }
            NumberBytes::Finite { negative, size: Size::Small(bits), rest }
        }
        lead_byte::LARGE => {
            let (bits, rest) = read_doubled(reader)?;
            let double = f64::from_bits(bits);
            if !(double >= WHOLE_END as f64 && double.is_finite()) {
                return Err(reader.impossible());
            }
            NumberBytes::Finite { negative, size: Size::Large(bits), rest }
        }
        _ => {
            let (size, rest) = read_whole(usize::from(distance - lead_byte::WHOLE), reader)?;
            NumberBytes::Finite { negative, size, rest }
        }
    };
    if negative {
        reader.invert();
    }
    Ok(number)
}

fn read_doubled(reader: &mut Reader<'_>) -> Result<(u64, Rest), DecodeError> {
    let word = u64::from_be_bytes(reader.array()?);
    let mut rest = Rest::NONE;
    if word & 1 == 1 {
        rest.places = i32::from(u16::from_be_bytes(reader.array()?)) - PLACES_BIAS;
        read_digit_pairs(&mut rest, reader)?;
    } else if word == 0 {
        return Err(reader.impossible());
    }
    Ok((word >> 1, rest))
}

fn read_whole(bytes: usize, reader: &mut Reader<'_>) -> Result<(Size, Rest), DecodeError> {
    let mut word = 0;
    for _ in 0..bytes {
        word = word << 8 | u64::from(reader.byte()?);
    }
    let whole = word >> 1;
    // As few bytes as it needs: the first is not 0.
    if whole == 0 || word >> (8 * (bytes - 1)) == 0 {
        return Err(reader.impossible());
    }
    let (mut fraction, mut taken) = (0u64, 0);
    let mut follows = word & 1 == 1;
    let group_bits = group_bits(whole);
    while follows && taken < group_bits {
        let group = reader.byte()?;
        if group == 0 {
            return Err(reader.impossible());
        }
        taken += 7;
        fraction |= u64::from(group >> 1) << (64 - taken);
        follows = group & 1 == 1;
    }
    let mut rest = Rest::NONE;
    if follows {
        read_digit_pairs(&mut rest, reader)?;
    }
    Ok((Size::Whole { whole, fraction }, rest))
}

fn read_digit_pairs(rest: &mut Rest, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    loop {
        let byte = reader.byte()?;
        let pair = byte >> 1;
        // A last pair of zeros is not written.
        if byte == 0 || pair > 99 || !rest.push(pair / 10) || !rest.push(pair % 10) {
            return Err(reader.impossible());
        }
        if byte & 1 == 0 {
            break;
        }
    }
    rest.drop_trailing_zeros();
    if rest.is_none() { Err(reader.impossible()) } else { Ok(()) }
}

/// The value with the type that the bits name. `offset` is where the number ends.
pub(crate) fn number_value(
    number: &NumberBytes,
    bits: &mut TypeBitsReader<'_>,
    offset: usize,
) -> Result<Value, DecodeError> {
    match number {
        NumberBytes::NaN if bits.bit() => Ok(Value::Decimal128(Decimal128::NAN)),
        NumberBytes::NaN => Ok(Value::Double(f64::NAN)),
        NumberBytes::Infinite { negative } if bits.bit() => {
            Ok(Value::Decimal128(Decimal128::from_parts(DecimalParts::Infinity { negative: *negative })))
        }
        NumberBytes::Infinite { negative: true } => Ok(Value::Double(f64::NEG_INFINITY)),
        NumberBytes::Infinite { negative: false } => Ok(Value::Double(f64::INFINITY)),
        NumberBytes::Zero => Zero::read(bits, offset).map(zero_value),
        NumberBytes::Finite { negative, size, rest } if rest.is_none() => {
            let kind = NumberType::read(commonest_of_size(*negative, *size), bits);
            finite_value(*negative, *size, kind).ok_or(DecodeError::ImpossibleType { offset })
        }
        NumberBytes::Finite { negative, size, rest } => {
            let zeros = read_rest_zeros(bits);
            let shortest =
                shortest_with_rest(*size, rest).ok_or(DecodeError::ImpossiblePayload { offset })?;
            let decimal = decimal_value(*negative, shortest.0, shortest.1, zeros);
            let decimal = decimal.filter(|_| is_written_as(shortest, zeros, *size, rest));
            decimal.ok_or(DecodeError::ImpossibleType { offset })
        }
    }
}

fn zero_value(zero: Zero) -> Value {
    match zero {
        Zero::Int32 => Value::Int32(0),
        Zero::Int64 => Value::Int64(0),
        Zero::Double { negative } => Value::Double(if negative { -0.0 } else { 0.0 }),
        Zero::Decimal { negative, exponent } => {
            let parts = DecimalParts::Finite { negative, coefficient: 0, exponent };
            Value::Decimal128(Decimal128::from_parts(parts))
        }
    }
}

fn finite_value(negative: bool, size: Size, kind: NumberType) -> Option<Value> {
    Some(match kind {
        NumberType::Double => Value::Double(double_of(negative, size)?),
        NumberType::Int32 => Value::Int32(i32::try_from(integer_of(negative, size)?).ok()?),
        NumberType::Int64 => Value::Int64(integer_of(negative, size)?),
        NumberType::Decimal { zeros } => {
            let (coefficient, exponent) = decimal_of(size)?;
            return decimal_value(negative, coefficient, exponent, zeros)
                .filter(|_| is_written_as((coefficient, exponent), zeros, size, &Rest::NONE));
        }
    })
}

/// The double, if it is exactly one.
fn double_of(negative: bool, size: Size) -> Option<f64> {
    let magnitude = match size {
        Size::Small(bits) | Size::Large(bits) => f64::from_bits(bits),
        Size::Whole { whole, fraction } => {
            let double = whole as f64 + fraction as f64 / 18_446_744_073_709_551_616.0;
            (crate::magnitude::size_of_f64(double) == size).then_some(double)?
        }
    };
    Some(if negative { -magnitude } else { magnitude })
}

fn integer_of(negative: bool, size: Size) -> Option<i64> {
    match size {
        Size::Whole { whole, fraction: 0 } => {
            let whole = i64::try_from(whole).ok()?;
            Some(if negative { -whole } else { whole })
        }
        _ => Value::Double(double_of(negative, size)?).as_i64_exact(),
    }
}

/// Coefficient and exponent of a number without rest, if it has at most 34 digits.
fn decimal_of(size: Size) -> Option<(u128, i32)> {
    let (mut mantissa, mut exponent) = match size {
        Size::Whole { whole, fraction } => (u128::from(whole) << 64 | u128::from(fraction), -64),
        Size::Small(bits) | Size::Large(bits) => {
            let fraction = u128::from(bits & ((1 << 52) - 1));
            match (bits >> 52) as i32 {
                0 => (fraction, -1074),
                exponent => (fraction | 1 << 52, exponent - 1075),
            }
        }
    };
    if mantissa == 0 {
        return None;
    }
    // mantissa * 2^exponent, mantissa odd: a negative power of two is as many fives over as many tens.
    exponent += mantissa.trailing_zeros() as i32;
    mantissa >>= mantissa.trailing_zeros();
    let mut tens = 0;
    if exponent < 0 {
        tens = exponent;
        mantissa = mantissa.checked_mul(5u128.checked_pow(exponent.unsigned_abs())?)?;
        exponent = 0;
    }
    while exponent > 0 && mantissa.is_multiple_of(5) {
        mantissa /= 5;
        exponent -= 1;
        tens += 1;
    }
    let twos = u32::try_from(exponent).ok().filter(|twos| *twos <= mantissa.leading_zeros())?;
    let mut coefficient = mantissa.checked_shl(twos)?;
    while coefficient.is_multiple_of(10) {
        coefficient /= 10;
        tens += 1;
    }
    (coefficient <= COEFFICIENT_MAX).then_some((coefficient, tens))
}

/// Whether a decimal, which must be one, has these bytes and no others: there are more ways to cut a number
/// into size and rest.
fn is_written_as((coefficient, exponent): (u128, i32), zeros: u16, size: Size, rest: &Rest) -> bool {
    Shortest { coefficient, exponent, zeros }.magnitude() == (size, *rest)
}

/// Coefficient and exponent of a number with rest.
fn shortest_with_rest(size: Size, rest: &Rest) -> Option<(u128, i32)> {
    let digits = rest.digits();
    let (leading, exponent) = match size {
        Size::Whole { whole, .. } => (u128::from(whole), -(digits.len() as i32)),
        Size::Small(_) | Size::Large(_) => (0, rest.places - digits.len() as i32),
    };
    let coefficient = digits.iter().try_fold(leading, |number, digit| {
        number.checked_mul(10).map(|number| number + u128::from(*digit))
    })?;
    Some((coefficient, exponent))
}

fn decimal_value(negative: bool, coefficient: u128, exponent: i32, zeros: u16) -> Option<Value> {
    if coefficient > COEFFICIENT_MAX {
        return None;
    }
    let coefficient = 10u128.checked_pow(u32::from(zeros))?.checked_mul(coefficient)?;
    let exponent = exponent - i32::from(zeros);
    if coefficient > COEFFICIENT_MAX || !(-6176..=6111).contains(&exponent) {
        return None;
    }
    Some(Value::Decimal128(Decimal128::from_parts(DecimalParts::Finite { negative, coefficient, exponent })))
}
