//! Every filter of the corpus in `tests/filters` finds what MongoDB 6.0 found, or is
//! refused in the same words.
//!
//! The expectations were written by `tests/filters/ask_oracle.py`; the test needs only this crate.

use std::fmt::Write as _;
use std::path::PathBuf;

use pando_document::{RawDocumentBuf, RawValue, Value, doc};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;

use crate::extended_json;

/// The answer of a filter, as the corpus writes it.
fn answer(documents: &[RawDocumentBuf], filter: &str) -> String {
    let parsed = match Filter::parse(&extended_json::document(filter), &ParseScope::default()) {
        Ok(parsed) => parsed,
        Err(error) => return format!("error {}", error.message().replace('\0', "\\0")),
    };
    let mut line = "ids".to_owned();
    for document in documents {
        match parsed.matches(document) {
            Ok(true) => {
                let Ok(Some(RawValue::Int32(id))) = document.get("_id") else {
                    panic!("the corpus numbers its documents")
                };
                write!(line, " {id}").expect("writing to a string");
            }
            Ok(false) => {}
            Err(error) => return format!("error {}", error.message()),
        }
    }
    line
}

/// Runs one file; returns the number of filters and the differences.
fn run(path: &PathBuf) -> (usize, Vec<String>) {
    let text = std::fs::read_to_string(path).expect("the corpus is readable");
    let name = path.file_name().expect("a file").to_string_lossy().into_owned();
    let mut documents = Vec::new();
    let mut filter: Option<&str> = None;
    let (mut asked, mut differences) = (0, Vec::new());
    let mut answered = true;
    for (number, line) in text.lines().enumerate() {
        if let Some(document) = line.strip_prefix("doc ") {
            if filter.take().is_some() {
                documents.clear();
            }
            documents.push(extended_json::document(document));
        } else if let Some(next) = line.strip_prefix("find ") {
            assert!(answered, "{name}:{number}: a filter without an answer");
            (filter, answered) = (Some(next), false);
        } else if line.starts_with("ids") || line.starts_with("error ") {
            let filter = filter.expect("an answer stands behind its filter");
            let ours = answer(&documents, filter);
            (asked, answered) = (asked + 1, true);
            if ours != line {
                differences
                    .push(format!("{name}:{} {filter}\n  MongoDB: {line}\n  Pando:   {ours}", number + 1));
            }
        } else {
            assert!(line.is_empty() || line.starts_with('#'), "{name}:{}: {line}", number + 1);
        }
    }
    assert!(answered, "{name}: the last filter has no answer");
    (asked, differences)
}

#[test]
fn filters_find_what_mongodb_finds() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/filters");
    let mut asked = 0;
    let mut differences = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the corpus is there") {
        let path = entry.expect("the corpus is readable").path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let (more, found) = run(&path);
            asked += more;
            differences.extend(found);
        }
    }
    assert!(asked >= 1_500, "the corpus has shrunk to {asked} filters");
    assert!(differences.is_empty(), "{} of {asked} differ:\n{}", differences.len(), differences.join("\n"));
}

/// An operator around itself so many times.
fn nested(operator: &str, depth: usize) -> Result<Filter, pando_query::QueryError> {
    let mut inner = if operator == "$not" {
        doc! { "$gt": 1 }
    } else {
        doc! { "a": 1 }
    };
    for _ in 0..depth {
        inner = match operator {
            "$and" => doc! { "$and": [(Value::Document(inner))] },
            "$elemMatch" => doc! { "a": { "$elemMatch": (Value::Document(inner)) } },
            name => doc! { name: (Value::Document(inner)) },
        };
    }
    if operator == "$not" {
        inner = doc! { "a": (Value::Document(inner)) };
    }
    Filter::parse(&inner.to_raw(), &ParseScope::default())
}

#[test]
fn filters_that_nest_without_end_are_refused() {
    for operator in ["$and", "$not", "$elemMatch"] {
        assert!(nested(operator, 20).is_ok(), "{operator}");
        assert!(nested(operator, 150).is_err_and(|error| error.message().contains("depth")), "{operator}");
    }
}

#[test]
fn malformed_bytes_are_errors_and_never_panics() {
    let chance = pando_environment::SeededRandom::new(42);
    let text =
        std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/filters/arrays.txt"));
    let text = text.expect("the corpus is readable");
    let target = extended_json::document(r#"{"a":[{"b":1,"c":[1,2]},3,"x"],"b":null}"#);
    for filter in text.lines().filter_map(|line| line.strip_prefix("find ")) {
        let whole = extended_json::document(filter).into_vec();
        for _ in 0..200 {
            let mut bytes = whole.clone();
            for _ in 0..=chance.below(3) {
                let at = 4 + chance.below(bytes.len() as u64 - 4) as usize;
                bytes[at] = chance.below(256) as u8;
            }
            // Bytes that do not look like a document are refused before any parser sees them.
            let Ok(document) = RawDocumentBuf::from_vec(bytes) else { continue };
            if let Ok(parsed) = Filter::parse(&document, &ParseScope::default()) {
                // Any answer will do, an error too.
                let _ = parsed.matches(&target);
            }
        }
    }
}
