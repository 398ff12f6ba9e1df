//! `$pow`: a number to a power. Integers give an integer as long as it fits int64, else a double.

use pando_document::{Decimal128, DoubleDigits, Number};

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, narrowed};
use crate::expression::decimal_function;

pub(super) static POW: Definition = Definition { name: "$pow", arity: Arity::Exactly(2), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (base, exponent) = (call.argument(0, frame)?, call.argument(1, frame)?);
    if base.is_nullish() || exponent.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(b) = base.as_number() else {
        return Err(ExpressionFault::PowBaseNotNumeric
            .error(format!("$pow's base must be numeric, not {}", base.type_name())));
    };
    let Some(e) = exponent.as_number() else {
        return Err(ExpressionFault::PowExponentNotNumeric
            .error(format!("$pow's exponent must be numeric, not {}", exponent.type_name())));
    };
    if b.is_zero() && e.to_f64() < 0.0 {
        return Err(ExpressionFault::ZeroToNegativePower
            .error("$pow cannot take a base of 0 and a negative exponent"));
    }
    Ok(Evaluated::number(match (b, e) {
        (Number::Decimal128(_), _) | (_, Number::Decimal128(_)) => decimal_power(b, e),
        (Number::Double(_), _) | (_, Number::Double(_)) => double_power(b.to_f64(), e.to_f64()),
        _ => integer_power(b, e),
    }))
}

fn double_power(base: f64, exponent: f64) -> Number {
    let power = base.powf(exponent);
    // Processors differ in the sign of the NaN that they make.
    Number::Double(if power.is_nan() { f64::NAN } else { power })
}

fn integer_power(base: Number, exponent: Number) -> Number {
    let is_narrow = matches!((base, exponent), (Number::Int32(_), Number::Int32(_)));
    let (b, e) = (base.to_i64_exact().unwrap_or(0), exponent.to_i64_exact().unwrap_or(0));
    let power = match (b, u32::try_from(e)) {
        (_, Ok(e)) => b.checked_pow(e),
        (1, _) => Some(1),
        (-1, _) => Some(if e % 2 == 0 { 1 } else { -1 }),
        (0, _) => Some(0),
        _ => None,
    };
    match power {
        Some(power) if is_narrow => narrowed(power),
        Some(power) => Number::Int64(power),
        None => double_power(base.to_f64(), exponent.to_f64()),
    }
}

/// By squaring where the exponent is whole and of moderate size, which is exact where the digits suffice.
fn decimal_power(base: Number, exponent: Number) -> Number {
    const EXPONENT_MAX: u64 = 10_000;
    let base = base.to_decimal(DoubleDigits::Fifteen);
    let whole = exponent.to_i64_exact().filter(|whole| whole.unsigned_abs() <= EXPONENT_MAX);
    let Some(whole) = whole.filter(|whole| *whole != 0 && base.is_finite() && !base.is_zero()) else {
        let exponent = exponent.to_decimal(DoubleDigits::Fifteen);
        return Number::Decimal128(decimal_function::pow(base, exponent));
    };
    let mut power = Decimal128::from(1);
    let mut square = base;
    let mut rest = whole.unsigned_abs();
    while rest > 0 {
        if rest % 2 == 1 {
            power = power.multiply(square);
        }
        square = square.multiply(square);
        rest /= 2;
    }
    let power = if whole < 0 { Decimal128::from(1).divide(power) } else { power };
    Number::Decimal128(decimal_function::at_full_width(power))
}
