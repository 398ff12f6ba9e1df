//! `$min` and `$max`: the place keeps the lesser or the greater of its value and the argument, in the order
//! in which MongoDB compares values of any type. Equal values (3 and 3.0) are no change.

use std::cmp::Ordering;

use pando_collation::TextOrder;
use pando_document::RawValue;

use super::{Effect, Operator, Surroundings};
use crate::error::QueryError;
use crate::literal::Literal;
use crate::update::trail::Trail;

/// Which of two values stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    Least,
    Greatest,
}

#[derive(Debug)]
struct Select {
    selection: Selection,
    value: Literal,
    order: TextOrder,
}

pub(super) fn parse(selection: Selection, argument: RawValue<'_>, order: &TextOrder) -> Box<dyn Operator> {
    Box::new(Select { selection, value: Literal::new(argument), order: order.clone() })
}

impl Operator for Select {
    fn apply<'v>(
        &'v self,
        old: RawValue<'v>,
        _: &Surroundings<'v>,
        _: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        let new = self.value.raw();
        let wanted = match self.selection {
            Selection::Least => Ordering::Less,
            Selection::Greatest => Ordering::Greater,
        };
        Ok(if self.order.compare(new, old) == wanted { Effect::Put(new) } else { Effect::Keep })
    }

    fn create<'v>(&'v self, _: &Surroundings<'v>, _: &Trail<'_>) -> Result<Effect<'v>, QueryError> {
        Ok(Effect::Put(self.value.raw()))
    }

    fn creates(&self, _: &Surroundings<'_>) -> bool {
        true
    }
}
