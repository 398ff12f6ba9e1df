//! `$toHashedIndexKey`: the hash that a hashed index has for a value.

use pando_document::RawValue;

use super::{Arity, Call, Definition, Evaluated, Expression, Frame, ParseScope, QueryError};
use crate::hashed_index;

static TO_HASHED_INDEX_KEY: Definition =
    Definition { name: "$toHashedIndexKey", arity: Arity::Exactly(1), run };

/// A list is an array whose hash is asked for, and no list of arguments.
pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let value = Expression::parse(argument, scope)?;
    Ok(Expression::from_call(Call::named(&TO_HASHED_INDEX_KEY, vec![Some(value)])))
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    Ok(Evaluated::owned(RawValue::Int64(hashed_index::hash_of(value.raw_or_null())?)))
}
