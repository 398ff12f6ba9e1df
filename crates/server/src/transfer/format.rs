//! The format of an input: given, or detected from its name and its content.

use std::path::Path;

/// The format of documents in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// JSON objects, one a line as a rule.
    JsonLines,
    /// One JSON array of objects.
    JsonArray,
    /// Comma-separated values.
    Csv,
    /// Values separated by tabs.
    Tsv,
    /// BSON documents, back to back.
    Bson,
}

/// The first bytes of an archive of mongodump.
const ARCHIVE_MAGIC: [u8; 4] = [0x6D, 0xE2, 0x99, 0x81];
/// The longest BSON document.
const BSON_BYTES_MAX: i32 = 17 * 1024 * 1024;

/// Why the format cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// An archive of mongodump.
    #[error(
        "an archive of mongodump, which is not read: dump into a folder (mongodump --out), or use mongorestore"
    )]
    Archive,
    /// Text of two bytes a character, as Excel and PowerShell write it.
    #[error("text in UTF-16: convert it first, as by iconv -f UTF-16 -t UTF-8")]
    Utf16,
    /// Text of one byte a character, as older programs write it.
    #[error("text that is not in UTF-8: convert it first, as by iconv -f latin1 -t utf-8")]
    NotUtf8,
    /// None of the formats.
    #[error("neither JSON nor CSV, TSV or BSON; if it is one of them, say so with --format")]
    Unknown,
}

impl InputFormat {
    /// The names on the command line; `json` is JSON of either form.
    pub const NAMES: [&'static str; 6] = ["json", "jsonl", "json-array", "csv", "tsv", "bson"];

    /// The format of a name; `None` for `json`, whose form is detected.
    pub fn of_name(name: &str) -> Option<InputFormat> {
        match name {
            "jsonl" => Some(InputFormat::JsonLines),
            "json-array" => Some(InputFormat::JsonArray),
            "csv" => Some(InputFormat::Csv),
            "tsv" => Some(InputFormat::Tsv),
            "bson" => Some(InputFormat::Bson),
            _ => None,
        }
    }

    /// The format of an input: by its name if that says rows or BSON, otherwise by the front of its content.
    pub(super) fn detect(path: &Path, head: &[u8]) -> Result<InputFormat, FormatError> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let name = name.trim_end_matches(".gz");
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        // A line break behind one letter looks like a type. In BSON a name follows, which is not empty.
        if extension != Some("bson") && (!is_bson(head) || head.get(5) == Some(&0)) {
            InputFormat::check_text(head)?;
        }
        match extension {
            Some("csv") => Ok(InputFormat::Csv),
            Some("tsv" | "tab") => Ok(InputFormat::Tsv),
            Some("bson") => Ok(InputFormat::Bson),
            Some("json" | "jsonl" | "ndjson") => Ok(InputFormat::of_json(head)),
            _ => InputFormat::of_content(head),
        }
    }

    /// Refuses text that is not in UTF-8, by its mark.
    pub(super) fn check_text(head: &[u8]) -> Result<(), FormatError> {
        match UTF_16_MARKS.iter().any(|mark| head.starts_with(mark)) {
            true => Err(FormatError::Utf16),
            false => Ok(()),
        }
    }

    /// The form of JSON: an array if it begins with a bracket.
    pub(super) fn of_json(head: &[u8]) -> InputFormat {
        match text_of(head).first() {
            Some(b'[') => InputFormat::JsonArray,
            _ => InputFormat::JsonLines,
        }
    }

    fn of_content(head: &[u8]) -> Result<InputFormat, FormatError> {
        if head.starts_with(&ARCHIVE_MAGIC) {
            return Err(FormatError::Archive);
        }
        if is_bson(head) {
            return Ok(InputFormat::Bson);
        }
        let text = text_of(head);
        let first_line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        match text.first() {
            None | Some(b'{' | b'[') => Ok(InputFormat::of_json(head)),
            _ if head.contains(&0) => Err(FormatError::Unknown),
            _ if first_line.contains(&b'\t') => Ok(InputFormat::Tsv),
            _ if first_line.contains(&b',') => Ok(InputFormat::Csv),
            _ => Err(FormatError::Unknown),
        }
    }
}

/// The byte-order marks of UTF-16.
const UTF_16_MARKS: [[u8; 2]; 2] = [[0xFF, 0xFE], [0xFE, 0xFF]];

/// The front without a byte-order mark and white space.
fn text_of(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start()
}

/// A length, then the type of a first field, or an empty document.
fn is_bson(head: &[u8]) -> bool {
    let Some((length, [first_type, ..])) = head.split_first_chunk::<4>() else { return false };
    let length = i32::from_le_bytes(*length);
    match first_type {
        0 => length == 5,
        0x01..=0x13 | 0x7F | 0xFF => (6..=BSON_BYTES_MAX).contains(&length) && head[5..].contains(&0),
        _ => false,
    }
}
