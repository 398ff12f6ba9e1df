//! The corpora beside the tests: reading them, and comparing an answer with what the oracle answered.
//!
//! `ask_oracle.py` describes the format and fills in the expectations. An error's code is compared with
//! the oracle's, so a fault with a wrong code fails a test.

use std::collections::HashMap;
use std::path::Path;

use pando_document::{DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};
use pando_query::QueryError;

/// One case of a corpus.
pub struct Case {
    /// File and number, for messages.
    pub place: String,
    fields: HashMap<String, String>,
    /// The line behind `=>`.
    pub expected: String,
}

impl Case {
    /// A field as it is written.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// A field as a document of one field `v`, whose value it is.
    pub fn boxed(&self, name: &str) -> Option<RawDocumentBuf> {
        self.text(name).map(boxed)
    }
}

/// A value in Extended JSON, in a document of its own.
pub fn boxed(text: &str) -> RawDocumentBuf {
    let json: serde_json::Value =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{text} is no JSON: {error}"));
    let value =
        bson::Bson::try_from(json).unwrap_or_else(|error| panic!("{text} is no Extended JSON: {error}"));
    let mut document = bson::Document::new();
    document.insert("v", value);
    let bytes = document.to_vec().expect("a document from JSON can be written");
    RawDocumentBuf::from_vec(bytes).expect("the bson crate writes valid documents")
}

/// Reads every corpus of a folder below `tests/`.
pub fn read(folder: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the corpus folder is there")
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("the corpus can be read");
        let name = file.file_name().expect("a file has a name").to_string_lossy().into_owned();
        for (number, block) in text.split("\n\n").enumerate() {
            cases.extend(parse_block(block, format!("{name} case {number}")));
        }
    }
    cases
}

fn parse_block(block: &str, place: String) -> Option<Case> {
    let mut fields = HashMap::new();
    let mut expected = None;
    for line in block.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("=> ") {
            Some(expectation) => expected = Some(expectation.to_owned()),
            None => {
                let (name, value) = line.split_once(' ').unwrap_or((line, ""));
                fields.insert(name.to_owned(), value.to_owned());
            }
        }
    }
    if fields.is_empty() {
        return None;
    }
    let expected = expected.unwrap_or_else(|| panic!("{place} has no expectation: run ask_oracle.py"));
    Some(Case { place, fields, expected })
}

/// Canonical text of a value in a box, for comparison and for messages.
pub fn canonical(boxed: &RawDocumentBuf) -> String {
    let document = bson::Document::from_reader(boxed.as_bytes()).expect("the answer is valid BSON");
    document.get("v").expect("a box holds v").clone().into_canonical_extjson().to_string()
}

/// Canonical text of a value.
pub fn canonical_value(value: RawValue<'_>) -> String {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append("v", value);
    writer.finish();
    canonical(&RawDocumentBuf::from_vec(bytes).expect("the writer writes whole documents"))
}

/// Canonical text of an array that is given as its own document.
pub fn canonical_array(array: &RawDocument) -> String {
    canonical_value(RawValue::Array(RawArray::from_document(array)))
}

/// The value in a box.
pub fn value_of(holder: &RawDocument) -> RawValue<'_> {
    holder.get("v").expect("valid").expect("a box holds v")
}

/// The document in a box.
pub fn document_of(holder: &RawDocument) -> &RawDocument {
    value_of(holder).as_document().expect("this field is a document")
}

/// Canonical text of a document.
pub fn canonical_document(document: &RawDocument) -> String {
    let document = bson::Document::from_reader(document.as_bytes()).expect("the answer is valid BSON");
    bson::Bson::Document(document).into_canonical_extjson().to_string()
}

/// Canonical text of the Extended JSON in an expectation.
pub fn canonical_text(text: &str) -> String {
    canonical(&boxed(text))
}

/// `error N`, with MongoDB's code of the cause.
pub fn error_text(error: &QueryError) -> String {
    match error.code() {
        Some(code) => format!("error {}", code.code()),
        None => format!("error of the engine: {error}"),
    }
}

/// Whether the error has this text.
pub fn is_error(error: &QueryError, expected: &str) -> bool {
    error_text(error) == expected
}

/// The failure of a case that expects `documents […]` or an error; none if the answer is right.
/// `specification` names the field that the failure shows.
pub fn check_documents(
    case: &Case,
    specification: &str,
    answer: Result<String, QueryError>,
) -> Option<String> {
    let is_right = match &answer {
        Err(error) => is_error(error, &case.expected),
        Ok(text) => case
            .expected
            .strip_prefix("documents ")
            .is_some_and(|documents| canonical_text(documents) == *text),
    };
    if is_right {
        return None;
    }
    let answer = answer.unwrap_or_else(|error| format!("{} ({error})", error_text(&error)));
    Some(failure(case, specification, &answer))
}

/// The report of a case with a wrong answer.
pub fn failure(case: &Case, specification: &str, answer: &str) -> String {
    let shown = case.text(specification).unwrap_or_default();
    format!("{}: {shown}\n   expected {}\n   but was  {answer}", case.place, case.expected)
}

/// Reports all cases that fail, not only the first.
pub fn report(failures: Vec<String>, cases: usize, least: usize) {
    assert!(cases >= least, "the corpus shrank to {cases} cases");
    assert!(failures.is_empty(), "{} of {cases} cases differ:\n{}", failures.len(), failures.join("\n"));
}
