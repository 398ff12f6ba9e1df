//! `$exp`, `$ln`, `$log` and `$log10`, on doubles and decimals.

use pando_document::{Decimal128, DoubleDigits, Number};

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, not_numeric};
use crate::expression::decimal_function;
use crate::shell_text;

pub(super) static EXP: Definition = Definition { name: "$exp", arity: Arity::Exactly(1), run: run_exp };
pub(super) static LN: Definition = Definition { name: "$ln", arity: Arity::Exactly(1), run: run_ln };
pub(super) static LOG: Definition = Definition { name: "$log", arity: Arity::Exactly(2), run: run_log };
pub(super) static LOG10: Definition = Definition { name: "$log10", arity: Arity::Exactly(1), run: run_log10 };

fn run_exp<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let number = value.as_number().ok_or_else(|| not_numeric(call, &value))?;
    Ok(applied(number, f64::exp, decimal_function::exp))
}

fn run_ln<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    one(call, frame, ExpressionFault::LnNotPositive, |number| applied(number, f64::ln, decimal_function::ln))
}

fn run_log10<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    one(call, frame, ExpressionFault::Log10NotPositive, |number| {
        applied(number, f64::log10, decimal_function::log10)
    })
}

fn one<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    not_positive: ExpressionFault,
    compute: fn(Number) -> Evaluated<'static>,
) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let number = value.as_number().ok_or_else(|| not_numeric(call, &value))?;
    if number.is_nan() {
        // A double, whatever type it had.
        return Ok(Evaluated::number(Number::Double(f64::NAN)));
    }
    if is_not_positive(number) {
        return Err(not_positive.error(format!(
            "{}'s argument must be a positive number, but is {}",
            call.name(),
            shell_text::value_text(number.to_raw())
        )));
    }
    Ok(compute(number))
}

fn applied(
    number: Number,
    of_double: fn(f64) -> f64,
    of_decimal: fn(Decimal128) -> Decimal128,
) -> Evaluated<'static> {
    Evaluated::number(match number {
        Number::Decimal128(decimal) => Number::Decimal128(of_decimal(decimal)),
        other => Number::Double(of_double(other.to_f64())),
    })
}

/// Whether it is 0 or less; NaN is not.
fn is_not_positive(number: Number) -> bool {
    match number {
        // As a double a small decimal would be 0.
        Number::Decimal128(decimal) => decimal.is_zero() || (!decimal.is_nan() && decimal.is_negative()),
        other => other.to_f64() <= 0.0,
    }
}

fn run_log<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (value, base) = (call.argument(0, frame)?, call.argument(1, frame)?);
    if value.is_nullish() || base.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(number) = value.as_number() else {
        return Err(ExpressionFault::LogNotNumeric
            .error(format!("$log's argument must be numeric, not {}", value.type_name())));
    };
    let Some(base_number) = base.as_number() else {
        return Err(ExpressionFault::LogBaseNotNumeric
            .error(format!("$log's base must be numeric, not {}", base.type_name())));
    };
    if is_not_positive(number) {
        return Err(ExpressionFault::LogNotPositive.error(format!(
            "$log's argument must be a positive number, but is {}",
            shell_text::value_text(number.to_raw())
        )));
    }
    if is_not_positive(base_number) || base_number.to_i64_exact() == Some(1) {
        return Err(ExpressionFault::LogBadBase.error(format!(
            "$log's base must be a positive number not equal to 1, but is {}",
            shell_text::value_text(base_number.to_raw())
        )));
    }
    if number.is_nan() || base_number.is_nan() {
        return Ok(Evaluated::number(Number::Double(f64::NAN)));
    }
    Ok(Evaluated::number(match (number, base_number) {
        (Number::Decimal128(_), _) | (_, Number::Decimal128(_)) => {
            let [of_number, of_base] = [number, base_number]
                .map(|number| decimal_function::ln(number.to_decimal(DoubleDigits::Fifteen)));
            Number::Decimal128(of_number.divide(of_base))
        }
        _ => Number::Double(number.to_f64().ln() / base_number.to_f64().ln()),
    }))
}
