//! `$push`: all values as an array, in the order of the documents; missing ones are left out.

use pando_document::{ArrayWriter, RawValue};

use super::super::Evaluated;
use super::{Accumulator, bytes_of, for_saved, give_all, push_kept, save_all, unused_bytes};
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
            push_kept(&mut self.values, value);
        }
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        give_all(self.values.iter())
    }

    fn held_bytes(&self) -> usize {
        self.bytes + unused_bytes(&self.values)
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        save_all(self.values.iter(), out);
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        for_saved(saved, |value| self.add(&Evaluated::Raw(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_counts_with_the_room_that_it_has_and_one_value_has_room_for_one() {
        let mut push = Push::default();
        for count in 1..=100 {
            push.add(&Evaluated::Raw(RawValue::String("0123456789"))).unwrap();
            let room = push.values.capacity() * size_of::<Literal>();
            assert!(push.held_bytes() >= room + count * 10, "{count} values");
            assert!(count > 1 || push.values.capacity() == 1);
        }
    }
}
