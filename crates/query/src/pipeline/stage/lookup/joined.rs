//! The documents that belong to one document, one behind the other.

use pando_catalog::Reservation;
use pando_document::{ArrayWriter, RawDocument};

use crate::error::QueryError;
use crate::memory::{MEMORY_BYTES_MAX, hold_value};
use crate::pipeline::PipelineFault;

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct Joined {
    bytes: Vec<u8>,
    /// Where each document ends.
    ends: Vec<usize>,
}

impl Joined {
    /// Adds a document of a collection.
    pub fn push(
        &mut self,
        document: &[u8],
        from: &str,
        reservation: &mut Reservation,
    ) -> Result<(), QueryError> {
        let bytes = self.held_bytes() + document.len();
        if bytes > MEMORY_BYTES_MAX {
            return Err(PipelineFault::LookupTooLarge.error(format!(
                "Total size of documents in {from} matching pipeline's $lookup stage exceeds {MEMORY_BYTES_MAX} bytes"
            )));
        }
        hold_value(reservation, bytes, "$lookup")?;
        self.bytes.extend_from_slice(document);
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Bytes that it takes.
    pub fn held_bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }

    /// The document of a number.
    pub fn get(&self, at: usize) -> Option<Result<&RawDocument, QueryError>> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        Some(RawDocument::from_bytes(&self.bytes[start..end]).map_err(QueryError::from))
    }

    /// All documents as an array.
    pub fn to_array(&self) -> Vec<u8> {
        let mut array = Vec::with_capacity(self.bytes.len() + 16 + self.ends.len() * 8);
        let mut writer = ArrayWriter::begin(&mut array);
        let mut start = 0;
        for end in &self.ends {
            writer.push_document_bytes(&self.bytes[start..*end]);
            start = *end;
        }
        writer.finish();
        array
    }
}
