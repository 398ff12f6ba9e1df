//! `$exp`, `$ln`, `$log` and `$log10`, on doubles.

use pando_document::Number;

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, not_numeric};
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
    double(call, number, f64::exp)
}

fn run_ln<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    one(call, frame, ExpressionFault::LnNotPositive, f64::ln)
}

fn run_log10<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    one(call, frame, ExpressionFault::Log10NotPositive, f64::log10)
}

fn one<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    not_positive: ExpressionFault,
    compute: fn(f64) -> f64,
) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let number = value.as_number().ok_or_else(|| not_numeric(call, &value))?;
    if number.to_f64() <= 0.0 {
        return Err(not_positive.error(format!(
            "{}'s argument must be a positive number, but is {}",
            call.name(),
            shell_text::value_text(number.to_raw())
        )));
    }
    double(call, number, compute)
}

fn double<'a>(call: &Call, number: Number, compute: fn(f64) -> f64) -> Result<Evaluated<'a>, QueryError> {
    match number {
        Number::Decimal128(_) => Err(QueryError::not_implemented(&format!("{} of a decimal", call.name()))),
        other => Ok(Evaluated::number(Number::Double(compute(other.to_f64())))),
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
    if number.to_f64() <= 0.0 {
        return Err(ExpressionFault::LogNotPositive.error(format!(
            "$log's argument must be a positive number, but is {}",
            shell_text::value_text(number.to_raw())
        )));
    }
    let b = base_number.to_f64();
    if b <= 0.0 || b == 1.0 {
        return Err(ExpressionFault::LogBadBase.error(format!(
            "$log's base must be a positive number not equal to 1, but is {}",
            shell_text::value_text(base_number.to_raw())
        )));
    }
    if matches!(base_number, Number::Decimal128(_)) {
        return Err(QueryError::not_implemented("$log to a decimal base"));
    }
    match number {
        Number::Decimal128(_) => Err(QueryError::not_implemented("$log of a decimal")),
        other => Ok(Evaluated::number(Number::Double(other.to_f64().ln() / b.ln()))),
    }
}
