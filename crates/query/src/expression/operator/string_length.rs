//! `$strLenCP` and `$strLenBytes`: the length of a string in characters or bytes.

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, narrowed};

pub(super) static STR_LEN_CP: Definition =
    Definition { name: "$strLenCP", arity: Arity::Exactly(1), run: run_characters };
pub(super) static STR_LEN_BYTES: Definition =
    Definition { name: "$strLenBytes", arity: Arity::Exactly(1), run: run_bytes };

fn run_characters<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, ExpressionFault::StrLenCpNotString, |text| text.chars().count())
}

fn run_bytes<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, ExpressionFault::StrLenBytesNotString, str::len)
}

fn run<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    fault: ExpressionFault,
    measure: fn(&str) -> usize,
) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    match value.as_str() {
        Some(text) => Ok(Evaluated::number(narrowed(i64::try_from(measure(text)).unwrap_or(i64::MAX)))),
        None => Err(fault.error(format!(
            "{} requires a string argument, found: {}",
            call.name(),
            value.type_name()
        ))),
    }
}
