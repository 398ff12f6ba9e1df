//! `$strcasecmp`: two strings in order, ASCII letters without their case: -1, 0 or 1.

use pando_document::RawValue;

use super::text::coerced;
use super::{Arity, Call, Definition, Evaluated, Frame, QueryError};

pub(super) static STRCASECMP: Definition = Definition { name: "$strcasecmp", arity: Arity::Exactly(2), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let left = coerced(&call.argument(0, frame)?)?.to_ascii_uppercase();
    let right = coerced(&call.argument(1, frame)?)?.to_ascii_uppercase();
    Ok(Evaluated::Raw(RawValue::Int32(left.cmp(&right) as i32)))
}
