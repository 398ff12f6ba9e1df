//! Documents of an insert as BSON, each with an `_id`: the caller's own, or a new one. The caller learns the
//! `_id`s from here, so that an insert needs no answer with them.

use bson::oid::ObjectId;
use bson::{Bson, RawDocument};
use serde::Serialize;

use crate::Error;

/// Documents of one batch at most, as drivers batch them.
const BATCH_DOCUMENTS_MAX: usize = 1_000;
/// Bytes of one batch at most, unless it is one document.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// Documents back to back, with their `_id`s.
#[derive(Debug, Default)]
pub(crate) struct DocumentsWithIds {
    bytes: Vec<u8>,
    /// The end of each document in `bytes`.
    ends: Vec<usize>,
    ids: Vec<Bson>,
}

/// Neighbours that go into one command.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// The place of the first.
    pub first: usize,
    /// The place behind the last.
    pub end: usize,
    /// Their bytes.
    range: std::ops::Range<usize>,
}

impl DocumentsWithIds {
    /// Adds a document.
    pub fn push<T: Serialize>(&mut self, document: &T) -> Result<(), Error> {
        let bytes = bson::serialize_to_vec(document)?;
        let raw = RawDocument::from_bytes(&bytes)?;
        let id = match raw.get("_id")? {
            Some(id) => {
                self.bytes.extend_from_slice(&bytes);
                Bson::try_from(id)?
            }
            None => {
                let id = ObjectId::new();
                self.push_with_id(id, &bytes);
                Bson::ObjectId(id)
            }
        };
        self.ids.push(id);
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Adds a document that has no `_id`, with this one as its first field.
    fn push_with_id(&mut self, id: ObjectId, document: &[u8]) {
        const NAME: &[u8] = b"\x07_id\0";
        let fields = &document[4..];
        let id = id.bytes();
        let length = u32::try_from(4 + NAME.len() + id.len() + fields.len()).unwrap_or(u32::MAX);
        for part in [&length.to_le_bytes()[..], NAME, &id[..], fields] {
            self.bytes.extend_from_slice(part);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All of them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn bytes_of(&self, batch: &Batch) -> &[u8] {
        &self.bytes[batch.range.clone()]
    }

    /// All of them in batches that one command can hold.
    pub fn batches(&self) -> Vec<Batch> {
        let mut batches: Vec<Batch> = Vec::new();
        let mut begin = 0;
        for (place, end) in self.ends.iter().enumerate() {
            match batches.last_mut() {
                Some(batch)
                    if place - batch.first < BATCH_DOCUMENTS_MAX
                        && end - batch.range.start <= BATCH_BYTES_MAX =>
                {
                    batch.range.end = *end;
                    batch.end = place + 1;
                }
                _ => batches.push(Batch { first: place, end: place + 1, range: begin..*end }),
            }
            begin = *end;
        }
        batches
    }

    pub fn take_ids(&mut self) -> Vec<Bson> {
        std::mem::take(&mut self.ids)
    }
}

#[cfg(test)]
mod tests {
    use bson::{Binary, Document, doc, spec::BinarySubtype};

    use super::*;

    #[test]
    fn a_document_without_an_id_gets_one_as_its_first_field() {
        let mut documents = DocumentsWithIds::default();
        documents.push(&doc! { "a": 1, "b": { "_id": 2 } }).expect("a document");
        documents.push(&doc! { "a": 1, "_id": "own" }).expect("a document");
        let bytes = documents.bytes().to_vec();
        let first = Document::from_reader(&bytes[..documents.ends[0]]).expect("well formed");
        assert_eq!(first.keys().collect::<Vec<_>>(), ["_id", "a", "b"]);
        let ids = documents.take_ids();
        assert_eq!((first.get("_id"), &ids[1]), (Some(&ids[0]), &Bson::from("own")));
    }

    #[test]
    fn batches_are_bounded_by_documents_and_by_bytes() {
        let mut documents = DocumentsWithIds::default();
        for _ in 0..2_500 {
            documents.push(&doc! { "a": 1 }).expect("a document");
        }
        let firsts = |documents: &DocumentsWithIds| documents.batches().iter().map(|b| b.first).collect();
        let have: Vec<usize> = firsts(&documents);
        assert_eq!(have, [0, 1_000, 2_000]);
        assert_eq!(documents.batches()[2].end, 2_500);
        let sizes: usize = documents.batches().iter().map(|batch| documents.bytes_of(batch).len()).sum();
        assert_eq!(sizes, documents.bytes().len());
        let mut large = DocumentsWithIds::default();
        for _ in 0..4 {
            let bytes = Binary { subtype: BinarySubtype::Generic, bytes: vec![7; 7 << 20] };
            large.push(&doc! { "a": bytes }).expect("a document");
        }
        let have: Vec<usize> = firsts(&large);
        assert_eq!(have, [0, 2]);
    }

    #[test]
    fn a_value_that_is_no_document_is_refused() {
        assert!(DocumentsWithIds::default().push(&7).is_err());
    }
}
