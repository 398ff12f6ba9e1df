//! Documents on their way into the store, a batch at a time.

use bson::Document;

/// As many documents as MongoDB's own tools send at a time.
const DOCUMENTS_MAX: usize = 1000;
/// Text of this length is at most 32 MB of BSON, since an array of one-digit numbers grows fourfold. One more
/// document fits into a message of 48 MB.
const TEXT_BYTES_MAX: usize = 8_000_000;

/// A batch that is being filled.
#[derive(Debug, Default)]
pub(super) struct Batch {
    documents: Vec<Document>,
    lines: Vec<u64>,
    text_bytes: usize,
}

impl Batch {
    pub(super) fn push(&mut self, line: u64, document: Document, text_bytes: usize) {
        self.documents.push(document);
        self.lines.push(line);
        self.text_bytes += text_bytes;
    }

    pub(super) fn is_full(&self) -> bool {
        self.documents.len() >= DOCUMENTS_MAX || self.text_bytes >= TEXT_BYTES_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The documents and their lines; the batch is empty afterwards.
    pub(super) fn take(&mut self) -> (Vec<Document>, Vec<u64>) {
        let batch = std::mem::take(self);
        (batch.documents, batch.lines)
    }
}
