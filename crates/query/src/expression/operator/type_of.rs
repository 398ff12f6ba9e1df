//! `$type` and `$isNumber`.

use pando_document::RawValue;

use super::{Arity, Call, Definition, Evaluated, Frame, QueryError};

pub(super) static TYPE: Definition = Definition { name: "$type", arity: Arity::Exactly(1), run: run_type };
pub(super) static IS_NUMBER: Definition =
    Definition { name: "$isNumber", arity: Arity::Exactly(1), run: run_is_number };

fn run_type<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    Ok(Evaluated::Raw(RawValue::String(call.argument(0, frame)?.type_name())))
}

fn run_is_number<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    Ok(Evaluated::boolean(call.argument(0, frame)?.as_number().is_some()))
}
