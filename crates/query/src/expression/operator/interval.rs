//! The interval that a value falls into, for the groups of `$bucket`. Not an operator that users can name.

use std::cmp::Ordering;

use pando_collation::TextOrder;
use pando_document::RawValue;

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
    order: &TextOrder,
) -> Expression {
    let mut arguments = vec![Some(value), default.map(|default| Expression::constant(default.raw()))];
    arguments.extend(boundaries.iter().map(|boundary| Some(Expression::constant(boundary.raw()))));
    Expression::from_call(Call::named(&INTERVAL, arguments).collated_by(order))
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if let Some(value) = value.raw() {
        // The boundaries ascend. Those up to the value stand before the others.
        let is_reached = |index: usize| {
            let boundary = call.expression(index).and_then(Expression::as_constant).unwrap_or(RawValue::Null);
            call.text_order().compare(value, boundary) != Ordering::Less
        };
        let (mut reached, mut beyond) = (1, call.len());
        while beyond - reached > 1 {
            let middle = reached.midpoint(beyond);
            if is_reached(middle) { reached = middle } else { beyond = middle }
        }
        if reached > 1 && beyond < call.len() {
            return call.argument(reached, frame);
        }
    }
    if !call.has(1) {
        return Err(ExpressionFault::SwitchNoMatch
            .error("$switch could not find a matching branch for an input, and no default was specified."));
    }
    call.argument(1, frame)
}
