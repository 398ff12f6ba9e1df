//! `$concat`: strings one after the other; null if one of them is null or missing.

use super::text::check_text_bytes;
use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, check_computed_bytes};

pub(super) static CONCAT: Definition = Definition { name: "$concat", arity: Arity::Any, run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let mut text = String::new();
    for index in 0..call.len() {
        let value = call.argument(index, frame)?;
        if value.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        match value.as_str() {
            Some(part) => {
                check_computed_bytes(text.len() + part.len())?;
                text.push_str(part);
            }
            None => {
                return Err(ExpressionFault::ConcatNotString
                    .error(format!("$concat only supports strings, not {}", value.type_name())));
            }
        }
    }
    check_text_bytes(text.len())?;
    Ok(Evaluated::Text(text))
}
