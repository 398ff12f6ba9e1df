//! The interval that a value falls into, for the groups of `$bucket`. Not an operator that users can name.

use std::cmp::Ordering;

use pando_document::compare_values;

use super::super::Expression;
use super::super::call::{Arity, Call, Definition};
use super::super::evaluated::Evaluated;
use super::super::fault::ExpressionFault;
use super::super::frame::Frame;
use crate::error::QueryError;
use crate::literal::Literal;

static INTERVAL: Definition = Definition { name: "$bucket", arity: Arity::Any, run };

/// The lower end of the interval of ascending boundaries that a value falls into; `default` outside of all.
pub(crate) fn interval_of(
    value: Expression,
    boundaries: Vec<Literal>,
    default: Option<Literal>,
) -> Expression {
    let mut arguments = vec![Some(value), default.map(|default| Expression::constant(default.raw()))];
    arguments.extend(boundaries.iter().map(|boundary| Some(Expression::constant(boundary.raw()))));
    Expression::from_call(Call::named(&INTERVAL, arguments))
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    for index in (2..call.len().saturating_sub(1)).rev() {
        let lower = call.argument(index, frame)?;
        let upper = call.argument(index + 1, frame)?;
        let within = value.raw().is_some_and(|value| {
            compare_values(value, lower.raw_or_null()) != Ordering::Less
                && compare_values(value, upper.raw_or_null()) == Ordering::Less
        });
        if within {
            return Ok(lower);
        }
    }
    if !call.has(1) {
        return Err(ExpressionFault::SwitchNoMatch
            .error("$switch could not find a matching branch for an input, and no default was specified."));
    }
    call.argument(1, frame)
}
