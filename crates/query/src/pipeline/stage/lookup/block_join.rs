//! A hash join in blocks: for a collection whose hash table does not fit into memory, and for one behind a
//! network, where an index finds the documents of a whole block with few requests.
//!
//! # Algorithm
//! 1. Documents are drawn ahead until a *block* of them is full, and stand under the keys of their values.
//! 2. One scan of the other collection, or one search for the values of the block, looks up each document's
//!    values among the keys. Each find goes into a sorter by the number of the document that it belongs to.
//!    The sorter spills.
//! 3. The documents of the block go on in their order, each with its finds, which stand in the order of the
//!    scan.
//! 4. Where the finds of a block are too many, it is carried out in *rounds* of fewer documents.
//!
//! The first blocks are small, so that a caller who wants few documents does not pay for many. Each later
//! one is larger by a factor. So a join of n bytes makes about n / [`BLOCK_BYTES`] scans, where a nested
//! loop makes one for each document.
//!
//! # Invariants
//! - An error of the input loses no document. The scan begins anew after one.
//! - Finds are taken once. A caller that needs them again searches for them.
//!
//! # Not here
//! Joins by an index of this machine, which need no memory.

use std::ops::Range;

use hashbrown::{HashMap, HashSet};
use pando_catalog::{Bytes, Reservation};
use pando_collation::TextOrder;
use pando_document::{RawArray, RawDocument, RawDocumentBuf, RawValue};
use pando_keyorder::{Direction, TypeBits};

use super::hash_table::{Certainty, Walk};
use super::{Specification, equality};
use crate::array_build::build_array;
use crate::error::QueryError;
use crate::expression::Evaluated;
use crate::filter::Filter;
use crate::memory::StageMemory;
use crate::pipeline::stage::values_at_path::joined_values;
use crate::pipeline::stage::{Source, document_in};
use crate::sort::Sorter;

/// Most bytes of the documents of a block and their keys.
const BLOCK_BYTES: usize = 32 << 20;
/// Most documents of the first block, and how many times more the next one has.
const FIRST_DOCUMENTS: usize = 64;
const GROWTH: usize = 8;
/// Most documents of a block.
const DOCUMENTS_MAX: usize = 1 << 17;
/// Most documents of a block whose values are searched for, and most bytes of them.
const SEARCHED_DOCUMENTS_MAX: usize = 1_000;
const SEARCHED_BYTES: usize = 4 << 20;
/// Bytes of a document and of a key beside their own.
const DOCUMENT_OVERHEAD: usize = 256;
const KEY_OVERHEAD: usize = 64;
/// Bytes of finds from which on a round has fewer documents.
const FOUND_BYTES: usize = 256 << 20;

/// The documents of the other collection that are looked at for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// All of them.
    Scan,
    /// Those that an index finds by the values of the block.
    Search,
}

/// See the module's head.
pub(super) struct BlockJoin {
    reading: Reading,
    names: Vec<String>,
    memory: StageMemory,
    reservation: Reservation,
    block: Block,
    /// Documents of the next block.
    wanted: usize,
    /// Documents of the next round.
    round: usize,
    /// Whether the block has all its documents.
    is_gathered: bool,
    /// Whether the input has no more documents.
    is_ended: bool,
    /// The documents of the block whose finds are at hand.
    scanned: Range<usize>,
    found: Option<Sorter>,
    /// A find that was drawn for a later document.
    ahead: Option<(usize, Vec<u8>)>,
    /// The document at work, whose finds have not been taken.
    untaken: Option<usize>,
    /// The number of the next document.
    next: usize,
}

/// Documents and their keys.
#[derive(Default)]
struct Block {
    documents: Vec<Bytes>,
    /// The numbers of the documents that have a value.
    keys: HashMap<Box<[u8]>, Vec<usize>>,
    /// Filters of documents, where equal keys may be different values.
    filters: HashMap<usize, Filter>,
    bytes: usize,
    key: Vec<u8>,
    text_order: TextOrder,
}

/// How a scan ended.
#[derive(PartialEq, Eq)]
enum Scan {
    Whole,
    /// Too much was found.
    TooMuch,
}

impl BlockJoin {
    pub fn new(reading: Reading, foreign: &str, text_order: &TextOrder, memory: &StageMemory) -> BlockJoin {
        BlockJoin {
            reading,
            names: foreign.split('.').map(str::to_owned).collect(),
            memory: memory.clone(),
            reservation: memory.account.reserve(),
            block: Block::of(text_order),
            wanted: FIRST_DOCUMENTS,
            round: DOCUMENTS_MAX,
            is_gathered: false,
            is_ended: false,
            scanned: 0..0,
            found: None,
            ahead: None,
            untaken: None,
            next: 0,
        }
    }

    /// The next document. Its finds are at hand.
    pub fn next(
        &mut self,
        specification: &Specification,
        input: &mut dyn Source,
    ) -> Result<Option<Bytes>, QueryError> {
        if self.is_gathered && self.next == self.block.documents.len() {
            self.block = Block::of(&self.block.text_order);
            self.reservation.hold(0);
            (self.next, self.scanned, self.is_gathered) = (0, 0..0, false);
        }
        if !self.is_gathered {
            self.gather(specification, input)?;
        }
        if self.next == self.block.documents.len() {
            return Ok(None);
        }
        if self.next == self.scanned.end {
            self.scan_rounds(specification, input)?;
        }
        let document = self.block.documents[self.next].clone();
        self.untaken = Some(self.next);
        self.next += 1;
        Ok(Some(document))
    }

    /// Fills the block.
    fn gather(&mut self, specification: &Specification, input: &mut dyn Source) -> Result<(), QueryError> {
        let (most_documents, most_bytes) = match self.reading {
            Reading::Scan => (DOCUMENTS_MAX, BLOCK_BYTES),
            Reading::Search => (SEARCHED_DOCUMENTS_MAX, SEARCHED_BYTES),
        };
        while !self.is_ended && self.block.documents.len() < self.wanted {
            let Some(document) = input.next()? else {
                self.is_ended = true;
                break;
            };
            self.block.push(document, specification)?;
            let bytes = self.block.bytes;
            if bytes > most_bytes || !self.reservation.grow_to(bytes) {
                // The last document is in memory in any case.
                self.reservation.hold(bytes);
                break;
            }
        }
        self.wanted = self.wanted.saturating_mul(GROWTH).min(most_documents);
        self.is_gathered = true;
        Ok(())
    }

    /// Finds the documents of as many of the block as there is room for.
    fn scan_rounds(
        &mut self,
        specification: &Specification,
        input: &mut dyn Source,
    ) -> Result<(), QueryError> {
        loop {
            let left = self.block.documents.len() - self.next;
            let documents = left.min(self.round);
            if self.scan(specification, self.next..self.next + documents, input)? == Scan::Whole {
                self.round = self.round.saturating_mul(2).min(DOCUMENTS_MAX);
                return Ok(());
            }
            self.round = (documents / GROWTH).max(1);
        }
    }

    fn scan(
        &mut self,
        specification: &Specification,
        round: Range<usize>,
        input: &mut dyn Source,
    ) -> Result<Scan, QueryError> {
        (self.found, self.ahead) = (None, None);
        let mut found = Sorter::new(None, &self.memory);
        let (block, names) = (&mut self.block, &self.names);
        let (mut numbers, mut bytes, mut is_too_much) = (Vec::new(), 0, false);
        let filter = match self.reading {
            Reading::Scan => specification.constant_filter()?,
            Reading::Search => Filter::parse(&block.filter_of(&round, specification)?, &specification.scope)?,
        };
        let outcome = input.find_in(&specification.from, &filter, &mut |document| {
            block.numbers_of(document, names, &round, specification, &mut numbers)?;
            for number in &numbers {
                bytes += document.as_bytes().len();
                if bytes > FOUND_BYTES && round.len() > 1 {
                    is_too_much = true;
                    return Err(QueryError::bad_value("a round of a join found too much"));
                }
                let key = u64::try_from(*number).unwrap_or(u64::MAX).to_be_bytes();
                // The scan checks before each document.
                found.push(&key, &key, document.as_bytes(), &mut || Ok(()))?;
            }
            Ok(())
        });
        if is_too_much {
            return Ok(Scan::TooMuch);
        }
        outcome?;
        (self.found, self.scanned) = (Some(found), round);
        Ok(Scan::Whole)
    }

    /// Whether the finds of the document at work can be taken. They can be once.
    pub fn is_taking(&self) -> bool {
        self.untaken.is_some()
    }

    /// Calls `take` with the finds of the document at work.
    pub fn take_found(
        &mut self,
        input: &dyn Source,
        take: &mut dyn FnMut(&RawDocument) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let (Some(number), Some(found)) = (self.untaken.take(), &mut self.found) else { return Ok(()) };
        loop {
            match &self.ahead {
                Some((of, _)) if *of > number => return Ok(()),
                // A find before it belongs to a document whose finds nobody wanted.
                Some((of, document)) if *of == number => take(RawDocument::from_bytes(document)?)?,
                _ => {}
            }
            self.ahead = match found.next(&mut || input.check())? {
                Some(sorted) => {
                    let of = sorted.primary_key.try_into().map_or(u64::MAX, u64::from_be_bytes);
                    Some((usize::try_from(of).unwrap_or(usize::MAX), sorted.document.to_vec()))
                }
                None => {
                    self.ahead = None;
                    return Ok(());
                }
            };
        }
    }
}

impl Block {
    fn of(text_order: &TextOrder) -> Block {
        Block { text_order: text_order.clone(), ..Block::default() }
    }

    fn push(&mut self, document: Bytes, specification: &Specification) -> Result<(), QueryError> {
        let number = self.documents.len();
        let root = document_in(&document)?;
        if let Some((local, _)) = &specification.fields {
            match joined_values(root, local)?.raw_or_null() {
                RawValue::Array(array) if array.is_empty() => self.add(RawValue::Null, number),
                RawValue::Array(array) => {
                    for element in array.iter() {
                        self.add(element?, number);
                    }
                }
                single => self.add(single, number),
            }
        }
        self.bytes += document.len() + DOCUMENT_OVERHEAD;
        self.documents.push(document);
        Ok(())
    }

    fn add(&mut self, value: RawValue<'_>, number: usize) {
        self.key.clear();
        self.text_order.encode(value, Direction::Ascending, &mut self.key, &mut TypeBits::discarded());
        self.bytes += size_of::<usize>();
        match self.keys.get_mut(self.key.as_slice()) {
            Some(numbers) if numbers.last() == Some(&number) => {}
            Some(numbers) => numbers.push(number),
            None => {
                self.bytes += self.key.len() + KEY_OVERHEAD;
                self.keys.insert(self.key.clone().into_boxed_slice(), vec![number]);
            }
        }
    }

    /// The filter of what belongs to any document of a round.
    fn filter_of(
        &self,
        round: &Range<usize>,
        specification: &Specification,
    ) -> Result<RawDocumentBuf, QueryError> {
        let Some((local, foreign)) = &specification.fields else {
            unreachable!("the documents of a search are joined by fields");
        };
        let joined = self.documents[round.clone()].iter();
        let joined: Vec<Evaluated<'_>> =
            joined.map(|document| joined_values(document_in(document)?, local)).collect::<Result<_, _>>()?;
        let (mut seen, mut values) = (HashSet::new(), Vec::new());
        let mut add = |value| {
            let mut key = Vec::new();
            self.text_order.encode(value, Direction::Ascending, &mut key, &mut TypeBits::discarded());
            if seen.insert(key) {
                values.push(value);
            }
        };
        for joined in &joined {
            match joined.raw_or_null() {
                RawValue::Array(array) if array.is_empty() => add(RawValue::Null),
                RawValue::Array(array) => {
                    for element in array.iter() {
                        add(element?);
                    }
                }
                single => add(single),
            }
        }
        let values = build_array(values);
        specification.with_constant(equality(foreign, RawValue::Array(RawArray::from_document(&values)))?)
    }

    /// Puts the numbers of the documents that a document of the other collection belongs to into a list.
    fn numbers_of(
        &mut self,
        document: &RawDocument,
        names: &[String],
        round: &Range<usize>,
        specification: &Specification,
        numbers: &mut Vec<usize>,
    ) -> Result<(), QueryError> {
        numbers.clear();
        let mut walk = Walk::new();
        walk.follow(RawValue::Document(document), names)?;
        let mut certainty = walk.certainty;
        for value in &walk.values {
            self.key.clear();
            self.text_order.encode(*value, Direction::Ascending, &mut self.key, &mut TypeBits::discarded());
            if let Some(of) = self.keys.get(self.key.as_slice()) {
                let first = of.partition_point(|number| *number < round.start);
                let behind = of.partition_point(|number| *number < round.end);
                numbers.extend_from_slice(&of[first..behind]);
            }
            if value.as_array().is_some() {
                certainty = Certainty::Possible;
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        if certainty == Certainty::Possible {
            let mut failed = None;
            numbers.retain(|number| {
                self.matches(*number, document, specification).unwrap_or_else(|error| {
                    failed = Some(error);
                    false
                })
            });
            failed.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Whether a document of the other collection matches the filter of one of the block.
    fn matches(
        &mut self,
        number: usize,
        document: &RawDocument,
        specification: &Specification,
    ) -> Result<bool, QueryError> {
        let Some((local, foreign)) = &specification.fields else { return Ok(true) };
        if let Some(filter) = self.filters.get(&number) {
            return filter.matches(document);
        }
        let root = document_in(&self.documents[number])?;
        let filter = equality(foreign, joined_values(root, local)?.raw_or_null())?;
        let filter = Filter::parse(&filter, &specification.scope)?;
        let matches = filter.matches(document);
        self.filters.insert(number, filter);
        matches
    }
}
