//! Key bytes of strangers: nothing panics, a key that decodes is as long as its parts, and its values encode to a key that is
//! stable.
//!
//! The first byte says how many parts and in which directions, the second how many of the bytes that follow are type bits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_document::Value;
use pando_keyorder::{Direction, TypeBits, decode, encode, parts_length};

fuzz_target!(|bytes: &[u8]| {
    let [shape, type_bits, rest @ ..] = bytes else { return };
    let directions: Vec<Direction> = (0..=shape & 3)
        .map(|part| if shape >> (4 + part) & 1 == 0 { Direction::Ascending } else { Direction::Descending })
        .collect();
    let (type_bits, key) = rest.split_at(usize::from(*type_bits).min(rest.len()));
    let length = parts_length(key, &directions);
    if let Ok(length) = length {
        assert!(length <= key.len());
    }
    let Ok(values) = decode(key, type_bits, &directions) else { return };
    assert_eq!(length, Ok(key.len()), "decoding and skipping agree");
    let (first_key, first_bits) = encoded(&values, &directions);
    let again = decode(&first_key, first_bits.as_bytes(), &directions).expect("what was encoded decodes");
    assert_eq!(parts_length(&first_key, &directions), Ok(first_key.len()));
    assert_eq!(encoded(&again, &directions), (first_key.clone(), first_bits));
    assert_eq!(first_key, key, "one value has one key: {values:?}");
});

fn encoded(values: &[Value], directions: &[Direction]) -> (Vec<u8>, TypeBits) {
    let (mut key, mut bits) = (Vec::new(), TypeBits::new());
    for (value, direction) in values.iter().zip(directions) {
        encode(value, *direction, &mut key, &mut bits);
    }
    (key, bits)
}
