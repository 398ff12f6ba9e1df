//! Decimals from text and to text, in the form that all of MongoDB's tools write.
//!
//! Printing keeps the exponent: 1.10 stays 1.10. The text has no `E` where the exponent is not above 0 and
//! the number has at most six zeros before its first digit. Else it is one digit, a point if more follow, and
//! the exponent with its sign.
//!
//! Reading gives back exactly what was printed. Text with more than 34 digits is cut off after 34, as the
//! server does when it converts strings (its arithmetic rounds to even; its reading does not).

use std::fmt;
use std::str::FromStr;

use crate::decimal128::{COEFFICIENT_MAX, EXPONENT_MAX, EXPONENT_MIN};
use crate::{Decimal128, DecimalParts};

/// Why text is no decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalTextError {
    /// Not digits with at most one point and at most one exponent, nor infinity or NaN.
    #[error("not a decimal number")]
    Malformed,
    /// Above all decimals.
    #[error("greater in magnitude than any decimal128")]
    Overflow,
    /// Digits below the least exponent, which would be lost.
    #[error("has digits below 10^-6176")]
    Underflow,
}

impl fmt::Display for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            DecimalParts::NaN => f.write_str("NaN"),
            DecimalParts::Infinity { negative } => {
                f.write_str(if negative { "-Infinity" } else { "Infinity" })
            }
            DecimalParts::Finite { negative, coefficient, exponent } => {
                f.write_str(if negative { "-" } else { "" })?;
                write_finite(f, &coefficient.to_string(), exponent)
            }
        }
    }
}

fn write_finite(f: &mut fmt::Formatter<'_>, digits: &str, exponent: i32) -> fmt::Result {
    let count = digits.len() as i32;
    // The exponent of the first digit.
    let scientific = exponent + count - 1;
    if exponent > 0 || scientific < -6 {
        let (first, others) = digits.split_at(1);
        let point = if others.is_empty() { "" } else { "." };
        return write!(f, "{first}{point}{others}E{scientific:+}");
    }
    let whole = count + exponent;
    if exponent == 0 {
        f.write_str(digits)
    } else if whole > 0 {
        let (whole, fraction) = digits.split_at(whole as usize);
        write!(f, "{whole}.{fraction}")
    } else {
        write!(f, "0.{:0<zeros$}{digits}", "", zeros = whole.unsigned_abs() as usize)
    }
}

impl FromStr for Decimal128 {
    type Err = DecimalTextError;

    fn from_str(text: &str) -> Result<Self, DecimalTextError> {
        let (negative, unsigned) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] => (false, &text[1..]),
            _ => (false, text),
        };
        if unsigned.eq_ignore_ascii_case("nan") {
            return Ok(Self::NAN);
        }
        if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
            return Ok(Self::from_parts(DecimalParts::Infinity { negative }));
        }
        let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
            Some(place) => (&unsigned[..place], parse_exponent(&unsigned[place + 1..])?),
            None => (unsigned, 0),
        };
        let (coefficient, mantissa_exponent) = parse_mantissa(mantissa)?;
        fit(negative, coefficient, exponent.saturating_add(mantissa_exponent))
    }
}

/// An exponent so large that no mantissa of a document's size brings it back into range is as good as any
/// other such.
fn parse_exponent(text: &str) -> Result<i64, DecimalTextError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DecimalTextError::Malformed);
    }
    let magnitude = digits.parse::<i64>().unwrap_or(i64::MAX).min(i64::MAX / 2);
    Ok(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// The first 34 digits that count, and the exponent of the last of them.
fn parse_mantissa(text: &str) -> Result<(u128, i64), DecimalTextError> {
    let (mut coefficient, mut exponent) = (0u128, 0i64);
    let (mut digits, mut behind_point) = (0usize, false);
    for byte in text.bytes() {
        match byte {
            b'.' if !behind_point => behind_point = true,
            b'0'..=b'9' => {
                digits += 1;
                let longer = coefficient * 10 + u128::from(byte - b'0');
                let kept = longer <= COEFFICIENT_MAX;
                if kept {
                    coefficient = longer;
                }
                exponent += i64::from(!kept) - i64::from(behind_point);
            }
            _ => return Err(DecimalTextError::Malformed),
        }
    }
    if digits == 0 { Err(DecimalTextError::Malformed) } else { Ok((coefficient, exponent)) }
}

/// Brings the exponent into range by moving zeros between it and the coefficient.
fn fit(negative: bool, mut coefficient: u128, mut exponent: i64) -> Result<Decimal128, DecimalTextError> {
    let (least, greatest) = (i64::from(EXPONENT_MIN), i64::from(EXPONENT_MAX));
    if coefficient == 0 {
        exponent = exponent.clamp(least, greatest);
    }
    while exponent > greatest {
        coefficient = coefficient.saturating_mul(10);
        exponent -= 1;
        if coefficient > COEFFICIENT_MAX {
            return Err(DecimalTextError::Overflow);
        }
    }
    while exponent < least {
        if !coefficient.is_multiple_of(10) {
            return Err(DecimalTextError::Underflow);
        }
        coefficient /= 10;
        exponent += 1;
    }
    Ok(Decimal128::from_parts(DecimalParts::Finite { negative, coefficient, exponent: exponent as i32 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str) -> String {
        text.parse::<Decimal128>().map_or_else(|error| error.to_string(), |decimal| decimal.to_string())
    }

    #[test]
    fn canonical_text_comes_back_as_it_was() {
        for text in [
            "0",
            "-0",
            "1",
            "1.10",
            "-1.5",
            "0.000001",
            "1E-7",
            "1.23E-8",
            "0E+3",
            "0.000",
            "0E-8",
            "-0.0",
            "1E+3",
            "1.0E+3",
            "NaN",
            "Infinity",
            "-Infinity",
            "1234567890123456789012345678901234",
            "1E+6111",
            "1E-6176",
            "1.00E+4",
            "9.999999999999999999999999999999999E+6144",
            "0.1234567890123456789012345678901234",
        ] {
            assert_eq!(again(text), text);
        }
    }

    /// The answers are the server's, to `$toDecimal` of these strings.
    #[test]
    fn other_spellings_are_read_as_the_server_reads_them() {
        for (text, expected) in [
            (".5", "0.5"),
            ("5.", "5"),
            ("+5", "5"),
            ("1e3", "1E+3"),
            ("00012", "12"),
            ("-inf", "-Infinity"),
            ("-NaN", "NaN"),
            ("iNfInItY", "Infinity"),
            ("1E6112", "1.0E+6112"),
            ("1E6144", "1.000000000000000000000000000000000E+6144"),
            ("0E7000", "0E+6111"),
            ("0E-7000", "0E-6176"),
            ("100E-6178", "1E-6176"),
            ("0.0001E6115", "1E+6111"),
            ("99999999999999999999999999999999999", "9.999999999999999999999999999999999E+34"),
            (
                "0.000000000011111111111111111111111111111111111111119",
                "1.111111111111111111111111111111111E-11",
            ),
            ("1.9999999999999999999999999999999996", "1.999999999999999999999999999999999"),
        ] {
            assert_eq!(again(text), expected, "{text}");
        }
    }

    #[test]
    fn text_that_is_no_decimal_is_refused() {
        use DecimalTextError::{Malformed, Overflow, Underflow};
        for text in [
            "", "+", ".", "e5", "1e", "1e+", " 1", "1 ", "1_0", "1.2.3", "0x1", "1e1.5", "--1", "é",
            "infinit",
        ] {
            assert_eq!(text.parse::<Decimal128>(), Err(Malformed), "{text}");
        }
        for (text, error) in [
            ("1E6145", Overflow),
            ("1E999999999999999999999", Overflow),
            ("1E-6177", Underflow),
            ("1.5E-6176", Underflow),
            ("1E-99999999999999999999", Underflow),
        ] {
            assert_eq!(text.parse::<Decimal128>(), Err(error), "{text}");
        }
    }
}
