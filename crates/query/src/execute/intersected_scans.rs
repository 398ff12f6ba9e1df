//! Intersected scans: the primary keys that have an entry in each of two scans.
//!
//! Each scan is of the entries with one value, so that they lie in the order of primary keys. One scan names
//! a primary key; the other one goes on to it, or beyond it, and then names the next. A scan that is far
//! behind jumps.
//!
//! ```text
//! a = 1   2 4 9 12 90 91
//! b = 7   3 4 91 92           4 is in both; from 91 on the first scan jumps over 9, 12 and 90
//! ```
//!
//! After `WouldBlock` the scan that was to go on still is.

use std::cmp::Ordering;

use pando_catalog::{Collection, ErrorKind, StorageError};
use pando_document::RawDocument;

use super::entries::Entries;
use super::source::{Found, Source, Step, Surroundings};
use crate::QueryError;
use crate::plan::{Coverage, IndexAccess};

/// Entries that are stepped over before a jump, which costs as much as some of them.
const STEPPED_OVER: u32 = 16;

/// See the module's head.
#[derive(Debug)]
pub(super) struct IntersectedScans {
    scans: [Scan; 2],
    /// Which of them goes on.
    moving: usize,
    /// The primary key that the other one stands at, if it does.
    wanted: Option<Vec<u8>>,
    /// Entries before it, one after the other.
    stepped: u32,
    coverage: Coverage,
}

#[derive(Debug)]
struct Scan {
    entries: Entries,
    found: Found,
}

impl IntersectedScans {
    /// # Errors
    /// An index is gone since the plan was made.
    pub fn new(
        collection: &Collection,
        accesses: [IndexAccess; 2],
        coverage: Coverage,
    ) -> Result<IntersectedScans, QueryError> {
        let scan = |access: IndexAccess| -> Result<Scan, QueryError> {
            let name = access.index.name.clone();
            match Source::of_index(collection, access, Coverage::Document)? {
                Source::Entries(entries) => Ok(Scan {
                    entries: *entries,
                    found: Found { fields: Some(Vec::new()), ..Found::default() },
                }),
                _ => {
                    let message = format!("index {name} has no entries beside the documents");
                    Err(StorageError::new(ErrorKind::NotFound, message).into())
                }
            }
        };
        let [first, second] = accesses;
        let scans = [scan(first)?, scan(second)?];
        Ok(IntersectedScans { scans, moving: 0, wanted: None, stepped: 0, coverage })
    }

    /// One step of the scan that goes on.
    pub fn step(&mut self, surroundings: &Surroundings<'_>, found: &mut Found) -> Result<Step, QueryError> {
        let scan = &mut self.scans[self.moving];
        match scan.entries.step(surroundings, &mut scan.found)? {
            Step::Nothing => return Ok(Step::Nothing),
            Step::End => return Ok(Step::End),
            Step::Document | Step::Key => {}
        }
        let key = &scan.found.primary_key;
        let place = self.wanted.as_ref().map_or(Ordering::Greater, |wanted| key.cmp(wanted));
        match place {
            Ordering::Less => {
                self.stepped += 1;
                if self.stepped >= STEPPED_OVER {
                    self.stepped = 0;
                    let wanted = self.wanted.as_deref().unwrap_or_default();
                    let fields = scan.found.fields.as_deref().unwrap_or_default();
                    scan.entries.seek(&[fields, wanted].concat());
                }
                Ok(Step::Nothing)
            }
            Ordering::Greater => {
                let wanted = self.wanted.get_or_insert_default();
                wanted.clear();
                wanted.extend_from_slice(key);
                self.moving = 1 - self.moving;
                self.stepped = 0;
                Ok(Step::Nothing)
            }
            Ordering::Equal => {
                std::mem::swap(&mut found.primary_key, &mut scan.found.primary_key);
                self.wanted = None;
                self.stepped = 0;
                Ok(self.given(found))
            }
        }
    }

    fn given(&self, found: &mut Found) -> Step {
        match self.coverage {
            Coverage::Document | Coverage::Entry(_) => Step::Key,
            Coverage::Nothing | Coverage::Counter => {
                found.document.clear();
                found.document.extend_from_slice(RawDocument::empty().as_bytes());
                Step::Document
            }
        }
    }
}
