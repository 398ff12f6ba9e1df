//! `$setField` and `$unsetField`: a document with one field changed, by a name that may
//! hold dots and dollar signs.

use pando_document::RawValue;

use super::named::Names;
use super::{
    Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError,
    document_of,
};

/// Arguments: field (a constant), input, value.
static SET_FIELD: Definition = Definition { name: "$setField", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$setField",
    names: &["field", "input", "value"],
    required: &[
        ("field", ExpressionFault::SetFieldWithoutField.code()),
        ("value", ExpressionFault::SetFieldWithoutValue.code()),
        ("input", ExpressionFault::SetFieldWithoutInput.code()),
    ],
    not_object: ExpressionFault::SetFieldNotObject.code(),
    unknown: ExpressionFault::SetFieldUnknownArgument.code(),
};

static UNSET_NAMES: Names = Names {
    operator: "$unsetField",
    names: &["field", "input"],
    required: &[
        ("field", ExpressionFault::SetFieldWithoutField.code()),
        ("input", ExpressionFault::SetFieldWithoutInput.code()),
    ],
    not_object: ExpressionFault::SetFieldNotObject.code(),
    unknown: ExpressionFault::SetFieldUnknownArgument.code(),
};

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    build(NAMES.parse(argument, scope)?)
}

pub(super) fn parse_unset(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    build(UNSET_NAMES.parse(argument, scope)?)
}

fn build(arguments: Vec<Option<Expression>>) -> Result<Expression, QueryError> {
    if let Some(Some(field)) = arguments.first() {
        check_name(field)?;
    }
    Ok(Expression::from_call(Call::named(&SET_FIELD, arguments)))
}

fn check_name(field: &Expression) -> Result<(), QueryError> {
    if let Some(path) = field.as_field_path() {
        return Err(ExpressionFault::SetFieldIsPath.error(format!(
            "'$CURRENT.{0}' is a field path reference which is not allowed in this context. Did you mean {{$literal: \
             '$CURRENT.{0}'}}?",
            path.text()
        )));
    }
    match field.as_constant() {
        Some(RawValue::String(name)) if name.contains('\0') => {
            Err(QueryError::failed_to_parse("$setField requires 'field' to have no embedded null byte"))
        }
        Some(RawValue::String(_)) => Ok(()),
        Some(other) => Err(ExpressionFault::SetFieldNotString.error(format!(
            "$setField requires 'field' to evaluate to type String, but got {}",
            other.element_type().alias()
        ))),
        None => Err(ExpressionFault::SetFieldNotConstant
            .error("$setField requires 'field' to evaluate to a constant, but got a non-constant argument")),
    }
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    // Without an object the value is not even evaluated.
    let input = call.argument(1, frame)?;
    if input.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(document) = input.as_document() else {
        return Err(ExpressionFault::SetFieldInputNotObject
            .error("$setField requires 'input' to evaluate to type Object"));
    };
    let (field, value) = (call.argument(0, frame)?, call.argument(2, frame)?);
    let Some(name) = field.as_str() else { unreachable!("the parser wants a constant string") };
    document_of(|writer| {
        let mut is_found = false;
        for element in document.iter() {
            let (known, old) = element?;
            match (known == name, value.raw()) {
                (false, _) => writer.append(known, old),
                (true, Some(value)) => writer.append(name, value),
                (true, None) => {}
            }
            is_found |= known == name;
        }
        if let (false, Some(value)) = (is_found, value.raw()) {
            writer.append(name, value);
        }
        Ok(())
    })
}
