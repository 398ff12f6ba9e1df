//! Sets of values, equal as comparison has it: 1, 1.0 and NumberLong(1) are one value.
//!
//! A few values are compared one by one. More go into a hash table by their order-preserving key bytes,
//! because equal values have equal bytes. So n values cost n steps, and not n².

use std::collections::HashSet;

use pando_collation::TextOrder;
use pando_document::RawValue;
use pando_keyorder::{Direction, TypeBits};

/// So many values are found faster by comparison than by their key bytes.
pub(crate) const FEW_VALUES: usize = 16;

/// Values, each once.
#[derive(Debug, Default)]
pub(crate) struct ValueSet<'v> {
    /// All values, while they are few.
    few: Vec<RawValue<'v>>,
    /// Their key bytes, once they are more.
    keys: HashSet<Vec<u8>>,
    order: TextOrder,
}

impl<'v> ValueSet<'v> {
    /// An empty set, in which strings are equal as this order has it.
    pub(crate) fn new(order: &TextOrder) -> ValueSet<'v> {
        ValueSet { order: order.clone(), ..ValueSet::default() }
    }

    /// The set of these values.
    pub(crate) fn of(values: impl IntoIterator<Item = RawValue<'v>>, order: &TextOrder) -> ValueSet<'v> {
        let mut set = ValueSet::new(order);
        for value in values {
            set.insert(value);
        }
        set
    }

    /// Adds a value; false if one that is equal was there.
    pub(crate) fn insert(&mut self, value: RawValue<'v>) -> bool {
        if self.keys.is_empty() {
            if self.few.iter().any(|known| self.order.is_equal(*known, value)) {
                return false;
            }
            if self.few.len() < FEW_VALUES {
                self.few.push(value);
                return true;
            }
            self.keys.extend(self.few.drain(..).map(|value| key_of(value, &self.order)));
        }
        self.keys.insert(key_of(value, &self.order))
    }
}

/// The bytes that stand for a value and all that are equal to it.
fn key_of(value: RawValue<'_>, order: &TextOrder) -> Vec<u8> {
    let mut key = Vec::with_capacity(16);
    order.encode(value, Direction::Ascending, &mut key, &mut TypeBits::discarded());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_of_all_types_are_one_value_in_small_sets_and_in_large_ones() {
        for count in [3, 1000] {
            let mut set = ValueSet::of((0..count).map(RawValue::Int32), &TextOrder::SIMPLE);
            assert!(!set.insert(RawValue::Double(2.0)));
            assert!(!set.insert(RawValue::Int64(1)));
            assert!(set.insert(RawValue::Double(1.5)));
            assert!(!set.insert(RawValue::Double(1.5)));
            assert!(set.insert(RawValue::String("1")));
        }
    }
}
