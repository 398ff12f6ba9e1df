//! `$addToSet`: the distinct values as an array, in the order in which they were met;
//! missing ones are left out.
//!
//! Distinct as comparison has it: 1 and 1.0 are one value. The order-preserving key bytes of a value stand
//! for it.

use std::collections::HashSet;

use pando_document::{ArrayWriter, RawValue};
use pando_keyorder::{Direction, TypeBits, encode};

use super::super::Evaluated;
use super::{Accumulator, bytes_of, for_saved, give_all, keep, save_all};
use crate::error::QueryError;
use crate::literal::Literal;
use crate::memory::{MEMORY_BYTES_MAX, too_large};

#[derive(Debug, Default)]
pub(crate) struct AddToSet {
    known: HashSet<Vec<u8>>,
    values: Vec<Literal>,
    bytes: usize,
}

impl Accumulator for AddToSet {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        let Some(raw) = value.raw() else { return Ok(()) };
        let mut key = Vec::new();
        encode(raw, Direction::Ascending, &mut key, &mut TypeBits::new());
        let key_bytes = key.len();
        if self.known.insert(key) {
            self.bytes += bytes_of(value) + key_bytes + size_of::<Literal>();
            if self.bytes > MEMORY_BYTES_MAX {
                return Err(too_large("$addToSet"));
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
