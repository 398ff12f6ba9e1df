//! `$push`: all values as an array, in the order of the documents; missing ones are left out.

use super::super::{Evaluated, array_of};
use super::{Accumulator, bytes_of, keep};
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
        array_of(|writer| {
            self.values.iter().for_each(|value| writer.push(value.raw()));
            Ok(())
        })
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }
}
