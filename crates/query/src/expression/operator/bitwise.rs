//! `$bitAnd`, `$bitOr`, `$bitXor` and `$bitNot`, on int32 and int64. The result is an int64 if one of the
//! numbers is.

use pando_document::{Number, RawValue};

use super::{Arity, Call, Definition, Evaluated, Frame, QueryError, not_numeric};

pub(super) static BIT_AND: Definition =
    Definition { name: "$bitAnd", arity: Arity::Any, run: |call, frame| run(call, frame, -1, |a, b| a & b) };
pub(super) static BIT_OR: Definition =
    Definition { name: "$bitOr", arity: Arity::Any, run: |call, frame| run(call, frame, 0, |a, b| a | b) };
pub(super) static BIT_XOR: Definition =
    Definition { name: "$bitXor", arity: Arity::Any, run: |call, frame| run(call, frame, 0, |a, b| a ^ b) };
pub(super) static BIT_NOT: Definition =
    Definition { name: "$bitNot", arity: Arity::Exactly(1), run: run_not };

/// `identity` is the result without numbers. Sign extension commutes with every operation.
fn run<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    identity: i64,
    combine: fn(i64, i64) -> i64,
) -> Result<Evaluated<'a>, QueryError> {
    let (mut bits, mut is_narrow) = (identity, true);
    for index in 0..call.len() {
        let value = call.argument(index, frame)?;
        if value.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let next = match value.raw() {
            Some(RawValue::Int32(next)) => i64::from(next),
            Some(RawValue::Int64(next)) => {
                is_narrow = false;
                next
            }
            _ => {
                return Err(QueryError::type_mismatch(format!(
                    "{} only supports int and long operands.",
                    call.name()
                )));
            }
        };
        bits = combine(bits, next);
    }
    Ok(Evaluated::number(match i32::try_from(bits) {
        Ok(narrow) if is_narrow => Number::Int32(narrow),
        _ => Number::Int64(bits),
    }))
}

fn run_not<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    match value.raw() {
        _ if value.is_nullish() => Ok(Evaluated::NULL),
        Some(RawValue::Int32(number)) => Ok(Evaluated::number(Number::Int32(!number))),
        Some(RawValue::Int64(number)) => Ok(Evaluated::number(Number::Int64(!number))),
        Some(other) if other.is_number() => Err(QueryError::type_mismatch(format!(
            "$bitNot only supports int and long, not: {}.",
            value.type_name()
        ))),
        _ => Err(not_numeric(call, &value)),
    }
}
