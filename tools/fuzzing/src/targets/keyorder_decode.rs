//! Key bytes of strangers: no key makes the decoder panic. A key that decodes is as long as its parts, and
//! its values encode to a key that is stable.
//!
//! The first byte says how many parts and in which directions, the second how many of the bytes that follow
//! are type bits.

use pando_document::{Decimal128, ObjectId, Value, doc};
use pando_keyorder::{Direction, TypeBits, decode, encode, parts_length};

/// Inputs that are sound: the keys of a few values of each type, with their type bits.
pub fn examples() -> Vec<Vec<u8>> {
    let values = [
        Value::Null,
        Value::Int32(-70_000),
        Value::Int64(1 << 60),
        Value::Double(0.1),
        Value::Double(f64::NAN),
        Value::Decimal128(Decimal128::from_le_bytes([3; 16])),
        Value::from("a\0b"),
        Value::ObjectId(ObjectId::from_bytes([9; 12])),
        Value::DateTime(-1),
        Value::Boolean(true),
        Value::from(
            doc! { "a": 1, "b": doc! { "c": "d", "e": vec![Value::MinKey, Value::MaxKey, Value::Int32(5)] } },
        ),
    ];
    let one = |value: &Value| {
        let (key, bits) = encoded(std::slice::from_ref(value), &[Direction::Ascending]);
        [&[0, bits.as_bytes().len() as u8], bits.as_bytes(), &key].concat()
    };
    let two = |pair: &[Value]| {
        let (key, bits) = encoded(pair, &[Direction::Descending, Direction::Ascending]);
        [&[0x11, bits.as_bytes().len() as u8], bits.as_bytes(), &key].concat()
    };
    values.iter().map(one).chain(values.windows(2).map(two)).collect()
}

/// See the module.
pub fn run(bytes: &[u8]) {
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
}

fn encoded(values: &[Value], directions: &[Direction]) -> (Vec<u8>, TypeBits) {
    let (mut key, mut bits) = (Vec::new(), TypeBits::new());
    for (value, direction) in values.iter().zip(directions) {
        encode(value, *direction, &mut key, &mut bits);
    }
    (key, bits)
}
