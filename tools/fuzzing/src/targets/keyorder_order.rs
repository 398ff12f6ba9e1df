//! The order of key bytes is the order of the values: for whole documents, and for each pair of their values.

use std::cmp::Ordering;

use crate::requests::Stored;
use pando_document::{RawValue, compare_values};
use pando_keyorder::{Direction, TypeBits, decode, encode, parts_length};

/// Chance makes as good decisions as any.
pub fn examples() -> Vec<Vec<u8>> {
    crate::targets::by_chance()
}

/// The grown input.
pub type Input = (Stored, Stored);

/// See the module.
pub fn run(documents: Input) {
    let (a, b) = &documents;
    check(RawValue::Document(a), RawValue::Document(b));
    for a in a.iter().map(|field| field.expect("it was written here").1) {
        for b in b.iter().map(|field| field.expect("it was written here").1) {
            check(a, b);
        }
    }
}

fn check(a: RawValue<'_>, b: RawValue<'_>) {
    let order = compare_values(a, b);
    assert_eq!(compare_values(b, a), order.reverse());
    assert_eq!(key(a, Direction::Ascending).cmp(&key(b, Direction::Ascending)), order);
    assert_eq!(key(a, Direction::Descending).cmp(&key(b, Direction::Descending)), order.reverse());
}

/// The key, having asserted that it says how long it is and gives a value that is equal and has the same key.
fn key(value: RawValue<'_>, direction: Direction) -> Vec<u8> {
    let (mut key, mut bits) = (Vec::new(), TypeBits::new());
    encode(value, direction, &mut key, &mut bits);
    assert_eq!(parts_length(&key, &[direction]), Ok(key.len()));
    let decoded = decode(&key, bits.as_bytes(), &[direction]).expect("what was encoded decodes");
    let [decoded] = decoded.as_slice() else { panic!("one part, but {decoded:?}") };
    assert_eq!(pando_document::compare(value, decoded), Ordering::Equal);
    let (mut again, mut bits_again) = (Vec::new(), TypeBits::new());
    encode(decoded, direction, &mut again, &mut bits_again);
    assert_eq!((&again, &bits_again), (&key, &bits));
    key
}
