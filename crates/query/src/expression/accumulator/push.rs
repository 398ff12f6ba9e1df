//! `$push`: all values as an array, in the order of the documents; missing ones are left out.

use pando_document::{ArrayWriter, RawValue};

use super::super::Evaluated;
use super::{Accumulator, bytes_of, for_saved, give_all, keep, save_all};
use crate::error::QueryError;
use crate::literal::Literal;
use crate::memory::{MEMORY_BYTES_MAX, too_large};

#[derive(Debug, Default)]
pub(crate) struct Push {
    values: Vec<Literal>,
    bytes: usize,
}

impl Accumulator for Push {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if value.raw().is_some() {
            self.bytes += bytes_of(value) + size_of::<Literal>();
            if self.bytes > MEMORY_BYTES_MAX {
                return Err(too_large("$push"));
            }
            self.values.push(keep(value));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Evaluated<'static>, QueryError> {
        give_all(self.values.iter())
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        save_all(self.values.iter(), out);
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        for_saved(saved, |value| self.add(&Evaluated::Raw(value)))
    }
}
