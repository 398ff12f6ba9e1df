//! For random values of all types: bytes sort as the values do, decode to the values, and never panic when
//! they are noise.

#![allow(clippy::unwrap_used, reason = "all of this is test code")]

use std::cmp::Ordering;

use pando_document::{
    Binary, DbPointer, Decimal128, DecimalParts, Document, JavaScriptWithScope, ObjectId, Regex, Timestamp,
    Value, compare, doc,
};
use pando_keyorder::{Direction, TypeBits, decode, encode, parts_length};
use proptest::prelude::*;

fn decimal(negative: bool, coefficient: u128, exponent: i32) -> Value {
    Value::Decimal128(Decimal128::from_parts(DecimalParts::Finite { negative, coefficient, exponent }))
}

/// Doubles near which types meet and bits run out.
fn nasty_f64() -> impl Strategy<Value = f64> {
    let anchors = prop_oneof![
        Just(0.0),
        Just(1.0),
        Just(0.1),
        Just(100.0),
        Just(9_007_199_254_740_992.0),
        Just(4_503_599_627_370_496.0),
        Just(9_223_372_036_854_775_808.0),
        Just(1e22),
        Just(1e23),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE),
        (-1074..1024).prop_map(|exponent| 2f64.powi(exponent)),
        (-300..300).prop_map(|exponent| 10f64.powi(exponent)),
    ];
    (anchors, -2i64..3, any::<bool>()).prop_map(|(anchor, steps, negative)| {
        let bits = anchor.to_bits().saturating_add_signed(steps);
        let number = f64::from_bits(bits);
        let number = if number.is_nan() { f64::NAN } else { number };
        if negative && !number.is_nan() { -number } else { number }
    })
}

fn f64s() -> impl Strategy<Value = f64> {
    let canonical = |number: f64| if number.is_nan() { f64::NAN } else { number };
    prop_oneof![
        nasty_f64(),
        any::<f64>().prop_map(canonical),
        (-2000..2000).prop_map(|n| f64::from(n) / 16.0)
    ]
}

fn i64s() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -300..300i64,
        (0..63u32, -2..3i64, any::<bool>()).prop_map(|(power, near, negative)| {
            let number = (1i64 << power).saturating_add(near);
            if negative { -number } else { number }
        }),
        Just(i64::MIN),
        Just(i64::MAX),
    ]
}

/// A decimal at a double, or next to it by as little as 34 digits allow.
fn decimal_near(number: f64, nudge: i128, digits: usize) -> Value {
    if !number.is_finite() {
        return Value::Decimal128(Decimal128::INFINITY);
    }
    let text = format!("{:.*e}", digits, number.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let coefficient = mantissa.replace('.', "").parse::<i128>().unwrap() + nudge;
    let exponent = exponent.parse::<i32>().unwrap() - digits as i32;
    decimal(number < 0.0, coefficient.max(0) as u128, exponent)
}

fn decimals() -> impl Strategy<Value = Value> {
    let limit = 10u128.pow(34);
    prop_oneof![
        (any::<bool>(), 0..limit, -6176..6112).prop_map(|(n, c, e)| decimal(n, c, e)),
        (any::<bool>(), 0..2000u128, -6..6).prop_map(|(n, c, e)| decimal(n, c, e)),
        (any::<bool>(), 0..limit, -36..-10).prop_map(|(n, c, e)| decimal(n, c, e)),
        (any::<bool>(), 0..100u128, 0..33u32, -6176..6112).prop_map(|(n, c, zeros, e)| decimal(
            n,
            (c * 10u128.pow(zeros)).min(10u128.pow(33)),
            e
        )),
        (f64s(), -1..2i128, 0usize..33)
            .prop_map(|(number, nudge, digits)| decimal_near(number, nudge, digits)),
        (i64s(), -1..2i128).prop_map(|(number, nudge)| {
            let scaled = i128::from(number) * 10 + nudge;
            decimal(scaled < 0, scaled.unsigned_abs(), -1)
        }),
        Just(Value::Decimal128(Decimal128::NAN)),
        Just(Value::Decimal128(Decimal128::INFINITY)),
        Just(Value::Decimal128(Decimal128::NEGATIVE_INFINITY)),
    ]
}

fn numbers() -> impl Strategy<Value = Value> {
    prop_oneof![
        f64s().prop_map(Value::from),
        i64s().prop_map(Value::from),
        i64s().prop_map(|number| Value::from(number as i32)),
        i64s().prop_map(|number| Value::from(number as f64)),
        decimals(),
    ]
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![Just('\0'), Just('\u{1}'), Just('\u{2}'), Just('a'), Just('é'), any::<char>()],
        0..5,
    )
    .prop_map(|characters| characters.into_iter().collect())
}

fn name() -> impl Strategy<Value = String> {
    text().prop_map(|text| text.replace('\0', "b"))
}

fn scalars() -> impl Strategy<Value = Value> {
    let bytes = || proptest::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 0..4);
    prop_oneof![
        6 => numbers(),
        2 => text().prop_map(Value::from),
        1 => text().prop_map(Value::Symbol),
        1 => (0..3u8, bytes()).prop_map(|(subtype, bytes)| Value::Binary(Binary { subtype, bytes })),
        1 => (250..260usize).prop_map(|length| Value::Binary(Binary { subtype: 0, bytes: vec![length as u8; length] })),
        1 => prop_oneof![Just(Value::Undefined), Just(Value::Null), Just(Value::MinKey), Just(Value::MaxKey)],
        1 => any::<u8>().prop_map(|byte| ObjectId::from_bytes([byte; 12]).into()),
        1 => any::<bool>().prop_map(Value::from),
        1 => i64s().prop_map(Value::DateTime),
        1 => any::<u64>().prop_map(|bits| Timestamp::from_u64(bits).into()),
        1 => (name(), name()).prop_map(|(pattern, options)| Value::Regex(Regex { pattern, options })),
        1 => (text(), any::<u8>()).prop_map(|(namespace, byte)| {
            Value::DbPointer(DbPointer { namespace, id: ObjectId::from_bytes([byte; 12]) })
        }),
        1 => text().prop_map(Value::JavaScript),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    scalars().prop_recursive(3, 12, 3, |inner| {
        let document = || {
            proptest::collection::vec((name(), inner.clone()), 0..3)
                .prop_map(|fields| fields.into_iter().collect::<Document>())
        };
        prop_oneof![
            document().prop_map(Value::from),
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            (text(), document())
                .prop_map(|(code, scope)| Value::JavaScriptWithScope(JavaScriptWithScope { code, scope })),
        ]
    })
}

fn key(values: &[(&Value, Direction)]) -> (Vec<u8>, TypeBits) {
    let (mut bytes, mut bits) = (Vec::new(), TypeBits::new());
    for (value, direction) in values {
        encode(*value, *direction, &mut bytes, &mut bits);
    }
    (bytes, bits)
}

fn check_pair(a: &Value, b: &Value) {
    let expected = compare(a, b);
    for direction in [Direction::Ascending, Direction::Descending] {
        let ((a_key, _), (b_key, _)) = (key(&[(a, direction)]), key(&[(b, direction)]));
        let directed = if direction == Direction::Ascending { expected } else { expected.reverse() };
        assert_eq!(a_key.cmp(&b_key), directed, "{direction:?} {a:?} as {a_key:02x?}, {b:?} as {b_key:02x?}");
        assert!(expected == Ordering::Equal || !b_key.starts_with(&a_key), "{a:?} is a prefix of {b:?}");
    }
}

fn check_round_trip(values: &[(&Value, Direction)]) {
    let (bytes, bits) = key(values);
    let directions: Vec<Direction> = values.iter().map(|value| value.1).collect();
    let decoded = decode(&bytes, bits.as_bytes(), &directions);
    let expected: Vec<Value> = values.iter().map(|value| value.0.clone()).collect();
    assert_eq!(decoded, Ok(expected), "{bytes:02x?} with {bits:?}");
    let mut longer = bytes.clone();
    longer.extend_from_slice(&[0xF0, 0, 0xFF]);
    assert_eq!(parts_length(&longer, &directions), Ok(bytes.len()));
    let raw = doc! { "": values[0].0 }.to_raw();
    let (mut raw_bytes, mut raw_bits) = (Vec::new(), TypeBits::new());
    encode(raw.get("").unwrap().unwrap(), values[0].1, &mut raw_bytes, &mut raw_bits);
    assert!(bytes.starts_with(&raw_bytes), "raw and owned values have the same bytes");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_of_values_sort_as_the_values(a in values(), b in values()) {
        check_pair(&a, &b);
    }

    #[test]
    fn bytes_of_numbers_sort_as_the_numbers(a in numbers(), b in numbers()) {
        check_pair(&a, &b);
    }

    #[test]
    fn bytes_of_neighbouring_numbers_sort_as_the_numbers(number in f64s(), nudge in -1..2i128, digits in 0usize..33) {
        let near = decimal_near(number, nudge, digits);
        check_pair(&near, &Value::from(number));
        check_pair(&near, &Value::from(number as i64));
        check_pair(&near, &decimal_near(number, 0, digits));
    }

    #[test]
    fn keys_decode_to_the_values_they_were_made_of(a in values(), b in values(), c in scalars()) {
        use Direction::{Ascending, Descending};
        check_round_trip(&[(&a, Ascending), (&b, Descending), (&c, Ascending)]);
        check_round_trip(&[(&c, Descending), (&a, Ascending)]);
    }

    #[test]
    fn compound_keys_compare_part_by_part(a in scalars(), b in scalars(), c in scalars(), d in scalars()) {
        use Direction::{Ascending, Descending};
        let ((left, _), (right, _)) = (key(&[(&a, Descending), (&b, Ascending)]), key(&[(&c, Descending), (&d, Ascending)]));
        assert_eq!(left.cmp(&right), compare(&c, &a).then_with(|| compare(&b, &d)));
    }

    #[test]
    fn noise_is_decoded_or_refused_and_never_panics(
        bytes in proptest::collection::vec(prop_oneof![0x20..0x38u8, Just(0u8), Just(0x68), any::<u8>()], 0..40),
        bits in proptest::collection::vec(any::<u8>(), 0..6),
    ) {
        for direction in [Direction::Ascending, Direction::Descending] {
            let decoded = decode(&bytes, &bits, &[direction]);
            if let Ok(values) = decoded {
                assert_eq!(parts_length(&bytes, &[direction]), Ok(bytes.len()));
                assert_eq!(key(&[(&values[0], direction)]).0, bytes, "one value has one key: {values:?}");
            }
        }
    }

    #[test]
    fn damaged_keys_are_decoded_or_refused_and_never_panic(value in values(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (mut bytes, bits) = key(&[(&value, Direction::Ascending)]);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let _ = decode(&bytes, bits.as_bytes(), &[Direction::Ascending]);
        let _ = decode(&bytes[..place], bits.as_bytes(), &[Direction::Ascending]);
    }
}
