//! `$isArray`, `$size`, `$bsonSize`, `$binarySize`: the kind of container that a value is, and its size.

use pando_document::RawValue;

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, narrowed};

pub(super) static IS_ARRAY: Definition =
    Definition { name: "$isArray", arity: Arity::Exactly(1), run: run_is_array };
pub(super) static SIZE: Definition = Definition { name: "$size", arity: Arity::Exactly(1), run: run_size };
pub(super) static BSON_SIZE: Definition =
    Definition { name: "$bsonSize", arity: Arity::Exactly(1), run: run_bson_size };
pub(super) static BINARY_SIZE: Definition =
    Definition { name: "$binarySize", arity: Arity::Exactly(1), run: run_binary_size };

fn run_is_array<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    Ok(Evaluated::boolean(call.argument(0, frame)?.as_array().is_some()))
}

fn run_size<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if let Some(table) = call.array_table(0, &value, frame)? {
        return Ok(count(table.length()));
    }
    match value.as_array() {
        Some(array) => Ok(count(array.iter().count())),
        None => Err(ExpressionFault::SizeNotArray.error(format!(
            "The argument to $size must be an array, but was of type: {}",
            value.type_name()
        ))),
    }
}

fn run_bson_size<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    match value.as_document() {
        _ if value.is_nullish() => Ok(Evaluated::NULL),
        Some(document) => Ok(count(document.as_bytes().len())),
        None => Err(ExpressionFault::BsonSizeNotObject
            .error(format!("$bsonSize requires a document input, found: {}", value.type_name()))),
    }
}

fn run_binary_size<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    match value.raw() {
        _ if value.is_nullish() => Ok(Evaluated::NULL),
        Some(RawValue::String(text)) => Ok(count(text.len())),
        Some(RawValue::Binary(binary)) => Ok(count(binary.bytes.len())),
        _ => Err(ExpressionFault::BinarySizeNotBinary.error(format!(
            "$binarySize requires a string or BinData argument, found: {}",
            value.type_name()
        ))),
    }
}

fn count<'a>(count: usize) -> Evaluated<'a> {
    Evaluated::number(narrowed(i64::try_from(count).unwrap_or(i64::MAX)))
}
