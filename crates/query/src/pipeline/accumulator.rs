//! The accumulators of `$group`: their parsing, and one state for each group.

use pando_document::{RawDocument, RawValue};

use super::PipelineFault;
use crate::error::QueryError;
use crate::expression::accumulator::{
    Accumulator, AddToSet, Avg, Count, Deviation, Extreme, ExtremeN, First, FirstN, Last, LastN,
    MergeObjects, Push, StdDev, Sum, Wanted,
};
use crate::expression::{Expression, ExpressionFault, Frame, ParseScope};
use crate::needs::Needs;
use crate::shell_text;

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

/// The shape of an accumulator's states, where they can stand in a list as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateShape {
    Count,
    Sum,
    Average,
    Other,
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

    /// The same call with its argument folded. The sum of ones is a count.
    pub(crate) fn folded_in(self, scope: &ParseScope) -> Result<AccumulatorCall, QueryError> {
        let argument = self.argument.folded_in(scope)?;
        let is_one = matches!(argument.as_constant(), Some(RawValue::Int32(1)));
        match self.kind {
            Kind::Sum if is_one => Ok(AccumulatorCall::counting()),
            kind => Ok(AccumulatorCall { kind, argument }),
        }
    }

    /// The count of documents, as `$sortByCount` and `$bucket` need it.
    pub(crate) fn counting() -> AccumulatorCall {
        AccumulatorCall { kind: Kind::Count, argument: Expression::constant(RawValue::Null) }
    }

    /// The shape of its states.
    pub(crate) fn state_shape(&self) -> StateShape {
        match self.kind {
            Kind::Count => StateShape::Count,
            Kind::Sum => StateShape::Sum,
            Kind::Avg => StateShape::Average,
            _ => StateShape::Other,
        }
    }

    /// The state for a new group.
    pub(crate) fn start(&self) -> Box<dyn Accumulator> {
        match self.kind {
            Kind::Sum => Box::new(Sum::default()),
            Kind::Avg => Box::new(Avg::default()),
            Kind::Min => Box::new(Extreme::new(Wanted::Least)),
            Kind::Max => Box::new(Extreme::new(Wanted::Greatest)),
            Kind::First => Box::new(First::default()),
            Kind::Last => Box::new(Last::default()),
            Kind::Push => Box::new(Push::default()),
            Kind::AddToSet => Box::new(AddToSet::default()),
            Kind::Count => Box::new(Count::default()),
            Kind::MergeObjects => Box::new(MergeObjects::default()),
            Kind::StdDevPop => Box::new(StdDev::new(Deviation::Population)),
            Kind::StdDevSamp => Box::new(StdDev::new(Deviation::Sample)),
            Kind::FirstN(n) => Box::new(FirstN::new(n)),
            Kind::LastN(n) => Box::new(LastN::new(n)),
            Kind::MinN(n) => Box::new(ExtremeN::new(Wanted::Least, n)),
            Kind::MaxN(n) => Box::new(ExtremeN::new(Wanted::Greatest, n)),
        }
    }

    /// Whether the result is the same in whatever order the values come, and whether a missing one is null.
    pub(crate) fn sees_values_only(&self) -> bool {
        let is_symmetric = match self.kind {
            Kind::Sum
            | Kind::Avg
            | Kind::Min
            | Kind::Max
            | Kind::Count
            | Kind::StdDevPop
            | Kind::StdDevSamp => true,
            Kind::First
            | Kind::Last
            | Kind::Push
            | Kind::AddToSet
            | Kind::MergeObjects
            | Kind::FirstN(_)
            | Kind::LastN(_)
            | Kind::MinN(_)
            | Kind::MaxN(_) => false,
        };
        is_symmetric && self.argument.is_plain()
    }

    /// Adds the fields that the argument reads.
    pub(crate) fn add_needs(&self, needs: &mut Needs) {
        self.argument.add_needs(needs);
    }

    /// Feeds the document of a frame to a state, as often as it stands for.
    pub(crate) fn feed<'a>(
        &'a self,
        state: &mut dyn Accumulator,
        frame: &mut Frame<'a>,
        times: u64,
    ) -> Result<(), QueryError> {
        // A full state takes no more values, so they are not evaluated either: an evaluation may fail.
        if state.is_full() {
            return Ok(());
        }
        state.add_times(&self.argument.run(frame)?, times)
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
