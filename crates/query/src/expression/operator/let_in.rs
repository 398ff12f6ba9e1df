//! `$let`: variables for one expression. They do not see each other.

use pando_document::RawValue;

use super::named::Names;
use super::{
    Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError,
    check_user_name,
};

/// Arguments: the values of the variables, then the expression.
static LET: Definition = Definition { name: "$let", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$let",
    names: &["vars", "in"],
    required: &[
        ("vars", ExpressionFault::LetWithoutVars.code()),
        ("in", ExpressionFault::LetWithoutIn.code()),
    ],
    not_object: ExpressionFault::LetNotObject.code(),
    unknown: ExpressionFault::LetUnknownArgument.code(),
};

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let values = NAMES.read(argument)?;
    let [Some(variables), Some(body)] = values.as_slice() else {
        unreachable!("required arguments were checked")
    };
    let variables = match variables {
        RawValue::Document(variables) => variables,
        // As in MongoDB the elements of an array are fields: its first one has the name '0'.
        RawValue::Array(variables) => variables.as_document(),
        _ => {
            return Err(ExpressionFault::ExpectedObject.error("invalid parameter: expected an object (vars)"));
        }
    };
    let mut names = Vec::new();
    let mut arguments = Vec::new();
    for variable in variables.iter() {
        let (name, value) = variable?;
        check_user_name(name)?;
        names.push(name);
        arguments.push(Some(Expression::parse(value, scope)?));
    }
    let (inner, slot) = scope.with_slots(&names);
    arguments.push(Some(Expression::parse(*body, &inner)?));
    Ok(Expression::from_call(Call::binding(&LET, arguments, slot)))
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (body, held) = (call.len() - 1, frame.held());
    // All values first: evaluating one may use the slots of the others for its own variables.
    let mut values = Vec::with_capacity(body);
    for index in 0..body {
        values.push(call.argument(index, frame)?);
    }
    for (offset, value) in values.into_iter().enumerate() {
        frame.write(call.first_slot() + offset, value);
    }
    // The slots have them now.
    frame.give_back(held);
    call.argument(body, frame)
}
