//! Decimal128: the IEEE 754-2008 128-bit decimal number in its binary integer encoding.
//!
//! A finite number is `(-1)^sign * coefficient * 10^exponent` with a coefficient of at most 34 digits and an
//! exponent from -6176 to 6111. The same number can be written with several exponents (1, 1.0, 1.00): they
//! are equal, and kept apart.
//!
//! Bits, from the top: the sign, then `exponent (14) | coefficient (113)`. If the two bits after the sign are
//! both set, it is a form whose coefficient would be above 34 digits. That form counts as zero; `11110` marks
//! infinity, `11111` NaN.

/// The largest coefficient, 34 nines.
pub(crate) const COEFFICIENT_MAX: u128 = 10u128.pow(34) - 1;
pub(crate) const EXPONENT_MIN: i32 = -6176;
pub(crate) const EXPONENT_MAX: i32 = 6111;
const BIAS: i32 = 6176;
const SIGN: u128 = 1 << 127;
const INFINITY: u128 = 0b11110 << 122;
const NAN: u128 = 0b11111 << 122;

/// A decimal number. `==` is identity of bits: 1.0 and 1.00 differ here and compare equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal128 {
    bits: u128,
}

/// The parts of a [`Decimal128`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalParts {
    /// `(-1)^negative * coefficient * 10^exponent`.
    Finite {
        /// The sign, of zero too.
        negative: bool,
        /// At most 34 digits.
        coefficient: u128,
        /// From -6176 to 6111.
        exponent: i32,
    },
    /// Beyond every finite number.
    Infinity {
        /// The sign.
        negative: bool,
    },
    /// Not a number.
    NaN,
}

impl Decimal128 {
    /// Zero with exponent 0.
    pub const ZERO: Self = Self { bits: (BIAS as u128) << 113 };
    /// Not a number.
    pub const NAN: Self = Self { bits: NAN };
    /// Above every finite number.
    pub const INFINITY: Self = Self { bits: INFINITY };
    /// Below every finite number.
    pub const NEGATIVE_INFINITY: Self = Self { bits: SIGN | INFINITY };

    /// From the bytes in a document.
    #[inline]
    pub const fn from_le_bytes(bytes: [u8; 16]) -> Self {
        Self { bits: u128::from_le_bytes(bytes) }
    }

    /// The bytes in a document.
    #[inline]
    pub const fn to_le_bytes(self) -> [u8; 16] {
        self.bits.to_le_bytes()
    }

    /// The number with these parts, exactly.
    ///
    /// # Panics
    /// Where coefficient or exponent are out of range.
    pub fn from_parts(parts: DecimalParts) -> Self {
        let bits = match parts {
            DecimalParts::NaN => NAN,
            DecimalParts::Infinity { negative } => INFINITY | sign_bit(negative),
            DecimalParts::Finite { negative, coefficient, exponent } => {
                assert!(coefficient <= COEFFICIENT_MAX, "a coefficient has at most 34 digits");
                assert!((EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent), "the exponent is in range");
                sign_bit(negative) | ((exponent + BIAS) as u128) << 113 | coefficient
            }
        };
        Self { bits }
    }

    /// Takes the number apart. Every bit pattern has a meaning.
    #[inline]
    pub fn parts(self) -> DecimalParts {
        let negative = self.bits & SIGN != 0;
        if self.bits & NAN == NAN {
            return DecimalParts::NaN;
        }
        if self.bits & NAN == INFINITY {
            return DecimalParts::Infinity { negative };
        }
        if self.bits >> 125 & 0b11 == 0b11 {
            let exponent = (self.bits >> 111 & 0x3FFF) as i32 - BIAS;
            return DecimalParts::Finite { negative, coefficient: 0, exponent };
        }
        let exponent = (self.bits >> 113 & 0x3FFF) as i32 - BIAS;
        let coefficient = self.bits & ((1 << 113) - 1);
        let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
        DecimalParts::Finite { negative, coefficient, exponent }
    }

    /// Whether it is zero of either sign.
    #[inline]
    pub fn is_zero(self) -> bool {
        matches!(self.parts(), DecimalParts::Finite { coefficient: 0, .. })
    }

    /// Whether it is not a number.
    #[inline]
    pub fn is_nan(self) -> bool {
        self.parts() == DecimalParts::NaN
    }

    /// The integer that it is, if it is one and fits.
    pub fn to_i64_exact(self) -> Option<i64> {
        let DecimalParts::Finite { negative, mut coefficient, mut exponent } = self.parts() else {
            return None;
        };
        if coefficient == 0 {
            return Some(0);
        }
        while exponent < 0 && coefficient.is_multiple_of(10) {
            coefficient /= 10;
            exponent += 1;
        }
        let scale = 10u128.checked_pow(u32::try_from(exponent).ok()?)?;
        let magnitude = i128::try_from(coefficient.checked_mul(scale)?).ok()?;
        i64::try_from(if negative { -magnitude } else { magnitude }).ok()
    }
}

/// The nearest double, ties to even; beyond the doubles, infinity or zero.
impl From<Decimal128> for f64 {
    fn from(number: Decimal128) -> f64 {
        match number.parts() {
            DecimalParts::NaN => f64::NAN,
            DecimalParts::Infinity { negative: true } => f64::NEG_INFINITY,
            DecimalParts::Infinity { negative: false } => f64::INFINITY,
            DecimalParts::Finite { negative, coefficient, exponent } => {
                let sign = if negative { "-" } else { "" };
                let text = format!("{sign}{coefficient}e{exponent}");
                text.parse().expect("digits and an exponent are a number; parsing rounds to nearest")
            }
        }
    }
}

fn sign_bit(negative: bool) -> u128 {
    if negative { SIGN } else { 0 }
}

impl From<i64> for Decimal128 {
    fn from(number: i64) -> Self {
        Self::from_parts(DecimalParts::Finite {
            negative: number < 0,
            coefficient: u128::from(number.unsigned_abs()),
            exponent: 0,
        })
    }
}

impl From<i32> for Decimal128 {
    fn from(number: i32) -> Self {
        Self::from(i64::from(number))
    }
}

impl std::fmt::Debug for Decimal128 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decimal128({self})")
    }
}
