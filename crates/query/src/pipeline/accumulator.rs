//! Accumulators: what `$group` computes of the documents of one group. One file each.
//!
//! An accumulator is fed the value of its argument for each document, and gives one value at the end. The same
//! accumulators serve the expressions `$sum`, `$avg`, `$min` … on arrays.

mod add_to_set;
mod avg;
mod count;
mod ends;
mod extreme;
mod extreme_n;
mod merge_objects;
mod push;
mod std_dev;
mod sum;

use std::fmt::Debug;

use pando_document::{RawDocument, RawValue};

use super::PipelineFault;
use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, ExpressionFault, ParseScope};
use crate::filter::Literal;
use crate::shell_text;

pub(crate) use self::avg::Avg;
pub(crate) use self::extreme::{Extreme, Wanted};
pub(crate) use self::std_dev::{Deviation, StdDev};
pub(crate) use self::sum::Sum;

/// The state of one accumulator in one group.
pub(crate) trait Accumulator: Debug + Send {
    /// Takes the value of one document in.
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError>;

    /// The result.
    fn finish(&mut self) -> Result<Evaluated<'static>, QueryError>;

    /// Whether no further value can change the result.
    fn is_full(&self) -> bool {
        false
    }

    /// Bytes held beyond the accumulator itself.
    fn held_bytes(&self) -> usize {
        0
    }
}

/// Which accumulator, with what is fixed for all groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Avg,
    Min,
    Max,
    First,
    Last,
    Push,
    AddToSet,
    Count,
    MergeObjects,
    StdDevPop,
    StdDevSamp,
    FirstN(usize),
    LastN(usize),
    MinN(usize),
    MaxN(usize),
}

/// An accumulator of a `$group`, with its argument.
#[derive(Clone, Debug)]
pub(crate) struct AccumulatorCall {
    kind: Kind,
    argument: Expression,
}

impl AccumulatorCall {
    /// Parses `{$name: argument}`.
    pub(crate) fn parse(
        name: &str,
        argument: RawValue<'_>,
        scope: &ParseScope,
    ) -> Result<AccumulatorCall, QueryError> {
        if matches!(argument, RawValue::Array(_)) {
            return Err(PipelineFault::AccumulatorNotUnary
                .error(format!("The {name} accumulator is a unary operator")));
        }
        let kind = match name {
            "$sum" => Kind::Sum,
            "$avg" => Kind::Avg,
            "$min" => Kind::Min,
            "$max" => Kind::Max,
            "$first" => Kind::First,
            "$last" => Kind::Last,
            "$push" => Kind::Push,
            "$addToSet" => Kind::AddToSet,
            "$mergeObjects" => Kind::MergeObjects,
            "$stdDevPop" => Kind::StdDevPop,
            "$stdDevSamp" => Kind::StdDevSamp,
            "$count" => return parse_count(argument),
            "$firstN" | "$lastN" | "$minN" | "$maxN" => return parse_n(name, argument, scope),
            "$top" | "$topN" | "$bottom" | "$bottomN" | "$accumulator" | "$median" | "$percentile" => {
                return Err(QueryError::not_implemented(&format!("the accumulator {name}")));
            }
            _ => {
                return Err(
                    PipelineFault::UnknownAccumulator.error(format!("unknown group operator '{name}'"))
                );
            }
        };
        let argument = Expression::of_pipeline(argument, scope)?;
        Ok(AccumulatorCall { kind, argument })
    }

    /// The same call with its argument folded.
    pub(crate) fn folded_in(self, scope: &ParseScope) -> Result<AccumulatorCall, QueryError> {
        Ok(AccumulatorCall { argument: self.argument.folded_in(scope)?, ..self })
    }

    /// The count of documents, as `$sortByCount` and `$bucket` need it.
    pub(crate) fn counting() -> AccumulatorCall {
        AccumulatorCall { kind: Kind::Count, argument: Expression::constant(RawValue::Null) }
    }

    /// The state for a new group.
    pub(crate) fn start(&self) -> Box<dyn Accumulator> {
        match self.kind {
            Kind::Sum => Box::new(Sum::default()),
            Kind::Avg => Box::new(Avg::default()),
            Kind::Min => Box::new(Extreme::new(Wanted::Least)),
            Kind::Max => Box::new(Extreme::new(Wanted::Greatest)),
            Kind::First => Box::new(ends::First::default()),
            Kind::Last => Box::new(ends::Last::default()),
            Kind::Push => Box::new(push::Push::default()),
            Kind::AddToSet => Box::new(add_to_set::AddToSet::default()),
            Kind::Count => Box::new(count::Count::default()),
            Kind::MergeObjects => Box::new(merge_objects::MergeObjects::default()),
            Kind::StdDevPop => Box::new(StdDev::new(Deviation::Population)),
            Kind::StdDevSamp => Box::new(StdDev::new(Deviation::Sample)),
            Kind::FirstN(n) => Box::new(ends::FirstN::new(n)),
            Kind::LastN(n) => Box::new(ends::LastN::new(n)),
            Kind::MinN(n) => Box::new(extreme_n::ExtremeN::new(Wanted::Least, n)),
            Kind::MaxN(n) => Box::new(extreme_n::ExtremeN::new(Wanted::Greatest, n)),
        }
    }

    /// Feeds a document to a state.
    pub(crate) fn feed(&self, state: &mut dyn Accumulator, root: &RawDocument) -> Result<(), QueryError> {
        // What is not wanted any more is not evaluated either: it may fail.
        if state.is_full() {
            return Ok(());
        }
        state.add(&self.argument.evaluate(root)?)
    }
}

fn parse_count(argument: RawValue<'_>) -> Result<AccumulatorCall, QueryError> {
    match argument {
        RawValue::Document(nothing) if nothing.is_empty() => Ok(AccumulatorCall::counting()),
        _ => Err(QueryError::type_mismatch("$count takes no arguments, i.e. $count:{}")),
    }
}

/// `{input: expression, n: constant}`.
fn parse_n(name: &str, argument: RawValue<'_>, scope: &ParseScope) -> Result<AccumulatorCall, QueryError> {
    let RawValue::Document(options) = argument else {
        return Err(ExpressionFault::NNotObject.error(format!(
            "specification must be an object; found {name} :{}",
            shell_text::value_text(argument)
        )));
    };
    let (mut input, mut n) = (None, None);
    for option in options.iter() {
        match option? {
            ("input", value) => input = Some(Expression::of_pipeline(value, scope)?),
            ("n", value) => n = Some(parse_count_of_n(value, scope)?),
            (other, _) => {
                return Err(ExpressionFault::NUnknownArgument
                    .error(format!("Unknown argument for 'n' operator: {other}")));
            }
        }
    }
    let n = n.ok_or_else(|| ExpressionFault::NWithoutN.error("Missing value for 'n'"))?;
    let argument = input.ok_or_else(|| ExpressionFault::NWithoutInput.error("Missing value for 'input'"))?;
    let kind = match name {
        "$firstN" => Kind::FirstN(n),
        "$lastN" => Kind::LastN(n),
        "$minN" => Kind::MinN(n),
        _ => Kind::MaxN(n),
    };
    Ok(AccumulatorCall { kind, argument })
}

fn parse_count_of_n(value: RawValue<'_>, scope: &ParseScope) -> Result<usize, QueryError> {
    let expression = Expression::of_pipeline(value, scope)?;
    let value = expression.evaluate(RawDocument::empty())?;
    let Some(n) = value.raw().and_then(|value| value.as_i64_exact()) else {
        return Err(ExpressionFault::NNotInteger.error(format!(
            "Value for 'n' must be of integral type, but found {}",
            value.raw().map_or_else(|| "missing".to_owned(), shell_text::value_text)
        )));
    };
    match usize::try_from(n) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(ExpressionFault::NNotPositive.error(format!("'n' must be greater than 0, found {n}"))),
    }
}

/// A copy that a state can keep; null for a missing value.
fn keep(value: &Evaluated<'_>) -> Literal {
    Literal::new(value.raw_or_null())
}

/// The kept value as a result.
fn give(literal: Literal) -> Evaluated<'static> {
    Evaluated::Held(literal)
}

/// How many bytes a value takes, roughly.
fn bytes_of(value: &Evaluated<'_>) -> usize {
    const SCALAR: usize = 16;
    match value.raw() {
        Some(RawValue::String(text)) => SCALAR + text.len(),
        Some(RawValue::Document(document)) => SCALAR + document.as_bytes().len(),
        Some(RawValue::Array(array)) => SCALAR + array.as_bytes().len(),
        Some(RawValue::Binary(binary)) => SCALAR + binary.bytes.len(),
        _ => SCALAR,
    }
}
