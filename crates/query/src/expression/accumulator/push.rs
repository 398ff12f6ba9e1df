//! `$push`: all values as an array, in the order of the documents; missing ones are left out.

use super::super::Evaluated;
use super::{Accumulator, bytes_of, give_all, keep};
use crate::error::QueryError;
use crate::literal::Literal;

#[derive(Debug, Default)]
pub(crate) struct Push {
    values: Vec<Literal>,
    bytes: usize,
}

impl Accumulator for Push {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if value.raw().is_some() {
            self.bytes += bytes_of(value) + size_of::<Literal>();
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
}
