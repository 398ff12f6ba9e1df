//! Key bytes and type bits as they stand on disk. A change here is a change of the file format.

#![allow(clippy::unwrap_used, reason = "all of this is test code")]

use pando_document::parse_json_value;
use pando_keyorder::{
    DecodeError, Direction, TypeBits, bracket_lead_bytes, decode, encode, encode_empty_array,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|place| u8::from_str_radix(&text[place..place + 2], 16).unwrap()).collect()
}

/// Value in Extended JSON, ascending key bytes, type bits.
const GOLDEN: &[(&str, &str, &str)] = &[
    (r#"{"$minKey":1}"#, "08", ""),
    (r#"{"$undefined":true}"#, "10", ""),
    (r#"null"#, "18", ""),
    (r#"{"$numberDouble":"NaN"}"#, "20", ""),
    (r#"{"$numberDecimal":"NaN"}"#, "20", "80"),
    (r#"{"$numberDouble":"-Infinity"}"#, "21", ""),
    (r#"{"$numberDecimal":"Infinity"}"#, "37", "80"),
    (r#"{"$numberInt":"0"}"#, "2c", ""),
    (r#"{"$numberLong":"0"}"#, "2c", "c0"),
    (r#"{"$numberDouble":"0.0"}"#, "2c", "80"),
    (r#"{"$numberDouble":"-0.0"}"#, "2c", "a0"),
    (r#"{"$numberDecimal":"0"}"#, "2c", "e608"),
    (r#"{"$numberDecimal":"-0E-2"}"#, "2c", "f60780"),
    (r#"{"$numberInt":"1"}"#, "2e02", ""),
    (r#"{"$numberInt":"127"}"#, "2efe", ""),
    (r#"{"$numberInt":"128"}"#, "2f0100", ""),
    (r#"{"$numberInt":"-1"}"#, "2afd", ""),
    (r#"{"$numberInt":"-128"}"#, "29feff", ""),
    (r#"{"$numberInt":"32767"}"#, "2ffffe", ""),
    (r#"{"$numberInt":"2147483647"}"#, "31fffffffe", ""),
    (r#"{"$numberLong":"1"}"#, "2e02", "c0"),
    (r#"{"$numberDouble":"1.0"}"#, "2e02", "80"),
    (r#"{"$numberDecimal":"1"}"#, "2e02", "e0"),
    (r#"{"$numberDecimal":"1.00"}"#, "2e02", "e2"),
    (r#"{"$numberLong":"2147483648"}"#, "320100000000", ""),
    (r#"{"$numberDouble":"2147483648.0"}"#, "320100000000", "80"),
    (r#"{"$numberLong":"9223372036854775807"}"#, "35fffffffffffffffe", ""),
    (r#"{"$numberLong":"-9223372036854775808"}"#, "22783fffffffffffff", ""),
    (r#"{"$numberDouble":"9.223372036854776e18"}"#, "3687c0000000000000", ""),
    (r#"{"$numberDouble":"1e300"}"#, "36fc6fc8791000eb38", ""),
    (r#"{"$numberDouble":"-1e300"}"#, "2203903786efff14c7", ""),
    (r#"{"$numberDouble":"1.5"}"#, "2e0380", ""),
    (r#"{"$numberDouble":"-1.5"}"#, "2afc7f", ""),
    (r#"{"$numberDecimal":"1.5"}"#, "2e0380", "e0"),
    (r#"{"$numberDouble":"1.1"}"#, "2e0319cd673399cd6740", ""),
    (r#"{"$numberDouble":"1000000.25"}"#, "301e848140", ""),
    (r#"{"$numberDouble":"0.5"}"#, "2d7fc0000000000000", ""),
    (r#"{"$numberDouble":"0.1"}"#, "2d7f73333333333334", ""),
    (r#"{"$numberDouble":"-0.1"}"#, "2b808ccccccccccccb", ""),
    (r#"{"$numberDouble":"5e-324"}"#, "2d0000000000000002", ""),
    (r#"{"$numberDecimal":"0.1"}"#, "2d7f73333333333333183814", ""),
    (r#"{"$numberDecimal":"-0.10"}"#, "2b808ccccccccccccce7c7eb", "84"),
    (r#"{"$numberDecimal":"19.99"}"#, "2e27fdb9297b7151f5c6", ""),
    (r#"{"$numberDecimal":"9007199254740993.5"}"#, "344000000000000364", ""),
    (r#"{"$numberDecimal":"1E-6176"}"#, "2d0000000000000001001914", ""),
    (
        r#"{"$numberDecimal":"9.999999999999999999999999999999999E+6144"}"#,
        "36ffdfffffffffffff3039c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c6",
        "",
    ),
    (r#"{"$numberDecimal":"1E+33"}"#, "368d914dc6448d9339185a14", ""),
    (r#"{"$numberDecimal":"1000000000000000000000000000000000"}"#, "368d914dc6448d9339185a14", "fe"),
    (r#""abc""#, "6061626300", ""),
    (r#""a\u0000\u0001\u0002""#, "6061010101020200", ""),
    (r#"{"$symbol":"abc"}"#, "6061626300", "80"),
    (r#"{}"#, "6800", ""),
    (r#"{"a":1,"b":"x"}"#, "682061002e02606200780000", ""),
    (
        r#"{"a":{"$numberDouble":"1.0"},"b":true,"c":{"d":{"$numberLong":"1"}}}"#,
        "682061002e02886200896863002064002e020000",
        "b0",
    ),
    (r#"[]"#, "7000", ""),
    (r#"[1,[null,{"$numberLong":"2"}]]"#, "702e0270182e040000", "60"),
    (r#"{"$binary":{"base64":"AP8=","subType":"80"}}"#, "78028000ff", ""),
    (r#"{"$oid":"0102030405060708090a0b0c"}"#, "800102030405060708090a0b0c", ""),
    (r#"false"#, "88", ""),
    (r#"true"#, "89", ""),
    (r#"{"$date":{"$numberLong":"0"}}"#, "908000000000000000", ""),
    (r#"{"$date":{"$numberLong":"-1"}}"#, "907fffffffffffffff", ""),
    (r#"{"$timestamp":{"t":1,"i":2}}"#, "980000000100000002", ""),
    (r#"{"$regularExpression":{"pattern":"^a","options":"i"}}"#, "a05e61006900", ""),
    (
        r#"{"$dbPointer":{"$ref":"a.b","$id":{"$oid":"0102030405060708090a0b0c"}}}"#,
        "a803612e620102030405060708090a0b0c",
        "",
    ),
    (r#"{"$code":"f"}"#, "b06600", ""),
    (r#"{"$code":"f","$scope":{"x":1}}"#, "b866002078002e0200", ""),
    (r#"{"$maxKey":1}"#, "f0", ""),
];

#[test]
fn values_have_the_bytes_that_are_on_disk() {
    for (json, key, type_bits) in GOLDEN {
        let value = parse_json_value(json).unwrap();
        let (mut bytes, mut bits) = (Vec::new(), TypeBits::new());
        encode(&value, Direction::Ascending, &mut bytes, &mut bits);
        assert_eq!((hex(&bytes).as_str(), hex(bits.as_bytes()).as_str()), (*key, *type_bits), "{json}");
        assert_eq!(decode(&bytes, bits.as_bytes(), &[Direction::Ascending]), Ok(vec![value]), "{json}");
    }
}

/// A description, then key bytes, then type bits. The key bytes would stand for a value if there were no
/// shorter or better way to write it.
const NEVER_WRITTEN: &[(&str, &str, &str)] = &[
    ("a group of zeros at the end of a fraction", "322c9f00002b0100", ""),
    ("a group of zeros, which would stand for nothing", "2e0300", "80"),
    ("1 in two bytes", "2f0002", ""),
    ("a short length in the long form", "78ff0000000100aa", ""),
    ("a pair of zeros behind the digits of the decimal 0.1", "2d7f7333333333333318381500", ""),
    ("the decimal 0.1 with a double that is not the nearest below", "2d7f73333333333331183814", ""),
    ("digits of the decimal 1.5, which is a double", "2e03810101010101010164", ""),
];

#[test]
fn bytes_that_stand_for_a_value_but_are_never_written_are_refused() {
    for (what, key, type_bits) in NEVER_WRITTEN {
        let decoded = decode(&unhex(key), &unhex(type_bits), &[Direction::Ascending]);
        assert!(
            matches!(
                decoded,
                Err(DecodeError::ImpossiblePayload { .. } | DecodeError::ImpossibleType { .. })
            ),
            "{what}: {decoded:?}"
        );
    }
}

#[test]
fn a_descending_part_is_inverted_and_the_next_is_not() {
    let (mut bytes, mut bits) = (Vec::new(), TypeBits::new());
    encode(&pando_document::Value::from("a"), Direction::Descending, &mut bytes, &mut bits);
    encode(&pando_document::Value::from(-1i64), Direction::Ascending, &mut bytes, &mut bits);
    assert_eq!(hex(&bytes), "9f9eff2afd");
    assert_eq!(hex(bits.as_bytes()), "60", "0 of the string, 110 of the Int64");
}

#[test]
fn an_empty_array_in_an_index_is_below_null_and_brackets_are_ranges_of_lead_bytes() {
    use pando_document::CanonicalType::{Boolean, Number, String};
    let mut bytes = Vec::new();
    encode_empty_array(Direction::Ascending, &mut bytes);
    encode_empty_array(Direction::Descending, &mut bytes);
    assert_eq!(hex(&bytes), "10ef");
    assert_eq!(bracket_lead_bytes(Number, Direction::Ascending), 0x20..=0x37);
    assert_eq!(bracket_lead_bytes(Boolean, Direction::Ascending), 0x88..=0x89);
    assert_eq!(bracket_lead_bytes(Number, Direction::Descending), 0xC8..=0xDF);
    assert_eq!(bracket_lead_bytes(String, Direction::Descending), 0x9F..=0x9F);
}
