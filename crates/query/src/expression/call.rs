//! A call of an operator: which one, and its arguments.
//!
//! Every operator is a [`Definition`]: a name, how many arguments it takes, and the function that computes
//! it. Operators with named arguments (`{$cond: {if, then, else}}`) are parsed by their own files into the
//! same list, in a fixed order, with `None` for missing arguments. Operators that bind variables keep the
//! first of their slots in the call.

use std::sync::Arc;

use pando_collation::TextOrder;
use pando_document::RawValue;

use super::array_table::{ArrayTable, TableOnDemand};
use super::dice::Dice;
use super::evaluated::Evaluated;
use super::fault::ExpressionFault;
use super::frame::Frame;
use super::scope::ParseScope;
use super::{EvaluationWatch, Expression, parse_each};
use crate::error::QueryError;
use crate::regular_expression::RegularExpression;

/// How many arguments an operator takes in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arity {
    Any,
    Exactly(usize),
    Between(usize, usize),
    /// Exactly one, with an error of its own for another number.
    Single(ExpressionFault),
    /// With an error of the operator's own for fewer.
    AtLeastTwo(ExpressionFault),
}

/// One operator.
#[derive(Debug)]
pub(super) struct Definition {
    /// With its `$`.
    pub(super) name: &'static str,
    pub(super) arity: Arity,
    pub(super) run: for<'a, 'f> fn(&'a Call, &'f mut Frame<'a>) -> Result<Evaluated<'a>, QueryError>,
}

/// An operator with its arguments.
#[derive(Clone, Debug)]
pub(super) struct Call {
    definition: &'static Definition,
    arguments: Vec<Option<Expression>>,
    first_slot: usize,
    /// Of the operators with regular expressions, if the pattern is constant.
    pattern: Option<RegularExpression>,
    /// Of the operators that look things up in an array, if the array is constant.
    table: TableOnDemand,
    watch: Option<EvaluationWatch>,
    /// Of `$rand`.
    dice: Option<Dice>,
    order: TextOrder,
}

impl Call {
    /// A call whose arguments were parsed by name.
    pub(super) fn named(definition: &'static Definition, arguments: Vec<Option<Expression>>) -> Call {
        Call::binding(definition, arguments, 0)
    }

    /// A call that binds variables, from this slot on.
    pub(super) fn binding(
        definition: &'static Definition,
        arguments: Vec<Option<Expression>>,
        first_slot: usize,
    ) -> Call {
        let table = TableOnDemand::default();
        Call {
            definition,
            arguments,
            first_slot,
            pattern: None,
            table,
            watch: None,
            dice: None,
            order: TextOrder::SIMPLE,
        }
    }

    /// The same call, whose evaluation this watch may end.
    pub(super) fn watched_by(self, watch: &EvaluationWatch) -> Call {
        Call { watch: Some(watch.clone()), ..self }
    }

    /// The same call, in which strings compare in this order.
    pub(super) fn collated_by(self, order: &TextOrder) -> Call {
        Call { order: order.clone(), ..self }
    }

    /// The order of strings.
    #[inline]
    pub(super) fn text_order(&self) -> &TextOrder {
        &self.order
    }

    /// The same call with a compiled pattern.
    pub(super) fn with_pattern(self, pattern: Option<RegularExpression>) -> Call {
        Call { pattern, ..self }
    }

    /// The same call with dice.
    pub(super) fn with_dice(self, dice: Dice) -> Call {
        Call { dice: Some(dice), ..self }
    }

    /// A random number, at least 0 and below 1.
    pub(super) fn roll(&self) -> f64 {
        self.dice.as_ref().map_or(0.0, Dice::roll)
    }

    /// The compiled pattern.
    pub(super) fn pattern(&self) -> Option<&RegularExpression> {
        self.pattern.as_ref()
    }

    /// A call whose arguments stand in a list, or alone.
    pub(super) fn listed(
        definition: &'static Definition,
        argument: RawValue<'_>,
        scope: &ParseScope,
    ) -> Result<Call, QueryError> {
        let arguments = match argument {
            RawValue::Array(list) => parse_each(list, scope)?,
            single => vec![Expression::parse(single, scope)?],
        };
        let (name, count) = (definition.name, arguments.len());
        match definition.arity {
            Arity::Exactly(wanted) if count != wanted => Err(ExpressionFault::WrongArgumentCount.error(format!("Expression {name} takes exactly {wanted} arguments. {count} were passed in."),
            )),
            Arity::Between(least, most) if !(least..=most).contains(&count) => {
                Err(ExpressionFault::ArgumentCountOutOfRange.error(format!(
                    "Expression {name} takes at least {least} arguments, and at most {most}, but {count} were passed \
                     in."
                )))
            }
            Arity::Single(fault) if count != 1 => {
                Err(fault.error(format!("{name} requires a single argument, got {count}")))
            }
            Arity::AtLeastTwo(fault) if count < 2 => {
                Err(fault.error(format!("{name} needs at least two arguments, had: {count}")))
            }
            _ => Ok(Call::named(definition, arguments.into_iter().map(Some).collect())),
        }
    }

    /// Computes the operator.
    pub(super) fn run<'a>(&'a self, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
        let held = frame.held();
        let value = (self.definition.run)(self, frame);
        frame.give_back(held);
        value
    }

    /// The operator's name, for messages.
    pub(super) fn name(&self) -> &'static str {
        self.definition.name
    }

    /// How many arguments there are, left out ones included.
    pub(super) fn len(&self) -> usize {
        self.arguments.len()
    }

    /// The arguments that are there.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &Expression> {
        self.arguments.iter().flatten()
    }

    /// The value of an argument; missing if it was left out.
    pub(super) fn argument<'a>(
        &'a self,
        index: usize,
        frame: &mut Frame<'a>,
    ) -> Result<Evaluated<'a>, QueryError> {
        match self.arguments.get(index) {
            Some(Some(expression)) => {
                let value = expression.run(frame)?;
                if frame.count_step(&value) {
                    self.check()?;
                }
                frame.hold(value.computed_bytes())?;
                Ok(value)
            }
            _ => Ok(Evaluated::Missing),
        }
    }

    /// Counts work on so many bytes, and fails if the operation has to end.
    pub(super) fn count_work(&self, frame: &mut Frame<'_>, bytes: usize) -> Result<(), QueryError> {
        if frame.count_bytes(bytes) { self.check() } else { Ok(()) }
    }

    /// Fails if the operation that the evaluation works for has to end.
    #[cold]
    pub(super) fn check(&self) -> Result<(), QueryError> {
        self.watch.as_ref().map_or(Ok(()), EvaluationWatch::check)
    }

    /// The table of the array that an argument has given, where it is asked for often. An operator asks for
    /// one and the same argument only.
    pub(super) fn array_table<'a>(
        &'a self,
        index: usize,
        value: &Evaluated<'a>,
        frame: &Frame<'a>,
    ) -> Result<Option<Arc<ArrayTable>>, QueryError> {
        match (self.expression(index).and_then(Expression::as_constant), value.as_array()) {
            (Some(_), Some(array)) => self.table.ask(array),
            _ => frame.array_table(value),
        }
    }

    /// Whether an argument was given.
    pub(super) fn has(&self, index: usize) -> bool {
        matches!(self.arguments.get(index), Some(Some(_)))
    }

    /// An argument as it was parsed.
    pub(super) fn expression(&self, index: usize) -> Option<&Expression> {
        self.arguments.get(index).and_then(Option::as_ref)
    }

    /// The first of the slots that this call binds.
    pub(super) fn first_slot(&self) -> usize {
        self.first_slot
    }

    /// The same call with each argument changed.
    pub(super) fn map_arguments(
        self,
        mut change: impl FnMut(Expression) -> Result<Expression, QueryError>,
    ) -> Result<Call, QueryError> {
        let changed = self.arguments.into_iter().map(|argument| argument.map(&mut change).transpose());
        Ok(Call { arguments: changed.collect::<Result<_, _>>()?, ..self })
    }

    /// The arguments, `None` for each that was left out.
    pub(super) fn into_arguments(self) -> Vec<Option<Expression>> {
        self.arguments
    }

    /// A call of the same operator that has no arguments yet.
    pub(super) fn without_arguments(&self) -> Call {
        Call {
            definition: self.definition,
            arguments: Vec::new(),
            first_slot: self.first_slot,
            pattern: self.pattern.clone(),
            table: TableOnDemand::default(),
            watch: self.watch.clone(),
            dice: self.dice.clone(),
            order: self.order.clone(),
        }
    }

    /// The same call of these arguments.
    pub(super) fn with_arguments(self, arguments: Vec<Option<Expression>>) -> Call {
        Call { arguments, ..self }
    }
}
