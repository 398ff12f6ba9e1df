//! The accumulators of `$group` and of windows: their parsing, and one state for each group.

mod percentile;
mod top;

use std::sync::Arc;

use pando_collation::TextOrder;
use pando_document::{Number, RawBinary, RawDocument, RawValue};

use super::PipelineFault;
use crate::error::QueryError;
use crate::expression::accumulator::{
    Accumulator, AddToSet, Avg, Count, Covariance, Deviation, EachElement, End, Extreme, ExtremeN, First,
    FirstN, Integral, Last, LastN, MergeObjects, PercentileShape, Percentiles, Push, Shape, StdDev, Sum,
    Ties, Top, Wanted,
};
use crate::expression::{Evaluated, Expression, ExpressionFault, Frame, ParseScope, array_of};
use crate::needs::Needs;
use crate::plan::{self, GroupEnd, KeyNulls};
use crate::shell_text;
use crate::sort::SortPattern;

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
    ConcatArrays,
    SetUnion,
    Count,
    MergeObjects,
    StdDev(Deviation),
    Percentiles(PercentileShape),
    FirstN,
    LastN,
    MinN,
    MaxN,
    Top(End, Shape),
    Covariance(Deviation),
    Integral { unit_millis: Option<i64> },
}

/// The shape of an accumulator's states, where they can stand in a list as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateShape {
    Count,
    Sum,
    Average,
    Other,
}

/// The documents that an accumulator takes, of those that come to its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Each of them.
    All,
    /// Each that comes before all others so far in the order of a sort.
    NewFirst,
    /// Each that comes behind all others so far.
    NewLast,
}

/// When the document of an end of a group comes to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Turn {
    /// Before all others.
    First,
    Any,
    /// After all others.
    Last,
}

/// An accumulator of a `$group` or a window, with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct AccumulatorCall {
    kind: Kind,
    argument: Expression,
    /// How many values, of `$firstN` and its kin: an expression over the `_id` of the group.
    n: Option<Expression>,
    /// The order of `$top` and its kin; `None` for that of the documents.
    order: Option<Arc<SortPattern>>,
    /// The ranks of `$percentile`.
    ranks: Arc<[f64]>,
    /// The order of strings.
    text_order: TextOrder,
}

impl AccumulatorCall {
    fn new(kind: Kind, argument: Expression) -> AccumulatorCall {
        AccumulatorCall {
            kind,
            argument,
            n: None,
            order: None,
            ranks: Arc::default(),
            text_order: TextOrder::SIMPLE,
        }
    }

    /// Parses `{$name: argument}` of a `$group`.
    pub(crate) fn parse(
        name: &str,
        argument: RawValue<'_>,
        scope: &ParseScope,
    ) -> Result<AccumulatorCall, QueryError> {
        if matches!(argument, RawValue::Array(_)) {
            return Err(PipelineFault::AccumulatorNotUnary
                .error(format!("The {name} accumulator is a unary operator")));
        }
        match AccumulatorCall::parse_known(name, argument, scope) {
            Some(call) => call,
            None if name == "$mergeObjects" => {
                let argument = Expression::of_pipeline(argument, scope)?;
                Ok(AccumulatorCall::new(Kind::MergeObjects, argument))
            }
            None if name == "$accumulator" => Err(QueryError::no_javascript(name, "other accumulators")),
            None => Err(PipelineFault::UnknownAccumulator.error(format!("unknown group operator '{name}'"))),
        }
    }

    /// Parses an accumulator that groups and windows have; `None` for other names.
    pub(crate) fn parse_known(
        name: &str,
        argument: RawValue<'_>,
        scope: &ParseScope,
    ) -> Option<Result<AccumulatorCall, QueryError>> {
        let call = AccumulatorCall::parse_kind(name, argument, scope)?;
        Some(call.map(|call| AccumulatorCall { text_order: scope.text_order().clone(), ..call }))
    }

    fn parse_kind(
        name: &str,
        argument: RawValue<'_>,
        scope: &ParseScope,
    ) -> Option<Result<AccumulatorCall, QueryError>> {
        let kind = match name {
            "$sum" => Kind::Sum,
            "$avg" => Kind::Avg,
            "$min" => Kind::Min,
            "$max" => Kind::Max,
            "$first" => Kind::First,
            "$last" => Kind::Last,
            "$push" => Kind::Push,
            "$addToSet" => Kind::AddToSet,
            "$concatArrays" => Kind::ConcatArrays,
            "$setUnion" => Kind::SetUnion,
            "$stdDevPop" => Kind::StdDev(Deviation::Population),
            "$stdDevSamp" => Kind::StdDev(Deviation::Sample),
            "$count" => return Some(parse_count(argument)),
            "$firstN" => return Some(parse_n(name, Kind::FirstN, argument, scope)),
            "$lastN" => return Some(parse_n(name, Kind::LastN, argument, scope)),
            "$minN" => return Some(parse_n(name, Kind::MinN, argument, scope)),
            "$maxN" => return Some(parse_n(name, Kind::MaxN, argument, scope)),
            "$top" | "$topN" | "$bottom" | "$bottomN" => return Some(top::parse(name, argument, scope)),
            "$median" | "$percentile" => return Some(percentile::parse(name, argument, scope)),
            _ => return None,
        };
        Some(Expression::of_pipeline(argument, scope).map(|argument| AccumulatorCall::new(kind, argument)))
    }

    /// The same call with its argument folded. The sum of ones is a count.
    pub(crate) fn folded_in(self, scope: &ParseScope) -> Result<AccumulatorCall, QueryError> {
        let argument = self.argument.folded_in(scope)?;
        let is_one = matches!(argument.as_constant(), Some(RawValue::Int32(1)));
        match self.kind {
            Kind::Sum if is_one => Ok(AccumulatorCall::counting()),
            _ => Ok(AccumulatorCall { argument, ..self }),
        }
    }

    /// The count of documents, as `$sortByCount` and `$bucket` need it.
    pub(crate) fn counting() -> AccumulatorCall {
        AccumulatorCall::new(Kind::Count, Expression::constant(RawValue::Null))
    }

    /// The covariance of pairs.
    pub(crate) fn covariance(deviation: Deviation, pairs: Expression) -> AccumulatorCall {
        AccumulatorCall::new(Kind::Covariance(deviation), pairs)
    }

    /// The integral over points, with the unit of dates.
    pub(crate) fn integral(unit_millis: Option<i64>, points: Expression) -> AccumulatorCall {
        AccumulatorCall::new(Kind::Integral { unit_millis }, points)
    }

    /// The least or greatest value.
    pub(crate) fn extreme(wanted: Wanted, argument: Expression) -> AccumulatorCall {
        let kind = if wanted == Wanted::Least { Kind::Min } else { Kind::Max };
        AccumulatorCall::new(kind, argument)
    }

    /// The call that gives the same over documents that are not sorted, and the documents that it takes.
    /// `None` where it needs more than the ends of the order, or may fail on documents between them.
    pub(crate) fn over_unsorted(&self) -> Option<(Takes, AccumulatorCall)> {
        let takes = match self.kind {
            Kind::Count => return Some((Takes::All, self.clone())),
            Kind::First => Takes::NewFirst,
            Kind::Last => Takes::NewLast,
            _ => return None,
        };
        let call = AccumulatorCall { kind: Kind::Last, ..self.clone() };
        self.argument.never_fails().then_some((takes, call))
    }

    /// The documents of a group that it needs, where they stand at an end of an order, and when they come.
    /// `sort` is the order of all documents.
    pub(crate) fn group_end(&self, sort: Option<&SortPattern>) -> Option<(Turn, GroupEnd)> {
        let ordered = |pattern: &SortPattern, end| {
            let (pattern, nulls) = (pattern.clone(), KeyNulls::Ordered);
            GroupEnd { pattern, end, nulls }
        };
        let of_values = |end| {
            let path = self.argument.as_field_path()?.text();
            let pattern = SortPattern::ascending(&path).collated_by(&self.text_order);
            Some((Turn::Any, GroupEnd { pattern, end, nulls: KeyNulls::Ignored }))
        };
        match self.kind {
            Kind::First => Some((Turn::First, ordered(sort?, plan::End::First))),
            Kind::Last => Some((Turn::Last, ordered(sort?, plan::End::Last))),
            Kind::Top(End::Top, Shape::Value) => {
                Some((Turn::Any, ordered(self.order.as_deref()?, plan::End::First)))
            }
            Kind::Top(End::Bottom, Shape::Value) => {
                Some((Turn::Any, ordered(self.order.as_deref()?, plan::End::Last)))
            }
            Kind::Min => of_values(plan::End::First),
            Kind::Max => of_values(plan::End::Last),
            _ => None,
        }
    }

    /// Whether it passes over arguments that may fail, once it has what it wants.
    pub(crate) fn spares_failures(&self) -> bool {
        matches!(self.kind, Kind::First) && !self.argument.never_fails()
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

    /// Whether a state has the same few bytes whatever it has taken in.
    pub(crate) fn has_small_states(&self) -> bool {
        matches!(
            self.kind,
            Kind::Sum
                | Kind::Avg
                | Kind::Min
                | Kind::Max
                | Kind::First
                | Kind::Last
                | Kind::Count
                | Kind::StdDev(_)
                | Kind::Covariance(_)
                | Kind::Integral { .. }
        )
    }

    /// The state for a window that slides.
    ///
    /// # Errors
    /// `n` is no positive integer.
    pub(crate) fn start_in_sliding_window(&self) -> Result<Box<dyn Accumulator>, QueryError> {
        match self.kind {
            Kind::Top(End::Bottom, shape) => {
                let n = self.count_of_values(RawValue::Null)?;
                Ok(Box::new(Top::new(End::Bottom, shape, n).with_ties(Ties::Later)))
            }
            Kind::Max => {
                Ok(Box::new(Extreme::new(Wanted::Greatest, &self.text_order).with_ties(Ties::Later)))
            }
            Kind::MaxN => {
                let n = self.count_of_values(RawValue::Null)?;
                let greatest = ExtremeN::new(Wanted::Greatest, n, &self.text_order);
                Ok(Box::new(greatest.with_ties(Ties::Later)))
            }
            _ => self.start(RawValue::Null),
        }
    }

    /// How many values a group with this `_id` gives.
    fn count_of_values(&self, id: RawValue<'_>) -> Result<usize, QueryError> {
        self.n.as_ref().map_or(Ok(1), |n| count_of_n(n, id))
    }

    /// The state for a new group with this `_id`.
    ///
    /// # Errors
    /// `n` is no positive integer.
    pub(crate) fn start(&self, id: RawValue<'_>) -> Result<Box<dyn Accumulator>, QueryError> {
        let n = self.count_of_values(id)?;
        Ok(match self.kind {
            Kind::Sum => Box::new(Sum::default()),
            Kind::Avg => Box::new(Avg::default()),
            Kind::Min => Box::new(Extreme::new(Wanted::Least, &self.text_order)),
            Kind::Max => Box::new(Extreme::new(Wanted::Greatest, &self.text_order)),
            Kind::First => Box::new(First::default()),
            Kind::Last => Box::new(Last::default()),
            Kind::Push => Box::new(Push::default()),
            Kind::AddToSet => Box::new(AddToSet::new(&self.text_order)),
            Kind::ConcatArrays => Box::new(EachElement::concatenated()),
            Kind::SetUnion => Box::new(EachElement::united(&self.text_order)),
            Kind::Count => Box::new(Count::default()),
            Kind::MergeObjects => Box::new(MergeObjects::default()),
            Kind::StdDev(deviation) => Box::new(StdDev::new(deviation)),
            Kind::Percentiles(shape) => Box::new(Percentiles::new(&self.ranks, shape)),
            Kind::FirstN => Box::new(FirstN::new(n)),
            Kind::LastN => Box::new(LastN::new(n)),
            Kind::MinN => Box::new(ExtremeN::new(Wanted::Least, n, &self.text_order)),
            Kind::MaxN => Box::new(ExtremeN::new(Wanted::Greatest, n, &self.text_order)),
            Kind::Top(end, shape) => Box::new(Top::new(end, shape, n)),
            Kind::Covariance(deviation) => Box::new(Covariance::new(deviation)),
            Kind::Integral { unit_millis } => Box::new(Integral::new(unit_millis)),
        })
    }

    /// Whether the result is the same in whatever order the values come, and whether a missing one is null.
    pub(crate) fn sees_values_only(&self) -> bool {
        let is_symmetric = matches!(
            self.kind,
            Kind::Sum | Kind::Avg | Kind::Min | Kind::Max | Kind::Count | Kind::StdDev(_)
        );
        is_symmetric && self.argument.is_plain()
    }

    /// Whether the document is read by paths only, never as a whole.
    pub(crate) fn reads_paths_only(&self) -> bool {
        self.order.is_none() && self.argument.reads_paths_only()
    }

    /// Whether its argument has the same value whatever that of a field is, and never fails.
    pub(crate) fn is_independent_of(&self, field: &str) -> bool {
        self.argument.never_fails() && !self.argument.reads_field(field)
    }

    /// The value of its argument, as `feed` takes it.
    pub(crate) fn argument_value<'a>(&'a self, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
        self.argument.run(frame)
    }

    /// The number that its argument is in a document; `None` of another value.
    pub(crate) fn argument_number(&self, document: &RawDocument) -> Result<Option<Number>, QueryError> {
        Ok(self.argument.evaluate(document)?.as_number())
    }

    /// Adds the fields that the arguments read.
    pub(crate) fn add_needs(&self, needs: &mut Needs) {
        self.argument.add_needs(needs);
        if let Some(order) = &self.order {
            order.parts().iter().for_each(|part| needs.add(part.path.as_str()));
        }
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
        let value = self.argument.run(frame)?;
        if !matches!(self.kind, Kind::Top(..)) {
            return state.add_times(&value, times);
        }
        let mut key = Vec::new();
        if let Some(order) = &self.order {
            order.append_inner_key(frame.root(), &mut key)?;
        }
        let pair = array_of(|writer| {
            writer.push(RawValue::Binary(RawBinary { subtype: 0, bytes: &key }));
            writer.push(value.raw_or_null());
            Ok(())
        })?;
        state.add_times(&pair, times)
    }
}

fn parse_count(argument: RawValue<'_>) -> Result<AccumulatorCall, QueryError> {
    match argument {
        RawValue::Document(nothing) if nothing.is_empty() => Ok(AccumulatorCall::counting()),
        _ => Err(QueryError::type_mismatch("$count takes no arguments, i.e. $count:{}")),
    }
}

/// `{input: expression, n: expression over the group}`.
fn parse_n(
    name: &str,
    kind: Kind,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<AccumulatorCall, QueryError> {
    let RawValue::Document(options) = argument else {
        return Err(ExpressionFault::NNotObject.error(format!(
            "specification must be an object; found {name}: {}",
            shell_text::value_text(argument)
        )));
    };
    let (mut input, mut n) = (None, None);
    for option in options.iter() {
        match option? {
            ("input", value) => input = Some(Expression::of_pipeline(value, scope)?),
            ("n", value) => n = Some(Expression::of_pipeline(value, scope)?),
            (other, _) => {
                return Err(ExpressionFault::NUnknownArgument
                    .error(format!("Unknown argument for 'n' operator: {other}")));
            }
        }
    }
    let n = n.ok_or_else(|| ExpressionFault::NWithoutN.error("Missing value for 'n'"))?;
    let argument = input.ok_or_else(|| ExpressionFault::NWithoutInput.error("Missing value for 'input'"))?;
    Ok(AccumulatorCall { n: Some(n), ..AccumulatorCall::new(kind, argument) })
}

/// The value of `n` for a group: its expression sees the `_id` of the group, if that is a document.
fn count_of_n(n: &Expression, id: RawValue<'_>) -> Result<usize, QueryError> {
    let root = id.as_document().unwrap_or(RawDocument::empty());
    let value = n.evaluate(root)?;
    let text = || value.raw().map_or_else(|| "MISSING".to_owned(), shell_text::value_text);
    let Some(number) = value.as_number() else {
        return Err(ExpressionFault::NNotNumber
            .error(format!("Value for 'n' must be of integral type, but found {}", text())));
    };
    let Some(n) = number.to_i64_exact() else {
        return Err(ExpressionFault::NNotInteger
            .error(format!("Value for 'n' must be of integral type, but found {}", text())));
    };
    match usize::try_from(n) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(ExpressionFault::NNotPositive.error(format!("'n' must be greater than 0, found {n}"))),
    }
}
