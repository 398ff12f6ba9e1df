//! `$cond`: one of two expressions, as a condition says; the other is not evaluated.

use pando_document::RawValue;

use super::named::Names;
use super::{Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError};

static COND: Definition = Definition { name: "$cond", arity: Arity::Exactly(3), run };

static NAMES: Names = Names {
    operator: "$cond",
    names: &["if", "then", "else"],
    required: &[
        ("if", ExpressionFault::CondWithoutIf.code()),
        ("then", ExpressionFault::CondWithoutThen.code()),
        ("else", ExpressionFault::CondWithoutElse.code()),
    ],
    not_object: ExpressionFault::WrongArgumentCount.code(),
    unknown: ExpressionFault::CondUnknownArgument.code(),
};

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let call = match argument {
        RawValue::Document(_) => Call::named(&COND, NAMES.parse(argument, scope)?),
        listed => Call::listed(&COND, listed, scope)?,
    };
    Ok(Expression::from_call(call))
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let chosen = if call.argument(0, frame)?.to_bool() { 1 } else { 2 };
    call.argument(chosen, frame)
}
