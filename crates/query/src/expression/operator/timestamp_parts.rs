//! `$tsSecond` and `$tsIncrement`: the parts of a timestamp, as int64.

use pando_document::{RawValue, Timestamp};

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError};

pub(super) static TS_SECOND: Definition =
    Definition { name: "$tsSecond", arity: Arity::Exactly(1), run: run_second };
pub(super) static TS_INCREMENT: Definition =
    Definition { name: "$tsIncrement", arity: Arity::Exactly(1), run: run_increment };

fn run_second<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, ExpressionFault::TsSecondNotTimestamp, |stamp| stamp.time)
}

fn run_increment<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, ExpressionFault::TsIncrementNotTimestamp, |stamp| stamp.increment)
}

fn run<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    fault: ExpressionFault,
    part: fn(Timestamp) -> u32,
) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    match value.raw() {
        _ if value.is_nullish() => Ok(Evaluated::NULL),
        Some(RawValue::Timestamp(stamp)) => Ok(Evaluated::Raw(RawValue::Int64(i64::from(part(stamp))))),
        _ => Err(fault.error(format!(
            " Argument to {} must be a timestamp, but is {}",
            call.name(),
            value.type_name()
        ))),
    }
}
