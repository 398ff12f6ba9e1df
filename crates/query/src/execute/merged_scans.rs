//! Merged scans: several scans of indexes, given in one order, that of the sort.
//!
//! Each scan stands at one entry, its head. The heads are in a heap by the bytes of their sort fields. A scan
//! goes on only when its head has been given, so that a limit ends the merge early.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pando_catalog::{Collection, ErrorKind, StorageError};
use pando_keyorder::Direction;

use super::entries::Entries;
use super::source::{Found, Source, Step, Surroundings};
use crate::QueryError;
use crate::plan::{Coverage, MergeAccess, SortField, merge_key};

/// See the module's head.
#[derive(Debug)]
pub(super) struct MergedScans {
    scans: Vec<Scan>,
    /// Merge keys of heads, and whose they are.
    heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    /// Scans that have no head yet; the last goes on first.
    moving: Vec<usize>,
    /// The memory of the key that was taken last.
    spare: Vec<u8>,
}

#[derive(Debug)]
struct Scan {
    entries: Entries,
    sort_fields: Vec<SortField>,
    directions: Vec<Direction>,
    found: Found,
    /// The kind of its head.
    step: Step,
}

impl MergedScans {
    /// # Errors
    /// An index is gone since the plan was made.
    pub fn new(
        collection: &Collection,
        access: MergeAccess,
        coverage: Coverage,
    ) -> Result<MergedScans, QueryError> {
        let mut scans = Vec::with_capacity(access.scans.len());
        for scan in &access.scans {
            let sort_fields = access.sort_fields(&scan.index);
            let directions = scan.index.fields.iter().map(|field| field.direction).collect();
            let source = Source::of_index(collection, scan.clone(), coverage)?;
            let (Some(sort_fields), Source::Entries(entries)) = (sort_fields, source) else {
                let message = format!("index {} does not give the order of the merge", scan.index.name);
                return Err(StorageError::new(ErrorKind::NotFound, message).into());
            };
            let found = Found { fields: Some(Vec::new()), ..Found::default() };
            scans.push(Scan { entries: *entries, sort_fields, directions, found, step: Step::Nothing });
        }
        let moving = (0..scans.len()).rev().collect();
        Ok(MergedScans { scans, heads: BinaryHeap::new(), moving, spare: Vec::new() })
    }

    /// One step of a scan without a head, or the first of all heads.
    pub fn step(&mut self, surroundings: &Surroundings<'_>, found: &mut Found) -> Result<Step, QueryError> {
        let Some(&at) = self.moving.last() else { return Ok(self.give(found)) };
        let scan = &mut self.scans[at];
        scan.step = scan.entries.step(surroundings, &mut scan.found)?;
        match scan.step {
            Step::Nothing => return Ok(Step::Nothing),
            Step::End => {}
            Step::Document | Step::Key => {
                let mut key = std::mem::take(&mut self.spare);
                let fields = scan.found.fields.as_deref().unwrap_or_default();
                merge_key(&scan.sort_fields, &scan.directions, fields, &mut key).ok_or_else(|| {
                    StorageError::new(
                        ErrorKind::Corrupt,
                        "a key of an ordered merge does not decode".to_owned(),
                    )
                })?;
                self.heads.push(Reverse((key, at)));
            }
        }
        self.moving.pop();
        Ok(if self.moving.is_empty() { self.give(found) } else { Step::Nothing })
    }

    fn give(&mut self, found: &mut Found) -> Step {
        let Some(Reverse((key, at))) = self.heads.pop() else { return Step::End };
        self.spare = key;
        let scan = &mut self.scans[at];
        std::mem::swap(&mut found.primary_key, &mut scan.found.primary_key);
        std::mem::swap(&mut found.document, &mut scan.found.document);
        self.moving.push(at);
        scan.step
    }
}
