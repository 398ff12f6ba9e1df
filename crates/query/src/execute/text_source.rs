//! The documents of a search: the entries of its terms are read first, and their scores added up.
//!
//! # Steps
//! 1. The entries of each term are read. The sum of the scores of a document is kept by its primary key. This
//!    memory is that of the query: a search that finds too many documents is an error.
//! 2. The keys are given in their order. Their documents are fetched, and get their scores.
//! 3. The scans of the other branches of an `$or` follow.
//!
//! A search for one term without scores needs no sum: its documents come as their entries are read.

use std::collections::HashMap;
use std::sync::Arc;

use pando_catalog::{
    Bytes, Collection, Direction, ErrorKind, FieldKind, Index, IndexDescription, IndexScan, QueryAccount,
    Reservation, StorageError, Truncation, index_entry,
};
use pando_collation::TextOrder;
use pando_document::{RawDocument, RawValue, Value};

use super::key_ranges::KeyRanges;
use super::source::{Found, Source, Step, Surroundings};
use crate::QueryError;
use crate::memory::hold_value;
use crate::metadata::{Metadata, with_hidden};
use crate::plan::{Coverage, Intervals, ScanDirection, Scores, TextAccess};
use crate::text_index::TextSearch;

/// Bytes of a kept score besides its key.
const ENTRY_BYTES: usize = 48;

/// See the module's head.
#[derive(Debug)]
pub(super) struct TextSource {
    index: Arc<Index>,
    description: IndexDescription,
    /// By field; those of the terms are set for one after the other.
    bounds: Vec<Intervals>,
    terms: std::vec::IntoIter<String>,
    term_at: usize,
    search: Arc<TextSearch>,
    given: Scores,
    ranges: Option<KeyRanges>,
    scan: Option<IndexScan>,
    phase: Phase,
    scores: HashMap<Vec<u8>, f64>,
    bytes: usize,
    reservation: Reservation,
    /// In the order of their keys.
    found: std::vec::IntoIter<(Vec<u8>, f64)>,
    current: Option<f64>,
    others: Box<Source>,
    giving: Giving,
}

/// When documents are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Giving {
    /// As their entries are read.
    AtOnce,
    /// When all entries of all terms are read.
    Afterwards,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    NextTerm,
    NextRange,
    Within,
    Giving,
    Others,
}

impl TextSource {
    pub fn new(
        collection: &Collection,
        access: TextAccess,
        account: &QueryAccount,
    ) -> Result<TextSource, QueryError> {
        let TextAccess { index: description, bounds, search, scores, others } = access;
        let index = collection.index(&description.name).ok_or_else(|| {
            let message = format!("index {} was dropped while it was to be read", description.name);
            QueryError::from(StorageError::new(ErrorKind::NotFound, message))
        })?;
        let others = others.into_iter().rev();
        let others = others.map(|access| Source::of_index(collection, access, Coverage::Document));
        let is_term = |kind| description.fields.iter().position(|field| field.kind == kind);
        let term_at = is_term(FieldKind::TextTerm).unwrap_or(0);
        let terms = search.key_terms();
        // Behind values of other fields a document may have a term several times.
        let is_alone = scores == Scores::Unneeded && terms.len() == 1 && term_at == 0;
        Ok(TextSource {
            index: Arc::clone(index),
            term_at,
            description,
            bounds,
            terms: terms.into_iter(),
            search,
            given: scores,
            ranges: None,
            scan: None,
            phase: Phase::NextTerm,
            scores: HashMap::new(),
            bytes: 0,
            reservation: account.reserve(),
            found: Vec::new().into_iter(),
            current: None,
            others: Box::new(Source::Several(others.collect::<Result<_, _>>()?)),
            giving: if is_alone { Giving::AtOnce } else { Giving::Afterwards },
        })
    }

    pub fn step(&mut self, surroundings: &Surroundings<'_>, found: &mut Found) -> Result<Step, QueryError> {
        match self.phase {
            Phase::NextTerm => {
                self.begin_term();
                Ok(Step::Nothing)
            }
            Phase::NextRange => {
                self.begin_range(surroundings.collection);
                Ok(Step::Nothing)
            }
            Phase::Within => self.read_entry(surroundings, found),
            Phase::Giving => match self.found.next() {
                Some((key, score)) => {
                    found.primary_key.clear();
                    found.primary_key.extend_from_slice(&key);
                    self.current = Some(score);
                    Ok(Step::Key)
                }
                None => {
                    self.current = None;
                    self.phase = Phase::Others;
                    Ok(Step::Nothing)
                }
            },
            Phase::Others => self.others.step(surroundings, found),
        }
    }

    fn begin_term(&mut self) {
        let Some(term) = self.terms.next() else {
            let mut found: Vec<(Vec<u8>, f64)> = std::mem::take(&mut self.scores).into_iter().collect();
            found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            self.found = found.into_iter();
            self.phase = Phase::Giving;
            return;
        };
        let mut bounds = self.bounds.clone();
        bounds[self.term_at] = Intervals::point(RawValue::String(&term), &TextOrder::SIMPLE);
        let whole_bytes = match self.description.truncated {
            Truncation::Whole => None,
            Truncation::Truncated => Some(index_entry::CUT_PREFIX_BYTES),
        };
        self.ranges = Some(KeyRanges::new(&self.description, bounds, ScanDirection::Forward, whole_bytes));
        self.phase = Phase::NextRange;
    }

    fn begin_range(&mut self, collection: &Collection) {
        let Some(range) = self.ranges.as_mut().and_then(KeyRanges::next_range) else {
            self.phase = Phase::NextTerm;
            return;
        };
        match &mut self.scan {
            Some(scan) => scan.restart(range),
            none => *none = Some(collection.scan_index(&self.index, range, Direction::Forward)),
        }
        self.phase = Phase::Within;
    }

    /// Reads an entry; gives its document, or adds its score to that of the document.
    fn read_entry(&mut self, surroundings: &Surroundings<'_>, found: &mut Found) -> Result<Step, QueryError> {
        let Some(scan) = &mut self.scan else {
            self.phase = Phase::NextRange;
            return Ok(Step::Nothing);
        };
        let Some(entry) = scan.next(surroundings.transaction, surroundings.blocking)? else {
            self.phase = Phase::NextRange;
            return Ok(Step::Nothing);
        };
        surroundings.count_keys(1);
        let is_whole = entry.truncated == Truncation::Whole;
        if is_whole && self.ranges.as_ref().is_some_and(|ranges| !ranges.admits(entry.fields)) {
            return Ok(Step::Nothing);
        }
        if self.giving == Giving::AtOnce {
            found.primary_key.clear();
            found.primary_key.extend_from_slice(entry.primary_key);
            return Ok(Step::Key);
        }
        // The score of a cut key is lost. NaN stands for one that is to be computed.
        let score = match (self.given, is_whole) {
            (Scores::Unneeded, _) => 0.0,
            (Scores::Wanted, false) => f64::NAN,
            (Scores::Wanted, true) => {
                let directions = self.index.directions();
                let values = pando_keyorder::decode(entry.fields, entry.type_bits, directions);
                match values.ok().and_then(|values| values.into_iter().nth(self.term_at + 1)) {
                    Some(Value::Double(score)) => score,
                    _ => f64::NAN,
                }
            }
        };
        if let Some(sum) = self.scores.get_mut(entry.primary_key) {
            *sum += score;
            return Ok(Step::Nothing);
        }
        self.bytes += entry.primary_key.len() + ENTRY_BYTES;
        hold_value(&mut self.reservation, self.bytes, "the search for words")?;
        self.scores.insert(entry.primary_key.to_vec(), score);
        Ok(Step::Nothing)
    }

    /// The primary key and document of the last step, where they stand in a scan.
    pub fn scanned(&self) -> Option<(&[u8], &[u8])> {
        match self.phase {
            Phase::Others => self.others.scanned(),
            _ => None,
        }
    }

    /// The document of the last key with its score, where scores are wanted.
    pub fn scored(&self, document: Bytes) -> Result<Bytes, QueryError> {
        let (Scores::Wanted, Some(score)) = (self.given, self.current) else { return Ok(document) };
        let document = RawDocument::from_bytes(&document)?;
        let score = if score.is_nan() { self.search.score_of(document)? } else { score };
        Ok(Bytes::copy_from_slice(
            with_hidden(document, [(Metadata::TextScore, RawValue::Double(score))])?.as_bytes(),
        ))
    }
}
