//! `$pop`: the first (-1) or last (1) element of an array goes.

use pando_document::{RawArray, RawValue};

use super::{Effect, OnBlockedPath, Operator, Surroundings, type_mismatch};
use crate::array_build::build_array;
use crate::error::{ErrorCode, QueryError};
use crate::shell_text;
use crate::update::trail::Trail;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pop {
    First,
    Last,
}

pub(super) fn parse(path: &str, argument: RawValue<'_>) -> Result<Box<dyn Operator>, QueryError> {
    let failed = |message: String| QueryError::new(ErrorCode::FailedToParse, message);
    let shown = || format!("{path}: {}", shell_text::value_text(argument));
    if !argument.is_number() {
        return Err(failed(format!("Expected a number in: {}", shown())));
    }
    match argument.as_i64_exact() {
        Some(1) => Ok(Box::new(Pop::Last)),
        Some(-1) => Ok(Box::new(Pop::First)),
        Some(other) => Err(failed(format!("$pop expects 1 or -1, found: {other}"))),
        None => Err(failed(format!("Expected an integer: {}", shown()))),
    }
}

impl Operator for Pop {
    fn apply<'v>(
        &'v self,
        old: RawValue<'v>,
        _: &Surroundings<'v>,
        trail: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        let RawValue::Array(array) = old else {
            return Err(type_mismatch(format!(
                "Path '{}' contains an element of non-array type '{}'",
                trail.path(),
                old.element_type().alias()
            )));
        };
        let elements: Vec<RawValue<'_>> = collect(array)?;
        let kept = match (self, elements.as_slice()) {
            (_, []) => return Ok(Effect::Keep),
            (Pop::First, [_, rest @ ..]) | (Pop::Last, [rest @ .., _]) => rest,
        };
        Ok(Effect::PutArray(build_array(kept.iter().copied())))
    }

    fn create<'v>(&'v self, _: &Surroundings<'v>, _: &Trail<'_>) -> Result<Effect<'v>, QueryError> {
        Ok(Effect::Keep)
    }

    fn creates(&self, _: &Surroundings<'_>) -> bool {
        false
    }

    fn on_blocked_path(&self, _: &Surroundings<'_>) -> Result<OnBlockedPath, QueryError> {
        Ok(OnBlockedPath::CannotTraverse)
    }
}

/// The elements of an array, in order.
pub(super) fn collect(array: &RawArray) -> Result<Vec<RawValue<'_>>, QueryError> {
    let mut elements = Vec::new();
    for element in array.iter() {
        elements.push(element?);
    }
    Ok(elements)
}
