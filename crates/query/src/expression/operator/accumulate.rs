//! The accumulators as expressions. `$sum`, `$avg`, `$min`, `$max`, `$stdDevPop`, `$stdDevSamp` take a list,
//! or the elements of one array. `$firstN`, `$lastN`, `$minN`, `$maxN` take an array.

use pando_document::{RawArray, RawValue};

use super::named::Names;
use super::text::refuse_beyond_long;
use super::{
    Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError, array_of,
};
use crate::expression::accumulator::{Accumulator, Avg, Deviation, Extreme, ExtremeN, StdDev, Sum, Wanted};

pub(super) static SUM: Definition =
    Definition { name: "$sum", arity: Arity::Any, run: |call, frame| run(call, frame, &mut Sum::default()) };
pub(super) static AVG: Definition =
    Definition { name: "$avg", arity: Arity::Any, run: |call, frame| run(call, frame, &mut Avg::default()) };
pub(super) static MIN: Definition = Definition {
    name: "$min",
    arity: Arity::Any,
    run: |call, frame| run(call, frame, &mut Extreme::new(Wanted::Least, call.text_order())),
};
pub(super) static MAX: Definition = Definition {
    name: "$max",
    arity: Arity::Any,
    run: |call, frame| run(call, frame, &mut Extreme::new(Wanted::Greatest, call.text_order())),
};
pub(super) static STD_DEV_POP: Definition = Definition {
    name: "$stdDevPop",
    arity: Arity::Any,
    run: |call, frame| run(call, frame, &mut StdDev::new(Deviation::Population)),
};
pub(super) static STD_DEV_SAMP: Definition = Definition {
    name: "$stdDevSamp",
    arity: Arity::Any,
    run: |call, frame| run(call, frame, &mut StdDev::new(Deviation::Sample)),
};

fn run<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    accumulator: &mut dyn Accumulator,
) -> Result<Evaluated<'a>, QueryError> {
    for index in 0..call.len() {
        let value = call.argument(index, frame)?;
        match value.as_array() {
            // Only an array that stands alone is looked into.
            Some(array) if call.len() == 1 => {
                for element in array.iter() {
                    accumulator.add(&Evaluated::Raw(element?))?;
                }
            }
            _ => accumulator.add(&value)?,
        }
    }
    accumulator.finish()
}

/// Arguments: n, input.
static FIRST_N: Definition = Definition { name: "$firstN", arity: Arity::Any, run: run_first_n };
static LAST_N: Definition = Definition { name: "$lastN", arity: Arity::Any, run: run_last_n };
static MIN_N: Definition = Definition { name: "$minN", arity: Arity::Any, run: run_min_n };
static MAX_N: Definition = Definition { name: "$maxN", arity: Arity::Any, run: run_max_n };

static NAMES: Names = Names {
    operator: "'n' operator",
    names: &["n", "input"],
    required: &[("n", ExpressionFault::NWithoutN.code()), ("input", ExpressionFault::NWithoutInput.code())],
    not_object: ExpressionFault::NNotObject.code(),
    unknown: ExpressionFault::NUnknownArgument.code(),
};

pub(super) fn parse_first_n(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    NAMES.call(&FIRST_N, argument, scope)
}

pub(super) fn parse_last_n(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    NAMES.call(&LAST_N, argument, scope)
}

pub(super) fn parse_min_n(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    NAMES.call(&MIN_N, argument, scope)
}

pub(super) fn parse_max_n(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    NAMES.call(&MAX_N, argument, scope)
}

fn run_first_n<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run_n(call, frame, |_, _| {})
}

fn run_last_n<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run_n(call, frame, |elements, n| {
        elements.drain(..elements.len().saturating_sub(n));
    })
}

fn run_min_n<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run_n(call, frame, |elements, _| {
        elements.retain(|element| !element.is_null());
        elements.sort_by(|a, b| call.text_order().compare(*a, *b));
    })
}

/// Unlike with the least, which of equal elements are given depends on the greater ones behind them: the
/// state of the accumulator tells.
fn run_max_n<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (n, input) = arguments_n(call, frame)?;
    let mut greatest = ExtremeN::new(Wanted::Greatest, n, call.text_order());
    for element in array_n(&input)?.iter() {
        greatest.add(&Evaluated::Raw(element?))?;
    }
    greatest.finish()
}

/// `choose` brings the wanted elements to the front.
fn run_n<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    choose: impl Fn(&mut Vec<RawValue<'_>>, usize),
) -> Result<Evaluated<'a>, QueryError> {
    let (n, input) = arguments_n(call, frame)?;
    let mut elements = array_n(&input)?.iter().collect::<Result<Vec<_>, _>>()?;
    choose(&mut elements, n);
    array_of(|writer| {
        elements.iter().take(n).for_each(|element| writer.push(*element));
        Ok(())
    })
}

fn arguments_n<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<(usize, Evaluated<'a>), QueryError> {
    Ok((count(&call.argument(0, frame)?)?, call.argument(1, frame)?))
}

fn array_n<'v>(input: &'v Evaluated<'_>) -> Result<&'v RawArray, QueryError> {
    input.as_array().ok_or_else(|| ExpressionFault::NInputNotArray.error("Input must be an array"))
}

fn count(value: &Evaluated<'_>) -> Result<usize, QueryError> {
    let refused = |fault: ExpressionFault| {
        let found = value.shell_text();
        fault.error(format!("Value for 'n' must be of integral type, but found {found}"))
    };
    let number = value.as_number().ok_or_else(|| refused(ExpressionFault::NNotNumber))?;
    refuse_beyond_long(number)?;
    let n = number.to_i64_exact().ok_or_else(|| refused(ExpressionFault::NNotInteger))?;
    match usize::try_from(n) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(ExpressionFault::NNotPositive.error(format!("'n' must be greater than 0, found {n}"))),
    }
}
