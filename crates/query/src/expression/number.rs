//! Numbers of the four types and the arithmetic that expressions and updates share.
//!
//! The wider type of two operands decides the result's: int32 < int64 < double < decimal. What does not fit int32 becomes
//! int64; what does not fit int64 is `None` from the `checked` functions (updates refuse it) and a double from the plain
//! ones (expressions and `$sum`).

use pando_document::{Decimal128, RawValue, Value};

use super::decimal;

/// A number of one of the four types.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// 32-bit integer.
    Int32(i32),
    /// 64-bit integer.
    Int64(i64),
    /// Binary floating point.
    Double(f64),
    /// Decimal floating point.
    Decimal(Decimal128),
}

/// Two operands in their common type.
enum Pair {
    Int32(i32, i32),
    Int64(i64, i64),
    Double(f64, f64),
    Decimal(Decimal128, Decimal128),
}

impl Number {
    /// The number that a value is.
    pub fn from_raw(value: RawValue<'_>) -> Option<Number> {
        match value {
            RawValue::Int32(number) => Some(Number::Int32(number)),
            RawValue::Int64(number) => Some(Number::Int64(number)),
            RawValue::Double(number) => Some(Number::Double(number)),
            RawValue::Decimal128(number) => Some(Number::Decimal(number)),
            _ => None,
        }
    }

    /// The number as a value.
    pub fn to_raw(self) -> RawValue<'static> {
        match self {
            Number::Int32(number) => RawValue::Int32(number),
            Number::Int64(number) => RawValue::Int64(number),
            Number::Double(number) => RawValue::Double(number),
            Number::Decimal(number) => RawValue::Decimal128(number),
        }
    }

    /// An int32 if it fits, else an int64.
    pub fn from_i64_narrowed(number: i64) -> Number {
        i32::try_from(number).map_or(Number::Int64(number), Number::Int32)
    }

    /// Zero of the same type.
    pub fn zero_of_type(self) -> Number {
        match self {
            Number::Int32(_) => Number::Int32(0),
            Number::Int64(_) => Number::Int64(0),
            Number::Double(_) => Number::Double(0.0),
            Number::Decimal(_) => Number::Decimal(Decimal128::ZERO),
        }
    }

    /// As a double, rounded to the nearest.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int32(number) => f64::from(number),
            Number::Int64(number) => number as f64,
            Number::Double(number) => number,
            Number::Decimal(number) => decimal::to_f64(number),
        }
    }

    /// As a decimal; doubles with 15 digits.
    pub fn to_decimal(self) -> Decimal128 {
        match self {
            Number::Int32(number) => Decimal128::from(number),
            Number::Int64(number) => Decimal128::from(number),
            Number::Double(number) => decimal::from_f64(number),
            Number::Decimal(number) => number,
        }
    }

    /// The integer that it is, if it is one and fits.
    pub fn to_i64_exact(self) -> Option<i64> {
        self.to_raw().as_i64_exact()
    }

    /// The integer that is left without a fraction, if it fits.
    pub fn to_i64_truncated(self) -> Option<i64> {
        match self {
            Number::Int32(number) => Some(i64::from(number)),
            Number::Int64(number) => Some(number),
            Number::Double(number) => RawValue::Double(number.trunc()).as_i64_exact(),
            Number::Decimal(number) => decimal::truncate_to_i64(number),
        }
    }

    /// Whether it is NaN.
    pub fn is_nan(self) -> bool {
        match self {
            Number::Double(number) => number.is_nan(),
            Number::Decimal(number) => number.is_nan(),
            _ => false,
        }
    }

    /// Whether it is a zero of any kind.
    pub fn is_zero(self) -> bool {
        !self.to_raw().to_bool()
    }

    fn pair(self, other: Number) -> Pair {
        use Number::{Decimal, Double, Int32};
        match (self, other) {
            (Decimal(_), _) | (_, Decimal(_)) => Pair::Decimal(self.to_decimal(), other.to_decimal()),
            (Double(_), _) | (_, Double(_)) => Pair::Double(self.to_f64(), other.to_f64()),
            (Int32(a), Int32(b)) => Pair::Int32(a, b),
            (a, b) => Pair::Int64(a.integer(), b.integer()),
        }
    }

    fn integer(self) -> i64 {
        match self {
            Number::Int32(number) => i64::from(number),
            Number::Int64(number) => number,
            Number::Double(_) | Number::Decimal(_) => unreachable!("only integers are paired as int64"),
        }
    }

    /// The sum; `None` where int64 overflows.
    pub fn checked_add(self, other: Number) -> Option<Number> {
        Some(match self.pair(other) {
            Pair::Int32(a, b) => Number::from_i64_narrowed(i64::from(a) + i64::from(b)),
            Pair::Int64(a, b) => Number::Int64(a.checked_add(b)?),
            Pair::Double(a, b) => Number::Double(a + b),
            Pair::Decimal(a, b) => Number::Decimal(decimal::add(a, b)),
        })
    }

    /// The difference; `None` where int64 overflows.
    pub fn checked_subtract(self, other: Number) -> Option<Number> {
        Some(match self.pair(other) {
            Pair::Int32(a, b) => Number::from_i64_narrowed(i64::from(a) - i64::from(b)),
            Pair::Int64(a, b) => Number::Int64(a.checked_sub(b)?),
            Pair::Double(a, b) => Number::Double(a - b),
            Pair::Decimal(a, b) => Number::Decimal(decimal::subtract(a, b)),
        })
    }

    /// The product; `None` where int64 overflows.
    pub fn checked_multiply(self, other: Number) -> Option<Number> {
        Some(match self.pair(other) {
            Pair::Int32(a, b) => Number::from_i64_narrowed(i64::from(a) * i64::from(b)),
            Pair::Int64(a, b) => Number::Int64(a.checked_mul(b)?),
            Pair::Double(a, b) => Number::Double(a * b),
            Pair::Decimal(a, b) => Number::Decimal(decimal::multiply(a, b)),
        })
    }

    /// The sum; a double where int64 overflows.
    pub fn add(self, other: Number) -> Number {
        self.checked_add(other).unwrap_or_else(|| Number::Double(self.to_f64() + other.to_f64()))
    }

    /// The difference; a double where int64 overflows.
    pub fn subtract(self, other: Number) -> Number {
        self.checked_subtract(other).unwrap_or_else(|| Number::Double(self.to_f64() - other.to_f64()))
    }

    /// The product; a double where int64 overflows.
    pub fn multiply(self, other: Number) -> Number {
        self.checked_multiply(other).unwrap_or_else(|| Number::Double(self.to_f64() * other.to_f64()))
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Value {
        match number {
            Number::Int32(number) => Value::Int32(number),
            Number::Int64(number) => Value::Int64(number),
            Number::Double(number) => Value::Double(number),
            Number::Decimal(number) => Value::Decimal128(number),
        }
    }
}
