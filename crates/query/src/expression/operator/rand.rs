//! `$rand`: a random number, at least 0 and below 1. Each evaluation draws another one from the dice of the
//! request.

use pando_document::{Number, RawValue};

use super::{Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError};

static RAND: Definition = Definition { name: "$rand", arity: Arity::Any, run };

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let is_empty = match argument {
        RawValue::Document(nothing) => nothing.is_empty(),
        RawValue::Array(nothing) => nothing.is_empty(),
        _ => {
            return Err(
                ExpressionFault::ExpectedObject.error("invalid parameter: expected an object ($rand)")
            );
        }
    };
    if !is_empty {
        return Err(ExpressionFault::RandArguments.error("$rand does not currently accept arguments"));
    }
    Ok(Expression::from_call(Call::named(&RAND, Vec::new()).with_dice(scope.dice())))
}

fn run<'a>(call: &'a Call, _: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    Ok(Evaluated::number(Number::Double(call.roll())))
}
