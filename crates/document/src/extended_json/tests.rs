//! Extended JSON: printed values are read back, and text that is none is refused where its fault is.

use proptest::prelude::*;

use super::*;
use crate::{Document, Value, doc};

/// Canonical and relaxed form of the same value.
const FORMS: &[(&str, &str)] = &[
    (r#"{"a":{"$numberInt":"-1"}}"#, r#"{"a":-1}"#),
    (r#"{"a":{"$numberLong":"9223372036854775807"}}"#, r#"{"a":9223372036854775807}"#),
    (r#"{"a":{"$numberDouble":"1.0"}}"#, r#"{"a":1.0}"#),
    (r#"{"a":{"$numberDouble":"-0.0"}}"#, r#"{"a":-0.0}"#),
    (r#"{"a":{"$numberDouble":"1e22"}}"#, r#"{"a":1e22}"#),
    (r#"{"a":{"$numberDouble":"-Infinity"}}"#, r#"{"a":{"$numberDouble":"-Infinity"}}"#),
    (r#"{"a":{"$numberDouble":"NaN"}}"#, r#"{"a":{"$numberDouble":"NaN"}}"#),
    (r#"{"a":{"$numberDecimal":"1.10"}}"#, r#"{"a":{"$numberDecimal":"1.10"}}"#),
    (r#"{"a":"x\u0000\"\\\n€😀"}"#, r#"{"a":"x\u0000\"\\\n€😀"}"#),
    (r#"{"a":[true,false,null,{}]}"#, r#"{"a":[true,false,null,{}]}"#),
    (r#"{"a":{"$oid":"0102030405060708090a0b0c"}}"#, r#"{"a":{"$oid":"0102030405060708090a0b0c"}}"#),
    (r#"{"a":{"$date":{"$numberLong":"1356351330501"}}}"#, r#"{"a":{"$date":"2012-12-24T12:15:30.501Z"}}"#),
    (r#"{"a":{"$date":{"$numberLong":"-1"}}}"#, r#"{"a":{"$date":{"$numberLong":"-1"}}}"#),
    (
        r#"{"a":{"$binary":{"base64":"/wAB","subType":"80"}}}"#,
        r#"{"a":{"$binary":{"base64":"/wAB","subType":"80"}}}"#,
    ),
    (
        r#"{"a":{"$regularExpression":{"pattern":"^a\"","options":"im"}}}"#,
        r#"{"a":{"$regularExpression":{"pattern":"^a\"","options":"im"}}}"#,
    ),
    (r#"{"a":{"$timestamp":{"t":4294967295,"i":1}}}"#, r#"{"a":{"$timestamp":{"t":4294967295,"i":1}}}"#),
    (
        r#"{"a":{"$dbPointer":{"$ref":"b.c","$id":{"$oid":"0102030405060708090a0b0c"}}}}"#,
        r#"{"a":{"$dbPointer":{"$ref":"b.c","$id":{"$oid":"0102030405060708090a0b0c"}}}}"#,
    ),
    (r#"{"a":{"$code":"f()"},"b":{"$symbol":"s"}}"#, r#"{"a":{"$code":"f()"},"b":{"$symbol":"s"}}"#),
    (
        r#"{"a":{"$code":"f()","$scope":{"n":{"$numberInt":"1"}}}}"#,
        r#"{"a":{"$code":"f()","$scope":{"n":1}}}"#,
    ),
    (
        r#"{"a":{"$minKey":1},"b":{"$maxKey":1},"c":{"$undefined":true}}"#,
        r#"{"a":{"$minKey":1},"b":{"$maxKey":1},"c":{"$undefined":true}}"#,
    ),
];

#[test]
fn both_forms_are_read_and_printed() {
    for (canonical, relaxed) in FORMS {
        let document = parse_json_line(canonical).unwrap();
        assert_eq!(to_json(&document, JsonFormat::Canonical), *canonical);
        assert_eq!(to_json(&document, JsonFormat::Relaxed), *relaxed);
        assert_eq!(document.to_string(), *relaxed);
        assert_eq!(parse_json_line(relaxed).unwrap(), document, "{relaxed}");
        let raw = document.to_raw();
        assert_eq!(to_json(&*raw, JsonFormat::Canonical), *canonical);
    }
}

#[test]
fn older_and_looser_spellings_are_read() {
    for (text, canonical) in [
        (r#"{"$binary":"AQ==","$type":"05"}"#, r#"{"$binary":{"base64":"AQ==","subType":"05"}}"#),
        (r#"{"$type":"5","$binary":"AQ=="}"#, r#"{"$binary":{"base64":"AQ==","subType":"05"}}"#),
        (r#"{"$date":1000}"#, r#"{"$date":{"$numberLong":"1000"}}"#),
        (r#"{"$date":"1970-01-01T01:00:01+01:00"}"#, r#"{"$date":{"$numberLong":"1000"}}"#),
        (
            r#"{"$uuid":"c8edabc3-f738-4ca3-b68d-ab92a91478a3"}"#,
            r#"{"$binary":{"base64":"yO2rw/c4TKO2jauSqRR4ow==","subType":"04"}}"#,
        ),
        (r#"{"$scope":{},"$code":"f"}"#, r#"{"$code":"f","$scope":{}}"#),
        (" [ 1 , 2.5e3 , -7 ] ", r#"[{"$numberInt":"1"},{"$numberDouble":"2500.0"},{"$numberInt":"-7"}]"#),
        ("9223372036854775808", r#"{"$numberDouble":"9.223372036854776e18"}"#),
        ("2147483648", r#"{"$numberLong":"2147483648"}"#),
        (r#""\ud83d\ude00\u20ac\/""#, r#""😀€/""#),
    ] {
        let value = parse_json_value(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(to_json(&value, JsonFormat::Canonical), canonical);
    }
}

#[test]
fn documents_with_dollar_names_that_are_no_types_stay_documents() {
    for text in [
        r#"{"$gt":5}"#,
        r#"{"$type":"string"}"#,
        r#"{"$regex":"^a","$options":"i"}"#,
        r#"{"$ref":"c","$id":1}"#,
        r#"{"a":1,"$oid":"x"}"#,
    ] {
        assert_eq!(parse_json_value(text).unwrap().to_string(), text);
    }
}

#[test]
fn faults_are_reported_where_they_are() {
    let fault = |text: &str| parse_json_value(text).unwrap_err();
    for (text, offset, start) in [
        (r#"{"a":1,}"#, 7, "expected a field name"),
        (r#"{"a" 1}"#, 5, "expected `:`"),
        (r#"{"a":1 "b":2}"#, 7, "expected `,` or `}`"),
        ("[1 2]", 3, "expected `,` or `]`"),
        ("01", 0, "expected a number without"),
        ("[-01]", 1, "expected a number without"),
        ("[1.]", 3, "expected a digit"),
        ("[-]", 2, "expected a number"),
        ("1e400", 0, "the number is too large"),
        ("nul]", 0, "expected a value"),
        (r#""a	b""#, 2, "a string contains"),
        (r#""\x""#, 1, "a string contains"),
        (r#""\ud800\u0041""#, 13, "a string contains"),
        (r#""\udc00a""#, 7, "a string contains"),
        (r#"{"a\u0000":1}"#, 1, "a field name contains a NUL"),
        (r#"{"x":{"$oid":"12"}}"#, 5, "$oid does not have"),
        (r#"{"$numberInt":"2147483648"}"#, 0, "$numberInt does not have"),
        (r#"{"$numberInt":"+1"}"#, 0, "$numberInt does not have"),
        (r#"{"$numberLong":"1","a":1}"#, 0, "$numberLong does not have"),
        (r#"{"$numberDouble":"inf"}"#, 0, "$numberDouble does not have"),
        (r#"{"$numberDecimal":"x"}"#, 0, "$numberDecimal does not have"),
        (r#"{"$binary":{"base64":"?","subType":"00"}}"#, 0, "$binary does not have"),
        (r#"{"$binary":{"base64":"","subType":"+1"}}"#, 0, "$binary does not have"),
        (r#"{"$timestamp":{"t":-1,"i":0}}"#, 0, "$timestamp does not have"),
        (r#"{"$minKey":2}"#, 0, "$minKey does not have"),
        (r#"{"$date":"yesterday"}"#, 0, "$date does not have"),
        ("1 2", 2, "there is more text"),
    ] {
        let error = fault(text);
        assert_eq!(error.offset, offset, "{text}: {error}");
        assert!(error.to_string().starts_with(start), "{text}: {error}");
    }
    assert_eq!(parse_json_line("[1]").unwrap_err().fault, JsonFault::Unexpected { expected: "a document" },);
    assert!(matches!(fault(&"[".repeat(100_000)).fault, JsonFault::TooDeep { .. }));
}

#[test]
fn documents_are_read_one_by_one_from_a_growing_buffer() {
    let text = r#" {"a":{"$oid":"0102030405060708090a0b0c"},"b":[tru"#;
    for end in 2..text.len() {
        let error = parse_json_prefix(&text[..end]).unwrap_err();
        assert!(error.is_incomplete(), "{}: {error}", &text[..end]);
    }
    let whole = format!("{text}e]}} {{\"c\":1}}");
    let (first, length) = parse_json_prefix(&whole).unwrap().unwrap();
    assert_eq!(first.get("b"), Some(&Value::Array(vec![Value::Boolean(true)])));
    let (second, rest) = parse_json_prefix(&whole[length..]).unwrap().unwrap();
    assert_eq!((second, length + rest), (doc! { "c": 1 }, whole.len()));
    assert_eq!(parse_json_prefix(" \n"), Ok(None));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused_and_never_panics(text in r#"[\[\]{}":,0-9.eE+\-\\u$a-dtrulfasn€ ]{0,60}"#) {
        if let Ok(value) = parse_json_value(&text) {
            assert_eq!(parse_json_value(&to_json(&value, JsonFormat::Canonical)), Ok(value));
        }
    }

    #[test]
    fn damaged_json_is_read_or_refused_and_never_panics(
        form in 0..FORMS.len(), place in any::<prop::sample::Index>(), character in any::<char>(), count in 0..3usize,
    ) {
        let mut characters: Vec<char> = FORMS[form].0.chars().collect();
        let place = place.index(characters.len());
        let end = (place + count).min(characters.len());
        characters.splice(place..end, [character]);
        let text: String = characters.into_iter().collect();
        let read: Result<Document, JsonError> = parse_json_line(&text);
        if let Err(error) = read {
            assert!(error.offset <= text.len());
        }
    }

    #[test]
    fn doubles_are_read_back_bit_by_bit(number in any::<f64>()) {
        prop_assume!(!number.is_nan());
        let value = Value::Double(number);
        assert_eq!(parse_json_value(&to_json(&value, JsonFormat::Canonical)), Ok(value.clone()));
        assert_eq!(parse_json_value(&to_json(&value, JsonFormat::Relaxed)), Ok(value));
    }
}
