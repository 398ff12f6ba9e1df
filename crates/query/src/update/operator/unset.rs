//! `$unset`: the field goes; an array element becomes null.

use pando_document::RawValue;

use super::{Effect, Operator, Surroundings};
use crate::error::QueryError;
use crate::update::trail::Trail;

#[derive(Debug)]
struct Unset;

pub(super) fn parse() -> Box<dyn Operator> {
    Box::new(Unset)
}

impl Operator for Unset {
    fn apply<'v>(
        &'v self,
        _: RawValue<'v>,
        _: &Surroundings<'v>,
        _: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        Ok(Effect::Remove)
    }

    fn create<'v>(&'v self, _: &Surroundings<'v>, _: &Trail<'_>) -> Result<Effect<'v>, QueryError> {
        Ok(Effect::Keep)
    }

    fn creates(&self, _: &Surroundings<'_>) -> bool {
        false
    }
}
