//! `$concatArrays` and `$setUnion`: the elements of all arrays go one by one to another accumulator, which
//! keeps all of them or the distinct ones; a missing value is left out.

use pando_collation::TextOrder;
use pando_document::{ArrayWriter, RawValue};

use super::super::Evaluated;
use super::{Accumulator, AddToSet, Push, not_array};
use crate::error::QueryError;

#[derive(Debug)]
pub(crate) struct EachElement<A> {
    operator: &'static str,
    elements: A,
}

impl EachElement<Push> {
    pub fn concatenated() -> EachElement<Push> {
        EachElement { operator: "$concatArrays", elements: Push::default() }
    }
}

impl EachElement<AddToSet> {
    pub fn united(order: &TextOrder) -> EachElement<AddToSet> {
        EachElement { operator: "$setUnion", elements: AddToSet::new(order) }
    }
}

impl<A: Accumulator> Accumulator for EachElement<A> {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if value.raw().is_none() {
            return Ok(());
        }
        let array = value.as_array().ok_or_else(|| not_array(self.operator, value))?;
        array.iter().try_for_each(|element| self.elements.add(&Evaluated::Raw(element?)))
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        self.elements.finish()
    }

    fn held_bytes(&self) -> usize {
        self.elements.held_bytes()
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        self.elements.save(out);
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        self.elements.merge(saved)
    }
}
