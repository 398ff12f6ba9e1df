//! `$setOnInsert`: `$set` while an upsert inserts, nothing otherwise.

use pando_document::RawValue;

use super::{Effect, Operator, Surroundings};
use crate::error::QueryError;
use crate::literal::Literal;
use crate::update::ApplyKind;
use crate::update::trail::Trail;

#[derive(Debug)]
struct SetOnInsert {
    value: Literal,
}

pub(super) fn parse(argument: RawValue<'_>) -> Box<dyn Operator> {
    Box::new(SetOnInsert { value: Literal::new(argument) })
}

impl Operator for SetOnInsert {
    fn apply<'v>(
        &'v self,
        _: RawValue<'v>,
        surroundings: &Surroundings<'v>,
        trail: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        self.create(surroundings, trail)
    }

    fn create<'v>(
        &'v self,
        surroundings: &Surroundings<'v>,
        _: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        Ok(if self.creates(surroundings) { Effect::Put(self.value.raw()) } else { Effect::Keep })
    }

    fn creates(&self, surroundings: &Surroundings<'_>) -> bool {
        surroundings.context.kind == ApplyKind::Insert
    }
}
