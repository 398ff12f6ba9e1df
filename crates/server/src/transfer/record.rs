//! A record, as the reader of any format gives it: one document or one complaint, with its line.

use bson::Document;

use super::error::TransferError;

/// One document of the input.
#[derive(Debug)]
pub(super) struct Record {
    /// The line on which it begins, from 1.
    pub(super) line: u64,
    /// The document, or its fault.
    pub(super) content: Result<Document, RecordError>,
    /// The bytes of its text, by which batches are bounded.
    pub(super) text_bytes: usize,
}

/// Why a piece of the input is no document.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// Not JSON.
    #[error("not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// JSON that is no Extended JSON.
    #[error("not valid Extended JSON: {0}")]
    ExtendedJson(#[from] bson::error::Error),
    /// A number, a string, an array.
    #[error("not an object")]
    NotAnObject,
    /// A line that is longer than any document's text can be.
    #[error("longer than {max} bytes")]
    TooLong {
        /// The limit.
        max: usize,
    },
    /// A CSV row that cannot be read.
    #[error("not valid CSV: {0}")]
    Csv(#[from] csv::Error),
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
}

/// Makes a document of a JSON value.
pub(super) fn document_of(value: serde_json::Value) -> Result<Document, RecordError> {
    match value {
        serde_json::Value::Object(fields) => Ok(Document::try_from(fields)?),
        _ => Err(RecordError::NotAnObject),
    }
}
