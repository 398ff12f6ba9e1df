//! `$switch`: the expression of the first branch whose case is true, or the default.

use pando_document::{RawDocument, RawValue};

use super::{Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError};

/// Arguments: the default, then case and expression of each branch.
static SWITCH: Definition = Definition { name: "$switch", arity: Arity::Any, run };

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let RawValue::Document(given) = argument else {
        return Err(ExpressionFault::SwitchNotObject.error(format!(
            "$switch requires an object as an argument, found: {}",
            argument.element_type().alias()
        )));
    };
    let mut arguments = vec![None];
    for element in given.iter() {
        match element? {
            ("branches", RawValue::Array(branches)) => {
                for branch in branches.iter() {
                    arguments.extend(parse_branch(branch?, scope)?);
                }
            }
            ("branches", other) => {
                return Err(ExpressionFault::SwitchBranchesNotArray.error(format!(
                    "$switch expected an array for 'branches', found: {}",
                    other.element_type().alias()
                )));
            }
            ("default", value) => arguments[0] = Some(Expression::parse(value, scope)?),
            (name, _) => {
                return Err(ExpressionFault::SwitchUnknownArgument
                    .error(format!("$switch found an unknown argument: {name}")));
            }
        }
    }
    if arguments.len() == 1 {
        return Err(ExpressionFault::SwitchNoBranches.error("$switch requires at least one branch."));
    }
    Ok(Expression::from_call(Call::named(&SWITCH, arguments)))
}

fn parse_branch(branch: RawValue<'_>, scope: &ParseScope) -> Result<[Option<Expression>; 2], QueryError> {
    let RawValue::Document(branch) = branch else {
        return Err(ExpressionFault::SwitchBranchNotObject.error(format!(
            "$switch expected each branch to be an object, found: {}",
            branch.element_type().alias()
        )));
    };
    let (case, then) = parse_fields(branch, scope)?;
    if case.is_none() {
        return Err(ExpressionFault::SwitchBranchWithoutCase
            .error("$switch requires each branch have a 'case' expression"));
    }
    if then.is_none() {
        return Err(ExpressionFault::SwitchBranchWithoutThen
            .error("$switch requires each branch have a 'then' expression."));
    }
    Ok([case, then])
}

fn parse_fields(
    branch: &RawDocument,
    scope: &ParseScope,
) -> Result<(Option<Expression>, Option<Expression>), QueryError> {
    let (mut case, mut then) = (None, None);
    for field in branch.iter() {
        match field? {
            ("case", value) => case = Some(Expression::parse(value, scope)?),
            ("then", value) => then = Some(Expression::parse(value, scope)?),
            (name, _) => {
                return Err(ExpressionFault::SwitchBranchUnknownField
                    .error(format!("$switch found an unknown argument to a branch: {name}")));
            }
        }
    }
    Ok((case, then))
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    for case in (1..call.len()).step_by(2) {
        if call.argument(case, frame)?.to_bool() {
            return call.argument(case + 1, frame);
        }
    }
    if !call.has(0) {
        return Err(ExpressionFault::SwitchNoMatch
            .error("$switch could not find a matching branch for an input, and no default was specified."));
    }
    call.argument(0, frame)
}
