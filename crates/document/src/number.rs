//! Arithmetic of the four number types with MongoDB's rules for the type of the result.
//!
//! - A decimal makes everything a decimal (doubles with 15 digits), else a double makes everything a double.
//! - Of integers the result is Int64 if one of them is, else Int32 if it fits, else Int64.
//! - The result for an integer beyond Int64 depends on the caller ([`Overflow`]): updates refuse it,
//!   expressions go on with a double.
//!
//! Facts from asking a 6.0 server.

use crate::{Decimal128, DoubleDigits, ElementType, RawValue, Value, ValueRef};

/// A number of one of the four types.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// 32-bit signed integer.
    Int32(i32),
    /// 64-bit signed integer.
    Int64(i64),
    /// 64-bit IEEE binary floating point.
    Double(f64),
    /// 128-bit IEEE decimal floating point.
    Decimal128(Decimal128),
}

/// The result for an integer beyond Int64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// `None`, for `$inc` and `$mul`, which then report an error.
    Refuse,
    /// The nearest double, for expressions.
    Double,
}

/// Two numbers brought to one type.
enum Pair {
    /// Both integers; of which type the result should be if it fits.
    Integers(i64, i64, ElementType),
    Doubles(f64, f64),
    Decimals(Decimal128, Decimal128),
}

impl Number {
    /// The number that a value is, if it is one.
    pub fn from_value<'a>(value: impl Into<ValueRef<'a>>) -> Option<Number> {
        match value.into() {
            ValueRef::Raw(RawValue::Int32(number)) => Some(Self::Int32(number)),
            ValueRef::Raw(RawValue::Int64(number)) => Some(Self::Int64(number)),
            ValueRef::Raw(RawValue::Double(number)) => Some(Self::Double(number)),
            ValueRef::Raw(RawValue::Decimal128(number)) => Some(Self::Decimal128(number)),
            _ => None,
        }
    }

    /// The number as a value.
    pub fn to_value(self) -> Value {
        match self {
            Self::Int32(number) => Value::Int32(number),
            Self::Int64(number) => Value::Int64(number),
            Self::Double(number) => Value::Double(number),
            Self::Decimal128(number) => Value::Decimal128(number),
        }
    }

    /// The number as a borrowed value.
    pub fn to_raw(self) -> RawValue<'static> {
        match self {
            Self::Int32(number) => RawValue::Int32(number),
            Self::Int64(number) => RawValue::Int64(number),
            Self::Double(number) => RawValue::Double(number),
            Self::Decimal128(number) => RawValue::Decimal128(number),
        }
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int32(number) => f64::from(number),
            Self::Int64(number) => number as f64,
            Self::Double(number) => number,
            Self::Decimal128(number) => f64::from(number),
        }
    }

    /// The decimal; of a double with that many digits.
    pub fn to_decimal(self, digits: DoubleDigits) -> Decimal128 {
        match self {
            Self::Int32(number) => Decimal128::from(number),
            Self::Int64(number) => Decimal128::from(number),
            Self::Double(number) => Decimal128::from_f64(number, digits),
            Self::Decimal128(number) => number,
        }
    }

    /// The integer that it is, if it is one within `i64`.
    pub fn to_i64_exact(self) -> Option<i64> {
        self.to_raw().as_i64_exact()
    }

    /// Whether it is zero of either sign.
    pub fn is_zero(self) -> bool {
        !self.to_raw().to_bool()
    }

    /// Whether it is NaN.
    pub fn is_nan(self) -> bool {
        match self {
            Self::Double(number) => number.is_nan(),
            Self::Decimal128(number) => number.is_nan(),
            _ => false,
        }
    }

    fn as_integer(self) -> Option<i64> {
        match self {
            Self::Int32(number) => Some(i64::from(number)),
            Self::Int64(number) => Some(number),
            _ => None,
        }
    }

    fn pair(self, other: Self) -> Pair {
        if let (Self::Decimal128(_), _) | (_, Self::Decimal128(_)) = (self, other) {
            let digits = DoubleDigits::Fifteen;
            return Pair::Decimals(self.to_decimal(digits), other.to_decimal(digits));
        }
        match (self.as_integer(), other.as_integer()) {
            (Some(a), Some(b)) => Pair::Integers(a, b, integer_type(self, other)),
            _ => Pair::Doubles(self.to_f64(), other.to_f64()),
        }
    }

    fn combined(
        self,
        other: Self,
        overflow: Overflow,
        integers: impl FnOnce(i128, i128) -> i128,
        doubles: impl FnOnce(f64, f64) -> f64,
        decimals: impl FnOnce(Decimal128, Decimal128) -> Decimal128,
    ) -> Option<Number> {
        match self.pair(other) {
            Pair::Decimals(a, b) => Some(Self::Decimal128(decimals(a, b))),
            Pair::Doubles(a, b) => Some(Self::Double(doubles(a, b))),
            Pair::Integers(a, b, kind) => integer(integers(i128::from(a), i128::from(b)), kind, overflow),
        }
    }

    /// The sum. `None` only if the sum is refused.
    pub fn add(self, other: Self, overflow: Overflow) -> Option<Number> {
        self.combined(other, overflow, |a, b| a + b, |a, b| a + b, Decimal128::add)
    }

    /// The difference. `None` only if it is refused.
    pub fn subtract(self, other: Self, overflow: Overflow) -> Option<Number> {
        self.combined(other, overflow, |a, b| a - b, |a, b| a - b, Decimal128::subtract)
    }

    /// The product. `None` only if it is refused.
    pub fn multiply(self, other: Self, overflow: Overflow) -> Option<Number> {
        self.combined(other, overflow, |a, b| a * b, |a, b| a * b, Decimal128::multiply)
    }

    /// The quotient, a double or a decimal. `None` if the divisor is zero.
    pub fn divide(self, other: Self) -> Option<Number> {
        if other.is_zero() {
            return None;
        }
        Some(match self.pair(other) {
            Pair::Decimals(a, b) => Self::Decimal128(a.divide(b)),
            _ => Self::Double(self.to_f64() / other.to_f64()),
        })
    }

    /// The remainder, with the dividend's sign. `None` if the divisor is zero. A double divisor that is an
    /// Int32 counts as one where the dividend is an integer.
    pub fn modulo(self, other: Self) -> Option<Number> {
        if other.is_zero() {
            return None;
        }
        let other = match (self.as_integer(), other) {
            (Some(_), Self::Double(double)) if f64::from(double as i32) == double => {
                Self::Int32(double as i32)
            }
            _ => other,
        };
        self.combined(other, Overflow::Double, |a, b| a % b, |a, b| a % b, Decimal128::modulo)
    }

    /// The magnitude. `None` for the least Int64, which has none of its type.
    pub fn magnitude(self) -> Option<Number> {
        match self {
            Self::Double(number) => Some(Self::Double(number.abs())),
            Self::Decimal128(number) => Some(Self::Decimal128(number.magnitude())),
            Self::Int32(number) => Some(fitting(i64::from(number).abs())),
            Self::Int64(number) => number.checked_abs().map(Self::Int64),
        }
    }
}

fn integer_type(a: Number, b: Number) -> ElementType {
    match (a, b) {
        (Number::Int32(_), Number::Int32(_)) => ElementType::Int32,
        _ => ElementType::Int64,
    }
}

/// An Int32 if it fits, else an Int64.
fn fitting(number: i64) -> Number {
    i32::try_from(number).map_or(Number::Int64(number), Number::Int32)
}

fn integer(number: i128, kind: ElementType, overflow: Overflow) -> Option<Number> {
    match i64::try_from(number) {
        Ok(number) if kind == ElementType::Int32 => Some(fitting(number)),
        Ok(number) => Some(Number::Int64(number)),
        Err(_) if overflow == Overflow::Double => Some(Number::Double(number as f64)),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare;

    fn decimal(text: &str) -> Number {
        Number::Decimal128(text.parse().expect("the test's text is a decimal"))
    }

    fn text(number: Option<Number>) -> String {
        number.map_or_else(|| "none".to_owned(), |number| format!("{:?}", number.to_value()))
    }

    #[test]
    fn types_come_out_as_the_server_has_them() {
        use Number::{Double, Int32, Int64};
        use Overflow::{Double as Go, Refuse};
        let max = Int64(i64::MAX);
        for (result, expected) in [
            (Int32(i32::MAX).add(Int32(1), Refuse), "Int64(2147483648)"),
            (Int32(2).add(Int32(1), Refuse), "Int32(3)"),
            (Int32(2).add(Int64(1), Refuse), "Int64(3)"),
            (max.add(Int32(1), Refuse), "none"),
            (max.add(Int32(1), Go), "Double(9.223372036854776e18)"),
            (Int64(i64::MIN).subtract(Int32(1), Go), "Double(-9.223372036854776e18)"),
            (Int32(1 << 30).multiply(Int32(4), Refuse), "Int64(4294967296)"),
            (max.multiply(Int64(2), Refuse), "none"),
            (max.multiply(max, Go), "Double(8.507059173023462e37)"),
            (max.add(Double(1.0), Refuse), "Double(9.223372036854776e18)"),
            (Double(0.1).add(decimal("1.0"), Refuse), "Decimal128(Decimal128(1.100000000000000))"),
            (Int32(6).divide(Int32(3)), "Double(2.0)"),
            (Int32(6).divide(decimal("4")), "Decimal128(Decimal128(1.5))"),
            (Int32(6).divide(Double(-0.0)), "none"),
            (Int32(-7).modulo(Int32(3)), "Int32(-1)"),
            (Int32(7).modulo(Double(2.0)), "Int32(1)"),
            (Int64(7).modulo(Double(1e15)), "Double(7.0)"),
            (Double(7.0).modulo(Int32(2)), "Double(1.0)"),
            (Int64(i64::MIN).modulo(Int32(-1)), "Int64(0)"),
            (Int32(7).modulo(Int64(0)), "none"),
            (Int32(i32::MIN).magnitude(), "Int64(2147483648)"),
            (Int64(i64::MIN).magnitude(), "none"),
        ] {
            assert_eq!(text(result), expected);
        }
    }

    #[test]
    fn only_numbers_are_numbers() {
        assert!(Number::from_value(&Value::from("1")).is_none());
        assert!(Number::from_value(RawValue::Boolean(true)).is_none());
        let one = Number::from_value(&Value::from(1i64)).expect("an Int64 is a number");
        assert!(compare(&one.to_value(), &Value::from(1.0)).is_eq());
    }
}
