//! Extended JSON of strangers: no text makes the parser panic, and parsed values are printed so that they
//! read the same again.

use pando_document::{JsonFormat, Value, parse_json_line, parse_json_prefix, parse_json_value, to_json};

/// Inputs that are sound.
pub fn examples() -> Vec<Vec<u8>> {
    const TEXTS: [&str; 6] = [
        r#"{"a": 1, "b": [true, false, null, -0.0, 1e400, "\\u00e9\\ud83d\\ude00"]} {"next": 1}"#,
        r#"{"_id": {"$oid": "0123456789abcdef01234567"}, "d": {"$date": "2024-02-29T12:34:56.789Z"}}"#,
        r#"{"d": {"$date": {"$numberLong": "-62135596800000"}}, "n": {"$numberDecimal": "-1.50E-6176"}}"#,
        r#"{"r": {"$regex": "a", "$options": "x"}, "q": {"$regularExpression": {"pattern": "^a", "options": "im"}}}"#,
        r#"{"b": {"$binary": {"base64": "AAEC", "subType": "80"}}, "u": {"$uuid": "00112233-4455-6677-8899-aabbccddeeff"}}"#,
        r#"{"c": {"$code": "f()", "$scope": {"a": {"$numberInt": "1"}}}, "p": {"$dbPointer": {"$ref": "a", "$id": {"$oid": "0123456789abcdef01234567"}}}}"#,
    ];
    TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// See the module.
pub fn run(text: &str) {
    let value = parse_json_value(text);
    let line = parse_json_line(text);
    match parse_json_prefix(text) {
        Ok(Some((document, taken))) => {
            let again = parse_json_line(&text[..taken]).expect("the prefix is a document");
            assert_eq!(canonical(&again.into()), canonical(&document.into()));
        }
        Ok(None) => assert!(line.is_err()),
        Err(error) => assert!(error.offset <= text.len() && line.is_err()),
    }
    let Ok(value) = value else { return };
    if let Ok(line) = line {
        assert_eq!(canonical(&line.into()), canonical(&value));
    }
    let printed = canonical(&value);
    assert_eq!(canonical(&reread(&printed)), printed);
    // Relaxed text loses the width of integers, once.
    let relaxed = to_json(&value, JsonFormat::Relaxed);
    assert_eq!(to_json(&reread(&relaxed), JsonFormat::Relaxed), relaxed);
}

fn canonical(value: &Value) -> String {
    to_json(value, JsonFormat::Canonical)
}

fn reread(text: &str) -> Value {
    parse_json_value(text).unwrap_or_else(|error| panic!("{error} in what was printed: {text}"))
}
