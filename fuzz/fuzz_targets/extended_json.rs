//! Extended JSON of strangers: no text makes the parser panic, and what it reads is printed so that it reads the same again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_document::{JsonFormat, Value, parse_json_line, parse_json_prefix, parse_json_value, to_json};

fuzz_target!(|text: &str| {
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
});

fn canonical(value: &Value) -> String {
    to_json(value, JsonFormat::Canonical)
}

fn reread(text: &str) -> Value {
    parse_json_value(text).unwrap_or_else(|error| panic!("{error} in what was printed: {text}"))
}
