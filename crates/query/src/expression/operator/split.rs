//! `$split`: the parts of a string between separators.

use pando_document::RawValue;

use super::{
    Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, array_of, check_computed_bytes,
};

pub(super) static SPLIT: Definition = Definition { name: "$split", arity: Arity::Exactly(2), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (text, separator) = (call.argument(0, frame)?, call.argument(1, frame)?);
    if text.is_nullish() || separator.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    const WANTED: &str = "$split requires an expression that evaluates to a string as a";
    let Some(text) = text.as_str() else {
        return Err(ExpressionFault::SplitNotString
            .error(format!("{WANTED} first argument, found: {}", text.type_name())));
    };
    let Some(separator) = separator.as_str() else {
        return Err(ExpressionFault::SplitSeparatorNotString
            .error(format!("{WANTED} second argument, found: {}", separator.type_name())));
    };
    if separator.is_empty() {
        return Err(ExpressionFault::SplitSeparatorEmpty.error("$split requires a non-empty separator"));
    }
    array_of(|writer| {
        for part in text.split(separator) {
            writer.push(RawValue::String(part));
            check_computed_bytes(writer.bytes_so_far())?;
        }
        Ok(())
    })
}
