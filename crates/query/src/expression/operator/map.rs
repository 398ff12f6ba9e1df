//! `$map`: an expression computed for each element of an array.

use std::ops::ControlFlow;

use pando_document::RawValue;

use super::filter::element_name;
use super::named::Names;
use super::{
    Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError, array_of,
    check_computed_bytes,
};

/// Arguments: input, in.
static MAP: Definition = Definition { name: "$map", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$map",
    names: &["input", "in", "as"],
    required: &[
        ("input", ExpressionFault::MapWithoutInput.code()),
        ("in", ExpressionFault::MapWithoutIn.code()),
    ],
    not_object: ExpressionFault::MapNotObject.code(),
    unknown: ExpressionFault::MapUnknownArgument.code(),
};

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let values = NAMES.read(argument)?;
    let [Some(input), Some(each), name] = values.as_slice() else {
        unreachable!("required arguments were checked")
    };
    let (inner, slot) = scope.with_slots(&[element_name(*name)?]);
    let arguments = vec![Some(Expression::parse(*input, scope)?), Some(Expression::parse(*each, &inner)?)];
    Ok(Expression::from_call(Call::binding(&MAP, arguments, slot)))
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let input = call.argument(0, frame)?;
    if input.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let type_name = input.type_name();
    if input.as_array().is_none() {
        return Err(ExpressionFault::MapInputNotArray
            .error(format!("input to $map must be an array not {type_name}")));
    }
    let held = frame.held();
    array_of(|writer| {
        input.for_each_element(|element| {
            frame.write(call.first_slot(), element);
            writer.push(call.argument(1, frame)?.raw_or_null());
            check_computed_bytes(writer.bytes_so_far())?;
            frame.hold_besides(held, writer.bytes_so_far())?;
            Ok(ControlFlow::Continue(()))
        })
    })
}
