//! Operators of expressions that the oracle does not have, over values of every type and extreme numbers. The
//! others are asked in `tests/acceptance/test_expression_matrix.py`.

use pando_document::RawDocument;
use pando_query::expression::{Expression, ParseScope};

use crate::corpus::{boxed, canonical_text, canonical_value, error_text, value_of};

/// A value of each type, in Extended JSON; the first is missing.
const VALUES: [&str; 36] = [
    "",
    "null",
    r#"{"$undefined": true}"#,
    r#"{"$numberInt": "0"}"#,
    r#"{"$numberInt": "12"}"#,
    r#"{"$numberInt": "2147483647"}"#,
    r#"{"$numberInt": "-2147483648"}"#,
    r#"{"$numberLong": "10"}"#,
    r#"{"$numberLong": "9223372036854775807"}"#,
    r#"{"$numberLong": "-9223372036854775808"}"#,
    r#"{"$numberDouble": "2.5"}"#,
    r#"{"$numberDouble": "-0.0"}"#,
    r#"{"$numberDouble": "1e308"}"#,
    r#"{"$numberDouble": "NaN"}"#,
    r#"{"$numberDouble": "Infinity"}"#,
    r#"{"$numberDouble": "-Infinity"}"#,
    r#"{"$numberDecimal": "1.25"}"#,
    r#"{"$numberDecimal": "NaN"}"#,
    r#"{"$numberDecimal": "-Infinity"}"#,
    r#""abc""#,
    r#""""#,
    r#""0e3b9063-8abd-4eb3-9f9f-f4c59fd30a60""#,
    r#"{"$binary": {"base64": "AQID", "subType": "00"}}"#,
    r#"{"$binary": {"base64": "AAECAwQFBgcICQoLDA0ODw==", "subType": "04"}}"#,
    r#"{"$oid": "5f0000000000000000000001"}"#,
    "true",
    r#"{"$date": "2024-02-29T12:34:56.789Z"}"#,
    r#"{"$timestamp": {"t": 5, "i": 1}}"#,
    r#"{"$regularExpression": {"pattern": "a", "options": "i"}}"#,
    r#"{"$code": "f"}"#,
    r#"{"$symbol": "s"}"#,
    r#"{"$minKey": 1}"#,
    r#"{"$maxKey": 1}"#,
    r#"{"a": 1, "b": [1]}"#,
    r#"[3, {"$numberLong": "1"}, "x", null, {"$numberDouble": "NaN"}, [9]]"#,
    "[]",
];

/// The kind of a value, as operators tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nullish,
    Integer,
    Fraction,
    Text,
    Binary,
    Array,
    Other,
}

fn kind_of(value: &str) -> Kind {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| value.starts_with(beginning));
    if value.is_empty() || value == "null" || begins(&[r#"{"$undefined"#]) {
        Kind::Nullish
    } else if begins(&[r#"{"$numberInt"#, r#"{"$numberLong"#]) {
        Kind::Integer
    } else if begins(&[r#"{"$number"#]) {
        Kind::Fraction
    } else if begins(&["\""]) {
        Kind::Text
    } else if begins(&[r#"{"$binary"#]) {
        Kind::Binary
    } else if begins(&["["]) {
        Kind::Array
    } else {
        Kind::Other
    }
}

/// An expression over a document whose field `a` has the value: its canonical text, `missing`, or its error.
fn computed(expression: &str, value: &str) -> String {
    let holder = boxed(expression);
    let root = match value {
        "" => "{}".to_owned(),
        value => format!(r#"{{"a": {value}}}"#),
    };
    let root = boxed(&root);
    let root: &RawDocument = value_of(&root).as_document().expect("a document");
    let parsed = Expression::parse(value_of(&holder), &ParseScope::at(0))
        .and_then(Expression::folded)
        .expect("it parses");
    match parsed.evaluate(root) {
        Err(error) => error_text(&error),
        Ok(result) => result.raw().map_or_else(|| "missing".to_owned(), canonical_value),
    }
}

/// The results of an expression over all values, with the kind of each.
fn results(expression: &str) -> impl Iterator<Item = (&'static str, Kind, String)> {
    VALUES.iter().map(move |value| (*value, kind_of(value), computed(expression, value)))
}

const NULL: &str = "null";

/// The integer that Extended JSON shows.
fn integer(value: &str) -> Option<i64> {
    let digits = value.split('"').nth(3)?;
    digits.parse().ok()
}

#[test]
fn bits_are_combined_of_whole_numbers_alone() {
    for operator in ["$bitAnd", "$bitOr", "$bitXor"] {
        let combined = |number: i64| match operator {
            "$bitAnd" => number & 6,
            "$bitOr" => number | 6,
            _ => number ^ 6,
        };
        for (value, kind, result) in results(&format!(r#"{{"{operator}": ["$a", 6]}}"#)) {
            match kind {
                Kind::Nullish => assert_eq!(result, NULL, "{operator} {value}"),
                Kind::Integer => {
                    let expected = combined(integer(value).expect("it is one"));
                    assert_eq!(integer(&result), Some(expected), "{operator} {value}");
                    assert_eq!(result.contains("Long"), value.contains("Long"), "{operator} {value}");
                }
                _ => assert_eq!(result, "error 14", "{operator} {value}"),
            }
        }
    }
    for (value, kind, result) in results(r#"{"$bitNot": "$a"}"#) {
        match kind {
            Kind::Nullish => assert_eq!(result, NULL),
            Kind::Integer => assert_eq!(integer(&result), integer(value).map(|number| !number), "{value}"),
            Kind::Fraction => assert_eq!(result, "error 14", "{value}"),
            _ => assert_eq!(result, "error 28765", "{value}"),
        }
    }
}

#[test]
fn a_sigmoid_is_a_double_from_nothing_to_one() {
    for (value, kind, result) in results(r#"{"$sigmoid": "$a"}"#) {
        match kind {
            Kind::Nullish => assert_eq!(result, NULL, "{value}"),
            Kind::Integer | Kind::Fraction => {
                let text = result.split('"').nth(3).unwrap_or_default();
                let number: f64 = text.parse().unwrap_or_else(|_| panic!("{value} gives {result}"));
                assert!(value.contains("NaN") == number.is_nan(), "{value} gives {result}");
                assert!(number.is_nan() || (0.0..=1.0).contains(&number), "{value} gives {result}");
            }
            _ => assert_eq!(result, "error 28765", "{value}"),
        }
    }
    assert!(
        results(r#"{"$sigmoid": {"input": "$a", "onNull": "none"}}"#)
            .all(|(_, kind, result)| (kind == Kind::Nullish) == (result == "\"none\""))
    );
}

#[test]
fn hashes_are_of_strings_and_bytes() {
    for (algorithm, bytes) in [("md5", 16), ("sha256", 32), ("xxh64", 8)] {
        let arguments = format!(r#"{{"input": "$a", "algorithm": "{algorithm}"}}"#);
        for (value, kind, result) in results(&format!(r#"{{"$hexHash": {arguments}}}"#)) {
            match kind {
                Kind::Nullish => assert_eq!(result, NULL, "{value}"),
                Kind::Text | Kind::Binary => {
                    let digits = result.trim_matches('"');
                    assert_eq!(digits.len(), 2 * bytes, "{value} gives {result}");
                    assert!(digits.bytes().all(|digit| digit.is_ascii_digit() || digit.is_ascii_uppercase()));
                }
                _ => assert_eq!(result, "error 10754000", "{value}"),
            }
        }
        for (value, kind, result) in results(&format!(r#"{{"$hash": {arguments}}}"#)) {
            assert_eq!(result.contains("$binary"), matches!(kind, Kind::Text | Kind::Binary), "{value}");
        }
    }
    for (value, kind, result) in results(r#"{"$hash": {"input": "x", "algorithm": "$a"}}"#) {
        let expected = if kind == Kind::Text { "error 10754002" } else { "error 10754001" };
        assert_eq!(result, expected, "{value}");
    }
}

#[test]
fn medians_and_percentiles_are_of_the_numbers_among_the_values() {
    for (value, kind, result) in results(r#"{"$median": {"input": "$a", "method": "approximate"}}"#) {
        let is_number = matches!(kind, Kind::Integer | Kind::Fraction) && !value.contains("NaN");
        let has_numbers = is_number || (kind == Kind::Array && value != "[]");
        assert_eq!(result.contains("$numberDouble"), has_numbers, "{value} gives {result}");
        assert!(has_numbers || result == NULL, "{value} gives {result}");
        if kind == Kind::Array && has_numbers {
            assert_eq!(result, canonical_text(r#"{"$numberDouble": "1.0"}"#));
        }
    }
    for (value, _, result) in
        results(r#"{"$percentile": {"input": "$a", "p": [0, 0.5, 1], "method": "approximate"}}"#)
    {
        let median = computed(r#"{"$median": {"input": "$a", "method": "approximate"}}"#, value);
        assert!(result.starts_with('[') && result.contains(&median), "{value} gives {result}");
    }
}

#[test]
fn uuids_are_of_their_text_or_their_bytes() {
    for (value, kind, result) in results(r#"{"$toUUID": "$a"}"#) {
        match kind {
            Kind::Nullish => assert_eq!(result, NULL, "{value}"),
            _ if value.contains(r#""subType": "04""#) => assert_eq!(result, canonical_text(value)),
            Kind::Text if value.len() == 38 => {
                let known = r#"{"$binary": {"base64": "DjuQY4q9TrOfn/TFn9MKYA==", "subType": "04"}}"#;
                assert_eq!(result, canonical_text(known));
            }
            _ => assert_eq!(result, "error 241", "{value}"),
        }
    }
}

#[test]
fn each_value_has_a_hashed_index_key_and_equal_whole_numbers_have_the_same() {
    for (value, _, result) in results(r#"{"$toHashedIndexKey": "$a"}"#) {
        assert!(result.contains("$numberLong"), "{value} gives {result}");
    }
    let key = |value| computed(r#"{"$toHashedIndexKey": "$a"}"#, value);
    let twelve = key(r#"{"$numberInt": "12"}"#);
    assert_eq!(key(r#"{"$numberLong": "12"}"#), twelve);
    assert_eq!(key(r#"{"$numberDouble": "12.0"}"#), twelve);
    assert_ne!(key("\"12\""), twelve);
    assert_eq!(key(""), key("null"));
}

#[test]
fn months_have_names_in_the_formats_of_dates() {
    let written = |date| {
        let expression = r#"{"$dateToString": {"date": "$a", "format": "%d %b %B %Y%%"}}"#;
        computed(expression, &format!(r#"{{"$date": "{date}"}}"#))
    };
    assert_eq!(written("2024-01-31T00:00:00Z"), r#""31 Jan January 2024%""#);
    assert_eq!(written("2024-05-01T00:00:00Z"), r#""01 May May 2024%""#);
    assert_eq!(written("2024-12-31T23:59:59Z"), r#""31 Dec December 2024%""#);
    let read = |text, format| {
        let date = format!(r#"{{"$dateFromString": {{"dateString": "$a", "format": "{format}"}}}}"#);
        let shown =
            format!(r#"{{"$dateToString": {{"date": {date}, "format": "%Y-%m-%d", "onNull": "none"}}}}"#);
        computed(&shown, &format!("\"{text}\""))
    };
    for (text, format) in [
        ("29 Feb 2024", "%d %b %Y"),
        ("29 fEB 2024", "%d %B %Y"),
        ("FEBRUARY292024", "%B%d%Y"),
        ("february 29, 2024", "%b %d, %Y"),
    ] {
        assert_eq!(read(text, format), r#""2024-02-29""#, "{text}");
    }
    for (text, format) in
        [("29 Fe 2024", "%d %b %Y"), ("29 02 2024", "%d %b %Y"), ("Feb 30 2024", "%b %d %Y"), ("", "%B")]
    {
        assert!(read(text, format).contains("error 241"), "{text}: {}", read(text, format));
    }
}
