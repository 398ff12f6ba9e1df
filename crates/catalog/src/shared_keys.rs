//! The keys of an index that several documents share, each with these documents.
//!
//! The index has the entries of one that is not unique, so equal keys are neighbours. The scan holds one
//! entry at a time, however many documents share a key.

use std::sync::Arc;

use pando_storage::{BlockingMode, Direction, KeyRange, Operation, StorageError, Transaction};

use crate::scans::IndexScan;
use crate::{Collection, Index};

/// A document that shares a key with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sharer {
    /// The first of a key.
    First(Vec<u8>),
    /// A further one of the key before.
    Further(Vec<u8>),
}

impl Sharer {
    /// Its primary key.
    pub fn primary_key(&self) -> &[u8] {
        match self {
            Sharer::First(key) | Sharer::Further(key) => key,
        }
    }
}

/// A scan of shared keys.
pub struct SharedKeys<'t> {
    scan: IndexScan,
    transaction: &'t dyn Transaction,
    operation: &'t Operation,
    fields: Vec<u8>,
    /// The first document of the present key, until it is given out.
    first: Option<Vec<u8>>,
    /// The second document, where the first was given out instead.
    second: Option<Vec<u8>>,
}

impl SharedKeys<'_> {
    /// The next document that shares a key.
    pub fn next_sharer(&mut self) -> Result<Option<Sharer>, StorageError> {
        if let Some(second) = self.second.take() {
            return Ok(Some(Sharer::Further(second)));
        }
        while let Some(entry) = self.scan.next(self.transaction, BlockingMode::MayBlock)? {
            self.operation.check()?;
            if entry.fields == self.fields {
                let key = entry.primary_key.to_vec();
                let Some(first) = self.first.take() else { return Ok(Some(Sharer::Further(key))) };
                self.second = Some(key);
                return Ok(Some(Sharer::First(first)));
            }
            self.fields.clear();
            self.fields.extend_from_slice(entry.fields);
            self.first = Some(entry.primary_key.to_vec());
        }
        Ok(None)
    }
}

impl Collection {
    /// A scan of the keys of an index that several documents share.
    pub fn shared_keys<'t>(
        &self,
        index: &Arc<Index>,
        transaction: &'t dyn Transaction,
        operation: &'t Operation,
    ) -> SharedKeys<'t> {
        let scan = self.scan_index(index, KeyRange::all(), Direction::Forward);
        SharedKeys { scan, transaction, operation, fields: Vec::new(), first: None, second: None }
    }
}
