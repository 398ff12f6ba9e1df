//! The reader of partitions: it gives the documents of one partition after the other, by their number in it.
//!
//! Documents come from the sorter in order. Those of the partition that a window may still look at are held,
//! from the first such to the last one that was read. So a running total holds one document, and a window
//! over the whole partition holds the partition.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use pando_catalog::Reservation;
use pando_document::{DOCUMENT_BYTES_MAX, DocumentWriter, RawDocument};
use pando_keyorder::{Direction, parts_length};

use super::Specification;
use crate::error::{ErrorCode, QueryError};
use crate::memory::{DiskUse, MEMORY_BYTES_MAX, StageMemory, USED_UP};
use crate::pipeline::PipelineFault;
use crate::sort::{Check, Sorter};

/// Memory of a held document beside its bytes.
const DOCUMENT_OVERHEAD: usize = 64;
/// Buffers of documents that were let go, for later ones: so many, of so many bytes at most.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 4 << 10;

/// See the module's head.
pub(super) struct Reader {
    specification: Arc<Specification>,
    /// The top-level fields that are looked at here and behind; `None` for all.
    kept: Option<Vec<String>>,
    sorter: Sorter,
    /// Buffers for all documents of the input.
    sort_key: Vec<u8>,
    written: Vec<u8>,
    disk_use: DiskUse,
    reservation: Reservation,
    held: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    /// The number of the first held document.
    first: usize,
    held_bytes: usize,
    /// The key of the partition, with which the sort keys of its documents begin, and no other: no key of a
    /// value is the beginning of another's. Empty in front of the first, and where all are one partition.
    key: Vec<u8>,
    /// The first document of the next partition.
    pending: Option<Vec<u8>>,
    ended: Ended,
}

/// A document from the sorter.
struct Pulled {
    partition: Partition,
    document: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Partition {
    /// That of the document before.
    Same,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    No,
    /// All documents of the partition were read.
    Partition,
    /// There is no further document.
    Input,
}

impl Reader {
    pub fn new(
        specification: &Arc<Specification>,
        memory: &StageMemory,
        needed: Option<BTreeSet<&str>>,
    ) -> Reader {
        Reader {
            specification: Arc::clone(specification),
            kept: needed.map(|fields| fields.into_iter().map(str::to_owned).collect()),
            sort_key: Vec::new(),
            written: Vec::new(),
            sorter: Sorter::new(None, memory),
            disk_use: memory.disk_use,
            reservation: memory.account.reserve(),
            held: VecDeque::new(),
            spare: Vec::new(),
            first: 0,
            held_bytes: 0,
            key: Vec::new(),
            pending: None,
            ended: Ended::Partition,
        }
    }

    /// Takes a document of the input in.
    pub fn take(&mut self, document: &RawDocument, check: Check<'_>) -> Result<(), QueryError> {
        let Reader { specification, sorter, sort_key, written, kept, .. } = self;
        sort_key.clear();
        specification.append_partition_key(document, sort_key)?;
        match &specification.order {
            Some(order) if specification.partition.is_some() => order.append_inner_key(document, sort_key)?,
            Some(order) => order.append_key(document, sort_key)?,
            None => {}
        }
        let bytes = match kept {
            None => document.as_bytes(),
            Some(kept) => {
                write_kept(document, kept, written)?;
                written
            }
        };
        sorter.push(sort_key, &[], bytes, check)
    }

    /// Sorts the documents that were taken so far.
    pub fn settle(&mut self) {
        self.sorter.settle();
    }

    /// Takes in the documents of another reader, which come behind its own.
    pub fn absorb(&mut self, later: &mut Reader, check: Check<'_>) -> Result<(), QueryError> {
        self.sorter.absorb(&mut later.sorter, check)
    }

    /// Goes on to the next partition; false where there is none.
    pub fn begin_partition(&mut self, check: Check<'_>) -> Result<bool, QueryError> {
        self.held.clear();
        self.held_bytes = 0;
        self.first = 0;
        self.reservation.shrink_to(0);
        if self.pending.is_none() && self.ended != Ended::Input {
            self.pending = self.pull(check)?.map(|pulled| pulled.document);
        }
        let Some(document) = self.pending.take() else {
            self.ended = Ended::Input;
            return Ok(false);
        };
        self.ended = Ended::No;
        self.hold(document)?;
        Ok(true)
    }

    /// A document of the partition; `None` behind the last.
    pub fn document(&mut self, number: usize, check: Check<'_>) -> Result<Option<&RawDocument>, QueryError> {
        self.read_up_to(number, check)?;
        self.held_document(number)
    }

    /// Two documents of the partition.
    pub fn two_documents(
        &mut self,
        numbers: [usize; 2],
        check: Check<'_>,
    ) -> Result<[Option<&RawDocument>; 2], QueryError> {
        self.read_up_to(numbers[0].max(numbers[1]), check)?;
        Ok([self.held_document(numbers[0])?, self.held_document(numbers[1])?])
    }

    fn held_document(&self, number: usize) -> Result<Option<&RawDocument>, QueryError> {
        let held = number.checked_sub(self.first).and_then(|at| self.held.get(at));
        Ok(held.map(|bytes| RawDocument::from_bytes(bytes)).transpose()?)
    }

    /// Reads the partition up to a document, or to its end.
    fn read_up_to(&mut self, number: usize, check: Check<'_>) -> Result<(), QueryError> {
        while number >= self.first + self.held.len() {
            if self.ended != Ended::No {
                return Ok(());
            }
            match self.pull(check)? {
                None => self.ended = Ended::Input,
                Some(Pulled { partition: Partition::Other, document }) => {
                    self.pending = Some(document);
                    self.ended = Ended::Partition;
                }
                Some(Pulled { partition: Partition::Same, document }) => self.hold(document)?,
            }
        }
        Ok(())
    }

    /// Lets go of the documents in front of a number.
    pub fn release_before(&mut self, number: usize) {
        while self.first < number
            && let Some(document) = self.held.pop_front()
        {
            self.first += 1;
            self.held_bytes -= document.len() + DOCUMENT_OVERHEAD;
            if self.spare.len() < SPARE_MAX && document.capacity() <= SPARE_BYTES_MAX {
                self.spare.push(document);
            }
        }
    }

    /// Counts the memory of the functions' states beside that of the documents.
    pub fn reserve_with(&mut self, states_bytes: usize) -> Result<(), QueryError> {
        let bytes = self.held_bytes + states_bytes;
        if bytes <= self.reservation.bytes() {
            return Ok(());
        }
        if self.disk_use == DiskUse::Forbidden && bytes > MEMORY_BYTES_MAX {
            return Err(PipelineFault::WindowTooLarge
                .error("Exceeded max memory. Set 'allowDiskUse: true' to spill to disk"));
        }
        if self.reservation.grow_to(bytes) {
            return Ok(());
        }
        if bytes <= DOCUMENT_BYTES_MAX {
            // As for any value: the memory of one document is there in any case.
            self.reservation.hold(bytes);
            return Ok(());
        }
        Err(PipelineFault::WindowTooLarge.error(format!(
            "Exceeded max memory. A window of $setWindowFields has {bytes} bytes, and {USED_UP}"
        )))
    }

    /// The next document of the sorter. One of another partition sets the key.
    fn pull(&mut self, check: Check<'_>) -> Result<Option<Pulled>, QueryError> {
        let Some(sorted) = self.sorter.next(check)? else { return Ok(None) };
        let is_same = match (&self.specification.partition, self.key.as_slice()) {
            (None, _) => true,
            (Some(_), []) => false,
            (Some(_), key) => sorted.key.starts_with(key),
        };
        let partition = if is_same { Partition::Same } else { Partition::Other };
        if !is_same {
            let key = partition_key(sorted.key)?;
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        let mut document = self.spare.pop().unwrap_or_default();
        document.clear();
        document.extend_from_slice(sorted.document);
        Ok(Some(Pulled { partition, document }))
    }

    fn hold(&mut self, document: Vec<u8>) -> Result<(), QueryError> {
        self.held_bytes += document.len() + DOCUMENT_OVERHEAD;
        self.held.push_back(document);
        self.reserve_with(0)
    }
}

/// The part of a sort key that is the partition's.
fn partition_key(sort_key: &[u8]) -> Result<&[u8], QueryError> {
    match parts_length(sort_key, &[Direction::Ascending]) {
        Ok(length) => Ok(&sort_key[..length]),
        Err(error) => Err(QueryError::new(
            ErrorCode::InternalError,
            format!("a sort key of $setWindowFields cannot be read: {error}; report this defect"),
        )),
    }
}

/// Writes a document with some of its fields.
fn write_kept(document: &RawDocument, kept: &[String], out: &mut Vec<u8>) -> Result<(), QueryError> {
    out.clear();
    let mut writer = DocumentWriter::begin(out);
    let bytes = document.as_bytes();
    let mut fields = document.iter();
    loop {
        let start = fields.offset();
        let Some(name) = fields.step().transpose()? else { break };
        if kept.iter().any(|kept| kept.as_bytes() == name) {
            writer.append_raw_fields(&bytes[start..fields.offset()]);
        }
    }
    writer.finish();
    Ok(())
}
