//! `$addToSet`: the distinct values as an array, in the order in which they were met;
//! missing ones are left out.
//!
//! Distinct as comparison has it: 1 and 1.0 are one value. The order-preserving key bytes of a value stand
//! for it.

use std::collections::HashSet;

use pando_collation::TextOrder;
use pando_document::{ArrayWriter, RawValue};
use pando_keyorder::{Direction, TypeBits};

use super::super::Evaluated;
use super::{Accumulator, bytes_of, for_saved, give_all, push_kept, save_all, unused_bytes};
use crate::error::QueryError;
use crate::literal::Literal;
use crate::memory::{MEMORY_BYTES_MAX, too_large};

/// Memory of a key beside its bytes: those of its allocation.
const KEY_BYTES: usize = 16;
/// Memory of a place in the hash table, of which one in eight stays empty: a key's pointer and a byte, and a
/// share of the table's ends.
const SLOT_BYTES: usize = 36;

#[derive(Debug, Default)]
pub(crate) struct AddToSet {
    known: HashSet<Vec<u8>>,
    values: Vec<Literal>,
    bytes: usize,
    order: TextOrder,
}

impl AddToSet {
    /// An empty set, in which strings are equal as this order has it.
    pub(crate) fn new(order: &TextOrder) -> AddToSet {
        AddToSet { order: order.clone(), ..AddToSet::default() }
    }
}

impl Accumulator for AddToSet {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        let Some(raw) = value.raw() else { return Ok(()) };
        let mut key = Vec::new();
        self.order.encode(raw, Direction::Ascending, &mut key, &mut TypeBits::discarded());
        let key_bytes = key.len();
        if self.known.insert(key) {
            self.bytes += bytes_of(value) + key_bytes + KEY_BYTES + size_of::<Literal>();
            if self.bytes > MEMORY_BYTES_MAX {
                return Err(too_large("$addToSet"));
            }
            push_kept(&mut self.values, value);
        }
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        give_all(self.values.iter())
    }

    fn held_bytes(&self) -> usize {
        self.bytes + unused_bytes(&self.values) + self.known.capacity() * SLOT_BYTES
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
    fn a_set_counts_with_the_room_of_its_tables() {
        let mut set = AddToSet::default();
        assert_eq!(set.held_bytes(), 0);
        for number in 0..100 {
            set.add(&Evaluated::Raw(RawValue::Int32(number % 50))).unwrap();
            let room = set.values.capacity() * size_of::<Literal>()
                + set.known.capacity() * size_of::<Vec<u8>>()
                + set.known.iter().map(Vec::capacity).sum::<usize>();
            assert!(set.held_bytes() >= room, "{number}: {} of {room}", set.held_bytes());
        }
    }
}
