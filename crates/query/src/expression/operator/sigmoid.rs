//! `$sigmoid`: `1 / (1 + e^-x)`, a double. The argument is an expression or `{input, onNull}`.

use pando_document::{Number, RawValue};

use super::{
    Arity, Call, Definition, ErrorCode, Evaluated, Expression, ExpressionFault, Frame, ParseScope,
    QueryError, not_numeric,
};

/// Arguments: input, onNull.
static SIGMOID: Definition = Definition { name: "$sigmoid", arity: Arity::Any, run };

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let (mut input, mut on_null) = (None, None);
    match argument {
        RawValue::Document(options) if options.get("input")?.is_some() => {
            for option in options.iter() {
                match option? {
                    ("input", value) => input = Some(Expression::parse(value, scope)?),
                    ("onNull", value) => on_null = Some(Expression::parse(value, scope)?),
                    (other, _) => {
                        return Err(QueryError::new(
                            ErrorCode::IdlUnknownField,
                            format!("BSON field '$sigmoid.{other}' is an unknown field."),
                        ));
                    }
                }
            }
        }
        RawValue::Array(list) => {
            let mut elements = list.iter();
            match (elements.next(), elements.next()) {
                (Some(only), None) => input = Some(Expression::parse(only?, scope)?),
                _ => {
                    let count = list.iter().count();
                    return Err(ExpressionFault::WrongArgumentCount.error(format!(
                        "Expression $sigmoid takes exactly 1 arguments. {count} were passed in."
                    )));
                }
            }
        }
        single => input = Some(Expression::parse(single, scope)?),
    }
    Ok(Expression::from_call(Call::named(&SIGMOID, vec![input, on_null])))
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return match call.has(1) {
            true => call.argument(1, frame),
            false => Ok(Evaluated::NULL),
        };
    }
    let number = value.as_number().ok_or_else(|| not_numeric(call, &value))?;
    Ok(Evaluated::number(Number::Double(1.0 / (1.0 + (-number.to_f64()).exp()))))
}
