//! `$toLower` and `$toUpper`: ASCII letters only, as in MongoDB.

use super::text::coerced;
use super::{Arity, Call, Definition, Evaluated, Frame, QueryError};

pub(super) static TO_LOWER: Definition =
    Definition { name: "$toLower", arity: Arity::Exactly(1), run: run_lower };
pub(super) static TO_UPPER: Definition =
    Definition { name: "$toUpper", arity: Arity::Exactly(1), run: run_upper };

fn run_lower<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let mut text = coerced(&call.argument(0, frame)?)?;
    text.make_ascii_lowercase();
    Ok(Evaluated::Text(text))
}

fn run_upper<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let mut text = coerced(&call.argument(0, frame)?)?;
    text.make_ascii_uppercase();
    Ok(Evaluated::Text(text))
}
