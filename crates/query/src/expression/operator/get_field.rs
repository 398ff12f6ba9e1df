//! `$getField`: a field by a name that may hold dots and dollar signs. Missing where
//! the input is no document.

use pando_document::RawValue;

use super::named::Names;
use super::{Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError};

/// Arguments: field (a constant), input.
static GET_FIELD: Definition = Definition { name: "$getField", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$getField",
    names: &["field", "input"],
    required: &[
        ("field", ExpressionFault::GetFieldWithoutField.code()),
        ("input", ExpressionFault::GetFieldWithoutInput.code()),
    ],
    not_object: ExpressionFault::GetFieldNotString.code(),
    unknown: ExpressionFault::GetFieldUnknownArgument.code(),
};

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let (field, input) = match argument {
        RawValue::Document(given) if !is_operator(given)? => {
            let values = NAMES.read(argument)?;
            let [Some(field), Some(input)] = values.as_slice() else {
                unreachable!("required arguments were checked")
            };
            (*field, *input)
        }
        // The name alone: of the root.
        name => (name, RawValue::String("$$CURRENT")),
    };
    let field = Expression::parse(field, scope)?;
    check_name(&field)?;
    let arguments = vec![Some(field), Some(Expression::parse(input, scope)?)];
    Ok(Expression::from_call(Call::named(&GET_FIELD, arguments)))
}

fn is_operator(document: &pando_document::RawDocument) -> Result<bool, QueryError> {
    match document.iter().next() {
        Some(first) => Ok(first?.0.starts_with('$')),
        None => Ok(false),
    }
}

fn check_name(field: &Expression) -> Result<(), QueryError> {
    if let Some(path) = field.as_field_path() {
        return Err(ExpressionFault::GetFieldIsPath.error(format!(
            "'$CURRENT.{0}' is a field path reference which is not allowed in this context. Did you mean {{$literal: \
             '$CURRENT.{0}'}}?",
            path.text()
        )));
    }
    match field.as_constant() {
        Some(RawValue::String(_)) => Ok(()),
        Some(other) => Err(ExpressionFault::GetFieldNotString.error(format!(
            "$getField requires 'field' to evaluate to type String, but got {}",
            other.element_type().alias()
        ))),
        None => Err(ExpressionFault::GetFieldNotConstant
            .error("$getField requires 'field' to evaluate to a constant, but got a non-constant argument")),
    }
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let field = call.argument(0, frame)?;
    let input = call.argument(1, frame)?;
    let Some(name) = field.as_str() else { unreachable!("the parser wants a constant string") };
    match input {
        Evaluated::Raw(RawValue::Document(document)) => {
            Ok(frame.field(document, name)?.map_or(Evaluated::Missing, Evaluated::Raw))
        }
        computed if computed.is_nullish() && !matches!(computed, Evaluated::Missing) => Ok(Evaluated::NULL),
        computed => match computed.as_document() {
            Some(document) => Ok(document.get(name)?.map_or(Evaluated::Missing, Evaluated::owned)),
            None => Ok(Evaluated::Missing),
        },
    }
}
