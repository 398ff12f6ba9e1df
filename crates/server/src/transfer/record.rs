//! A record, as the reader of any format gives it: one document or one complaint, with its place.

use bson::{Document, RawDocumentBuf};

use super::error::TransferError;
use super::extended_json_1::{is_version_1, upgraded};

/// The longest document that a store takes, with the allowance for its own fields that MongoDB has.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;

/// One document of the input.
#[derive(Debug)]
pub(super) struct Record {
    /// The line on which it begins, or its number in a BSON file; from 1.
    pub(super) line: u64,
    /// The document, or its fault.
    pub(super) content: Result<RawDocumentBuf, RecordError>,
}

/// Why a piece of the input is no document.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// Not JSON.
    #[error("not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// JSON that is no Extended JSON, or BSON with a fault.
    #[error("not valid Extended JSON: {0}")]
    ExtendedJson(#[from] bson::error::Error),
    /// BSON with a fault.
    #[error("not valid BSON: {0}")]
    Bson(String),
    /// A number, a string, an array.
    #[error("not an object")]
    NotAnObject,
    /// The input ends before the document does.
    #[error("the input ends within this document")]
    Cut,
    /// A line that is longer than any document's text can be.
    #[error("longer than {max} bytes")]
    TooLong {
        /// The limit.
        max: usize,
    },
    /// A document that no store takes.
    #[error("a document of {bytes} bytes, and {DOCUMENT_BYTES_MAX} are the limit")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// A row that cannot be read.
    #[error("not valid CSV: {0}")]
    Csv(#[from] csv::Error),
    /// A row with more or fewer values than columns.
    #[error("{columns} values belong into a row, and this one has {found}")]
    Columns {
        /// Values of the row.
        found: usize,
        /// Columns of the file.
        columns: usize,
    },
    /// A quote that is open where the input ends.
    #[error("the quote opened on line {line} is never closed; {} read as one value", lines_were(*lines))]
    OpenQuote {
        /// Its line.
        line: u64,
        /// Lines from there to the end of the input.
        lines: u64,
    },
    /// A document without a field by which it is to be found.
    #[error("it has no field '{field}', by which the document to delete is found")]
    NoKey {
        /// The field.
        field: String,
    },
    /// A value that is not of its column's type.
    #[error("column {column}: '{text}' is no {expected}")]
    ColumnType {
        /// The column.
        column: String,
        /// The text.
        text: String,
        /// The name of the type.
        expected: &'static str,
    },
}

fn lines_were(lines: u64) -> String {
    match lines {
        1 => "1 line was".to_owned(),
        lines => format!("{lines} lines were"),
    }
}

/// Reads documents one after another.
pub(super) trait RecordReader {
    /// Gives each record to `take` until the input ends, or `take` gives an error.
    ///
    /// # Errors
    /// Those of the input, those that make reading on impossible, and those of `take`.
    fn read_all(
        &mut self,
        take: &mut dyn FnMut(Record) -> Result<(), TransferError>,
    ) -> Result<(), TransferError>;

    /// Remarks on the whole input, once it has been read.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Makes a document of a JSON value.
pub(super) fn document_of(value: serde_json::Value) -> Result<RawDocumentBuf, RecordError> {
    match value {
        serde_json::Value::Object(fields) => {
            let fields = if is_version_1(&fields) { upgraded(fields) } else { fields };
            encoded(&Document::try_from(fields)?)
        }
        _ => Err(RecordError::NotAnObject),
    }
}

/// The bytes of a document, if a store takes them.
pub(super) fn encoded(document: &Document) -> Result<RawDocumentBuf, RecordError> {
    let raw = RawDocumentBuf::try_from(document)?;
    let bytes = raw.as_bytes().len();
    if bytes > DOCUMENT_BYTES_MAX { Err(RecordError::TooLarge { bytes }) } else { Ok(raw) }
}
