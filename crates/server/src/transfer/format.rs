//! The format of a file: given, or detected from its name and first byte.

use std::io::{self, BufRead};
use std::path::Path;

/// The format of documents in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// One JSON object per line.
    JsonLines,
    /// One JSON array of objects.
    JsonArray,
    /// Comma-separated values, the first line names the columns.
    Csv,
}

impl InputFormat {
    /// The names on the command line.
    pub const NAMES: [&'static str; 3] = ["jsonl", "json-array", "csv"];

    /// The format of a name.
    pub fn of_name(name: &str) -> Option<InputFormat> {
        match name {
            "jsonl" => Some(InputFormat::JsonLines),
            "json-array" => Some(InputFormat::JsonArray),
            "csv" => Some(InputFormat::Csv),
            _ => None,
        }
    }

    /// The format of a file: CSV if its name says so, otherwise JSON, an array if it begins with a bracket.
    /// White space before that is skipped; the reader of the format begins with the bracket.
    pub(super) fn detect(path: &Path, content: &mut dyn BufRead) -> io::Result<InputFormat> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        if name.trim_end_matches(".gz").ends_with(".csv") {
            return Ok(InputFormat::Csv);
        }
        // Only the first buffer is looked at, and no byte of it is taken: lines keep their numbers.
        let begin = content.fill_buf()?;
        let begin = begin.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(begin);
        match begin.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'[') => Ok(InputFormat::JsonArray),
            _ => Ok(InputFormat::JsonLines),
        }
    }
}
