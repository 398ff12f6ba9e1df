//! The exceptions to the rules of size, each with its reason. They may shrink, never grow unnoticed.
//!
//! ```toml
//! [[file]]                       # more than 600 production lines
//! path = "crates/x/src/y.rs"
//! lines = 640                    # the most it may have
//! reason = "one state machine; its halves would share every field"
//!
//! [[function]]                   # more than 70 lines
//! path = "crates/x/src/y.rs"
//! name = "decode"
//! lines = 84                     # left out where the body is one table-like match, which may be as long as its table
//! reason = "one arm per type byte"
//!
//! [[boolean_parameter]]          # in a public function
//! path = "crates/x/src/y.rs"
//! name = "append_bool"
//! reason = "the value itself is a truth value"
//! ```

use crate::finding::Finding;
use serde::Deserialize;

/// The whole list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratchet {
    #[serde(default)]
    file: Vec<LongFile>,
    #[serde(default)]
    function: Vec<LongFunction>,
    #[serde(default)]
    boolean_parameter: Vec<BooleanParameter>,
}

/// A file with more production lines than the rule allows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongFile {
    path: String,
    lines: usize,
    reason: String,
}

/// A function that is longer than the rule allows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongFunction {
    path: String,
    name: String,
    lines: Option<usize>,
    reason: String,
}

/// A public function with a boolean parameter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BooleanParameter {
    path: String,
    name: String,
    reason: String,
}

impl Ratchet {
    /// Reads the list.
    pub fn parse(text: &str) -> Result<Ratchet, toml::de::Error> {
        toml::from_str(text)
    }

    /// The most production lines that this file is allowed beyond the rule.
    pub fn file_lines(&self, path: &str) -> Option<usize> {
        self.file.iter().find(|entry| entry.path == path).map(|entry| entry.lines)
    }

    /// The most lines that this function is allowed beyond the rule; a table has no limit.
    pub fn function_lines(&self, path: &str, name: &str) -> Option<usize> {
        let entry = self.function.iter().find(|entry| entry.path == path && entry.name == name);
        entry.map(|entry| entry.lines.unwrap_or(usize::MAX))
    }

    /// Whether this function may have boolean parameters.
    pub fn boolean_parameter(&self, path: &str, name: &str) -> bool {
        self.boolean_parameter.iter().any(|entry| entry.path == path && entry.name == name)
    }

    /// The functions that are listed for this file as long, and those that are listed with a boolean parameter.
    pub fn functions_of(&self, path: &str) -> (Vec<&str>, Vec<&str>) {
        let long = self.function.iter().filter(|entry| entry.path == path).map(|entry| entry.name.as_str());
        let boolean =
            self.boolean_parameter.iter().filter(|entry| entry.path == path).map(|entry| entry.name.as_str());
        (long.collect(), boolean.collect())
    }

    /// Entries of files that no longer exist, and entries without a reason.
    pub fn files_that_are_gone(&self, ratchet_path: &str, existing: &[String]) -> Vec<Finding> {
        let files = self.file.iter().map(|entry| (&entry.path, &entry.reason));
        let functions = self.function.iter().map(|entry| (&entry.path, &entry.reason));
        let booleans = self.boolean_parameter.iter().map(|entry| (&entry.path, &entry.reason));
        let mut findings = Vec::new();
        for (path, reason) in files.chain(functions).chain(booleans) {
            if !existing.contains(path) {
                findings.push(Finding::new(
                    ratchet_path,
                    1,
                    "ratchet",
                    format!("{path} is gone: remove its entry"),
                ));
            }
            if reason.trim().is_empty() {
                findings.push(Finding::new(
                    ratchet_path,
                    1,
                    "ratchet",
                    format!("an entry of {path} gives no reason"),
                ));
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_or_a_missing_reason_is_refused() {
        assert!(Ratchet::parse("[[file]]\npath = \"a\"\nlines = 700\n").is_err());
        assert!(Ratchet::parse("[[file]]\npath = \"a\"\nlines = 700\nreason = \"b\"\nmore = 1\n").is_err());
        assert!(Ratchet::parse("").is_ok());
    }

    #[test]
    fn a_function_without_a_number_is_a_table() {
        let list = "[[function]]\npath = \"a\"\nname = \"f\"\nreason = \"one arm per type\"\n";
        let ratchet = Ratchet::parse(list).expect("the list is well formed");
        assert_eq!(ratchet.function_lines("a", "f"), Some(usize::MAX));
        assert_eq!(ratchet.function_lines("a", "g"), None);
    }

    #[test]
    fn entries_of_gone_files_and_blank_reasons_are_found() {
        let list = "[[file]]\npath = \"gone.rs\"\nlines = 700\nreason = \"x\"\n\
                    [[file]]\npath = \"here.rs\"\nlines = 700\nreason = \" \"\n";
        let ratchet = Ratchet::parse(list).expect("the list is well formed");
        let found = ratchet.files_that_are_gone("ratchet.toml", &["here.rs".to_owned()]);
        assert_eq!(found.len(), 2);
    }
}
