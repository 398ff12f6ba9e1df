//! `$concatArrays`: the elements of all arrays as one array, in the order of the documents; a missing value
//! is left out.

use pando_document::{ArrayWriter, RawValue};

use super::super::Evaluated;
use super::{Accumulator, Push, not_array};
use crate::error::QueryError;

#[derive(Debug, Default)]
pub(crate) struct ConcatArrays {
    elements: Push,
}

impl Accumulator for ConcatArrays {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if value.raw().is_none() {
            return Ok(());
        }
        let array = value.as_array().ok_or_else(|| not_array("$concatArrays", value))?;
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
