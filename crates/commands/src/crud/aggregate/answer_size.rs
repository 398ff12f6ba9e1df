//! The size of the documents of an answer.

use pando_document::{DOCUMENT_BYTES_MAX, RawDocument};
use pando_query::QueryError;

use crate::ErrorCode;

/// Refuses a document of the answer that is larger than a client reads.
pub(super) fn check_size(document: &RawDocument) -> Result<(), QueryError> {
    /// As in MongoDB, an answer may be a little larger than a stored document.
    const BYTES_MAX: usize = DOCUMENT_BYTES_MAX + (16 << 10);
    let bytes = document.as_bytes().len();
    if bytes <= BYTES_MAX {
        return Ok(());
    }
    Err(QueryError::new(
        ErrorCode::BsonObjectTooLarge,
        format!(
            "BSONObj size: {bytes} ({bytes:#X}) is invalid. Size must be between 0 and {BYTES_MAX}(16MB)"
        ),
    ))
}
