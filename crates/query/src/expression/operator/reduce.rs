//! `$reduce`: an expression of the value so far and the next element, from the first element to the last.

use std::ops::ControlFlow;

use pando_document::RawValue;

use super::named::Names;
use super::{Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError};

/// Arguments: input, initialValue, in.
static REDUCE: Definition = Definition { name: "$reduce", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$reduce",
    names: &["input", "initialValue", "in"],
    required: &[
        ("input", ExpressionFault::ReduceWithoutInput.code()),
        ("initialValue", ExpressionFault::ReduceWithoutInitialValue.code()),
        ("in", ExpressionFault::ReduceWithoutIn.code()),
    ],
    not_object: ExpressionFault::ReduceNotObject.code(),
    unknown: ExpressionFault::ReduceUnknownArgument.code(),
};

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let values = NAMES.read(argument)?;
    let [Some(input), Some(initial), Some(each)] = values.as_slice() else {
        unreachable!("required arguments were checked")
    };
    let (inner, slot) = scope.with_slots(&["this", "value"]);
    let arguments = vec![
        Some(Expression::parse(*input, scope)?),
        Some(Expression::parse(*initial, scope)?),
        Some(Expression::parse(*each, &inner)?),
    ];
    Ok(Expression::from_call(Call::binding(&REDUCE, arguments, slot)))
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let input = call.argument(0, frame)?;
    if input.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let type_name = input.type_name();
    if input.as_array().is_none() {
        return Err(ExpressionFault::ReduceInputNotArray
            .error(format!("$reduce requires that 'input' be an array, found: {type_name}")));
    }
    let held = frame.held();
    let mut value = call.argument(1, frame)?;
    input.for_each_element(|element| {
        frame.write(call.first_slot(), element);
        frame.write(call.first_slot() + 1, std::mem::replace(&mut value, Evaluated::Missing));
        // The value so far is in its slot now.
        frame.give_back(held);
        value = call.argument(2, frame)?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(value)
}
