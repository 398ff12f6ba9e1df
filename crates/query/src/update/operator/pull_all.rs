//! `$pullAll`: every element that equals one of the given values goes.

use pando_collation::TextOrder;
use pando_document::RawValue;

use super::pull::cull;
use super::push::parse_each;
use super::{Effect, OnBlockedPath, Operator, Surroundings, bad_value};
use crate::error::QueryError;
use crate::literal::Literal;
use crate::update::trail::Trail;

#[derive(Debug)]
struct PullAll {
    /// Sorted in the order of values.
    values: Vec<Literal>,
    order: TextOrder,
}

pub(super) fn parse(argument: RawValue<'_>, order: &TextOrder) -> Result<Box<dyn Operator>, QueryError> {
    let RawValue::Array(values) = argument else {
        return Err(bad_value(format!(
            "$pullAll requires an array argument but was given a {}",
            argument.element_type().alias()
        )));
    };
    let mut values = parse_each(values)?;
    values.sort_by(|a, b| order.compare(a.raw(), b.raw()));
    Ok(Box::new(PullAll { values, order: order.clone() }))
}

impl Operator for PullAll {
    fn apply<'v>(
        &'v self,
        old: RawValue<'v>,
        _: &Surroundings<'v>,
        _: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        cull(old, |element| {
            Ok(self.values.binary_search_by(|value| self.order.compare(value.raw(), element)).is_ok())
        })
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
