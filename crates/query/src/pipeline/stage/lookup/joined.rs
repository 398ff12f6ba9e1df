//! The documents that belong to one document, one behind the other.
//!
//! As an array they stay in memory. Where an `$unwind` gives them one by one, those beyond [`HELD_MAX`] wait
//! in a sorter without keys, which spills: MongoDB never has them all at once, so neither its limit of
//! memory nor `allowDiskUse` is about them.

use pando_catalog::{Bytes, Reservation};
use pando_document::{ArrayWriter, RawDocument};

use crate::error::QueryError;
use crate::memory::{MEMORY_BYTES_MAX, StageMemory, hold_value};
use crate::pipeline::PipelineFault;
use crate::pipeline::stage::fetched;
use crate::sort::{Check, Sorter};

/// Bytes of documents that are given one by one and stay in memory.
const HELD_MAX: usize = 16 << 20;

/// The way in which joined documents are wanted.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'w> {
    /// As one array.
    Array,
    /// One by one, in the memory of the stage.
    OneByOne(&'w StageMemory),
}

/// See the module's head.
#[derive(Default)]
pub(super) struct Joined {
    bytes: Vec<u8>,
    /// Where each document ends.
    ends: Vec<usize>,
    /// Those behind, in order.
    rest: Option<Sorter>,
}

impl Joined {
    /// Adds a document of a collection.
    pub fn push(
        &mut self,
        document: &[u8],
        from: &str,
        reservation: &mut Reservation,
        wanted: Wanted<'_>,
    ) -> Result<(), QueryError> {
        let bytes = self.held_bytes() + document.len();
        if let Wanted::OneByOne(memory) = wanted
            && (self.rest.is_some() || bytes > HELD_MAX)
        {
            let rest = self.rest.get_or_insert_with(|| fetched::none(memory));
            // The search checks before each document.
            return rest.push(&[], &[], document, &mut || Ok(()));
        }
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

    /// Bytes that the documents in memory take.
    pub fn held_bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }

    /// The document of a number, of those in memory.
    pub fn get(&self, at: usize) -> Option<Result<&RawDocument, QueryError>> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        Some(RawDocument::from_bytes(&self.bytes[start..end]).map_err(QueryError::from))
    }

    /// Those behind the documents in memory, which can be read once.
    pub fn take_rest(&mut self) -> Option<Rest> {
        self.rest.take().map(Rest)
    }

    /// All documents as an array.
    pub fn to_array(&self) -> Vec<u8> {
        assert!(self.rest.is_none(), "documents of an array stay in memory");
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

/// Joined documents that are read once.
pub(super) struct Rest(Sorter);

impl Rest {
    /// The next one.
    pub fn next(&mut self, check: Check<'_>) -> Result<Option<Bytes>, QueryError> {
        Ok(self.0.next(check)?.map(|sorted| Bytes::copy_from_slice(sorted.document)))
    }
}
