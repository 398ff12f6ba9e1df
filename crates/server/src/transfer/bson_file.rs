//! A BSON file, as mongodump writes it: whole documents, back to back.
//!
//! The bytes go into the store as they are. A document whose inner parts are damaged is reported and skipped;
//! a damaged length ends the reading, because the next document cannot be found.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;

use bson::{RawBsonRef, RawDocument, RawDocumentBuf};

use super::error::TransferError;
use super::record::{Record, RecordError, RecordReader};

/// The shortest document: its length and its final zero.
const DOCUMENT_BYTES_MIN: usize = 5;
/// A longer one is no document: its length is damaged.
const DOCUMENT_BYTES_MAX: usize = 17 * 1024 * 1024;
const LENGTH_BYTES: usize = 4;
/// The deepest nesting that a store takes; it is checked here so that a hostile file ends no stack.
const DEPTH_MAX: usize = 200;

/// Reads a BSON file.
pub(super) struct BsonFile<R> {
    content: R,
    path: PathBuf,
}

impl<R: BufRead> BsonFile<R> {
    pub(super) fn new(content: R, path: PathBuf) -> BsonFile<R> {
        BsonFile { content, path }
    }

    /// The bytes of the next document; `None` at the end of the file.
    fn next(&mut self, number: u64, offset: u64) -> Result<Option<Vec<u8>>, TransferError> {
        let damaged = |reason| TransferError::BsonFile { path: self.path.clone(), number, offset, reason };
        let read = |source: io::Error| TransferError::Read { path: self.path.clone(), source };
        let mut bytes = Vec::new();
        self.content.by_ref().take(LENGTH_BYTES as u64).read_to_end(&mut bytes).map_err(read)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let Ok(head) = <[u8; LENGTH_BYTES]>::try_from(bytes.as_slice()) else {
            return Err(damaged("the file ends within this document"));
        };
        let length = usize::try_from(i32::from_le_bytes(head)).unwrap_or(0);
        if !(DOCUMENT_BYTES_MIN..=DOCUMENT_BYTES_MAX).contains(&length) {
            return Err(damaged("its length is damaged"));
        }
        let rest = (length - LENGTH_BYTES) as u64;
        self.content.by_ref().take(rest).read_to_end(&mut bytes).map_err(read)?;
        if bytes.len() < length {
            return Err(damaged("the file ends within this document"));
        }
        Ok(Some(bytes))
    }
}

impl<R: BufRead> RecordReader for BsonFile<R> {
    fn read_all(
        &mut self,
        take: &mut dyn FnMut(Record) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        let (mut number, mut offset) = (1, 0);
        while let Some(bytes) = self.next(number, offset)? {
            offset += bytes.len() as u64;
            let content =
                RawDocumentBuf::from_bytes(bytes).map_err(|error| RecordError::Bson(error.to_string()));
            let content = content.and_then(|document| check(&document, 0).map(|()| document));
            take(Record { line: number, content })?;
            number += 1;
        }
        Ok(())
    }
}

/// Whether every value can be read, those of inner documents included.
pub(super) fn check(document: &RawDocument, depth: usize) -> Result<(), RecordError> {
    if depth > DEPTH_MAX {
        return Err(RecordError::Bson(format!("nested deeper than {DEPTH_MAX} levels")));
    }
    let fault = |error: bson::error::Error| RecordError::Bson(error.to_string());
    for element in document {
        match element.map_err(fault)?.1 {
            RawBsonRef::Document(inner) => check(inner, depth + 1)?,
            // An array's bytes are those of a document.
            RawBsonRef::Array(inner) => {
                check(RawDocument::from_bytes(inner.as_bytes()).map_err(fault)?, depth + 1)?;
            }
            _ => {}
        }
    }
    Ok(())
}
