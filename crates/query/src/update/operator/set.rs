//! `$set`: the place gets the value. The same value again, type included, is no change.

use pando_document::RawValue;

use super::{Effect, Operator, Surroundings};
use crate::error::QueryError;
use crate::identity::is_identical;
use crate::literal::Literal;
use crate::update::trail::Trail;

#[derive(Debug)]
struct Set {
    value: Literal,
}

pub(super) fn parse(argument: RawValue<'_>) -> Box<dyn Operator> {
    Box::new(Set { value: Literal::new(argument) })
}

impl Operator for Set {
    fn apply<'v>(
        &'v self,
        old: RawValue<'v>,
        _: &Surroundings<'v>,
        _: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        let new = self.value.raw();
        Ok(if is_identical(old, new) { Effect::Keep } else { Effect::Put(new) })
    }

    fn create<'v>(&'v self, _: &Surroundings<'v>, _: &Trail<'_>) -> Result<Effect<'v>, QueryError> {
        Ok(Effect::Put(self.value.raw()))
    }

    fn creates(&self, _: &Surroundings<'_>) -> bool {
        true
    }
}
