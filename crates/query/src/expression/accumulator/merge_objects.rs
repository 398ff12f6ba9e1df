//! `$mergeObjects`: one document of all fields; of two with one name, the later one counts, in the place of
//! the earlier.

use pando_document::{ArrayWriter, RawValue};

use super::super::{Evaluated, ExpressionFault};
use super::{Accumulator, bytes_of};
use crate::error::QueryError;
use crate::merged_fields::MergedFields;

#[derive(Debug, Default)]
pub(crate) struct MergeObjects {
    merged: MergedFields,
    bytes: usize,
}

impl Accumulator for MergeObjects {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if value.is_nullish() {
            return Ok(());
        }
        let Some(document) = value.as_document() else {
            return Err(ExpressionFault::MergeNotObject.error(format!(
                "$mergeObjects requires object inputs, but input {} is of type {}",
                value.shell_text(),
                value.type_name()
            )));
        };
        self.bytes += bytes_of(value);
        for field in document.iter() {
            let (name, value) = field?;
            self.merged.insert(name, value);
        }
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(Evaluated::Document(self.merged.to_document()))
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        out.push_document(&self.merged.to_document());
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        self.add(&Evaluated::Raw(saved))
    }
}
