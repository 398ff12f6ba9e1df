//! The type bits of one number.

use crate::DecodeError;
use crate::type_bits::{TypeBits, TypeBitsReader};

/// The least exponent of a decimal, which is stored as 0.
const EXPONENT_MIN: i32 = -6176;
/// From here on, *zeros* takes two bits more.
const ZEROS_LONG: u16 = 31;

/// Which type a number that is neither 0, infinite nor NaN has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberType {
    Int32,
    Int64,
    Double,
    Decimal {
        /// Trailing zeros of the coefficient beyond the shortest.
        zeros: u16,
    },
}

impl NumberType {
    /// Of a number that has no *rest* and whose commonest type is `commonest`.
    #[inline]
    pub fn push(self, commonest: NumberType, bits: &mut TypeBits) {
        match self {
            _ if self == commonest => bits.push_zero(),
            Self::Double => bits.push(0b10, 2),
            Self::Int64 => bits.push(0b110, 3),
            Self::Decimal { zeros } => {
                bits.push(0b111, 3);
                push_zeros(zeros, bits);
            }
            Self::Int32 => unreachable!("a number that fits Int32 has it as its commonest type"),
        }
    }

    #[inline]
    pub fn read(commonest: NumberType, bits: &mut TypeBitsReader<'_>) -> NumberType {
        if !bits.bit() {
            commonest
        } else if !bits.bit() {
            Self::Double
        } else if !bits.bit() {
            Self::Int64
        } else {
            Self::Decimal { zeros: read_zeros(bits) }
        }
    }
}

fn push_zeros(zeros: u16, bits: &mut TypeBits) {
    bits.push(zeros.min(ZEROS_LONG), 5);
    if zeros >= ZEROS_LONG {
        bits.push(zeros - ZEROS_LONG, 2);
    }
}

fn read_zeros(bits: &mut TypeBitsReader<'_>) -> u16 {
    match bits.bits(5) {
        ZEROS_LONG => ZEROS_LONG + bits.bits(2),
        zeros => zeros,
    }
}

/// The trailing zeros of a decimal with *rest*.
pub(crate) fn push_rest_zeros(zeros: u16, bits: &mut TypeBits) {
    if zeros == 0 {
        bits.push_zero();
    } else {
        bits.push(1, 1);
        push_zeros(zeros, bits);
    }
}

pub(crate) fn read_rest_zeros(bits: &mut TypeBitsReader<'_>) -> u16 {
    if bits.bit() { read_zeros(bits) } else { 0 }
}

/// Which 0 it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zero {
    Int32,
    Int64,
    Double { negative: bool },
    Decimal { negative: bool, exponent: i32 },
}

impl Zero {
    #[inline]
    pub fn push(self, bits: &mut TypeBits) {
        match self {
            Self::Int32 => bits.push_zero(),
            Self::Double { negative } => bits.push(0b100 | u16::from(negative), 3),
            Self::Int64 => bits.push(0b110, 3),
            Self::Decimal { negative, exponent } => {
                bits.push(0b1110 | u16::from(negative), 4);
                let biased = u16::try_from(exponent - EXPONENT_MIN);
                bits.push(biased.expect("a decimal's exponent is not below the least"), 14);
            }
        }
    }

    pub fn read(bits: &mut TypeBitsReader<'_>, offset: usize) -> Result<Zero, DecodeError> {
        if !bits.bit() {
            return Ok(Self::Int32);
        }
        if !bits.bit() {
            return Ok(Self::Double { negative: bits.bit() });
        }
        if !bits.bit() {
            return Ok(Self::Int64);
        }
        let negative = bits.bit();
        let exponent = i32::from(bits.bits(14)) + EXPONENT_MIN;
        if exponent > 6111 {
            return Err(DecodeError::ImpossibleType { offset });
        }
        Ok(Self::Decimal { negative, exponent })
    }
}
