//! The capped copy of a collection: its newest documents, as many as fit, under a name of their own or in its
//! place.
//!
//! # Steps
//! 1. A scan from the end finds the first document from which on all are within the limits.
//! 2. A load takes them in the order of the source (`bulk_load`). The copy has no index but that on `_id`.
//! 3. One commit publishes it. In the place of the source, that is taken alone before step 1, so that no
//!    acknowledged document is lost; a crash leaves one of the two.
//!
//! The order is that of the source's keys: that of inserts in a heap, that of `_id` elsewhere.

use std::ops::Bound;
use std::sync::Arc;

use pando_document::{RawDocument, RawDocumentBuf};
use pando_storage::{
    Begin, BlockingMode, Caller, CommitReceipt, Direction, Durability, KeyRange, Operation, Transaction,
};

use crate::bulk_load::{BulkLoad, LoadName, NewLoad};
use crate::capped::CappedLimits;
use crate::error::WriteError;
use crate::{Catalog, CatalogError, Collection, Namespace};

/// The copy that is asked for.
pub struct CappedCopy<'c> {
    /// The collection that is copied.
    pub source: &'c Namespace,
    /// The name of the copy; that of the source where it takes its place.
    pub target: &'c Namespace,
    /// The options of the copy, with its limits.
    pub options: RawDocumentBuf,
    /// Its identity.
    pub uuid: [u8; 16],
}

impl Catalog {
    /// Makes a capped copy of a collection under another name. Blocks.
    ///
    /// # Errors
    /// The name is taken.
    pub fn copy_as_capped(
        &self,
        copy: CappedCopy<'_>,
        caller: Caller<'_>,
        durability: Durability,
    ) -> Result<CommitReceipt, CatalogError> {
        let source = self.existing(copy.source)?;
        if self.collection(copy.target.database(), copy.target.collection()).is_some() {
            return Err(CatalogError::CollectionExists { namespace: copy.target.to_string() });
        }
        let mut load = self.begin_copy(copy, LoadName::New)?;
        fill(self, &mut load, &source, caller.operation)?;
        let loaded = load.finish(self, caller.operation)?;
        self.publish_load(loaded, caller, durability)
    }

    /// Replaces a collection by its capped copy. Gives the old one. `end_users` asks the statements that use
    /// it to end, as in [`drop_collection`](Catalog::drop_collection). Blocks until the commit is on the
    /// device.
    ///
    /// # Errors
    /// An index of it is being built.
    pub fn replace_by_capped(
        &self,
        copy: CappedCopy<'_>,
        operation: &Operation,
        end_users: &dyn Fn(&Collection),
    ) -> Result<Arc<Collection>, CatalogError> {
        let alone = self.exclusive_after(copy.source, operation, end_users)?;
        if !alone.collection.building().is_empty() {
            return Err(CatalogError::IndexBuildRunning { namespace: copy.source.to_string() });
        }
        let mut load = self.begin_copy(copy, LoadName::Replaced)?;
        fill(self, &mut load, &alone.collection, operation)?;
        let loaded = load.finish(self, operation)?;
        self.commit_replacement(loaded, Some(&alone.collection))?;
        self.drop_replaced(&alone.collection, end_users);
        Ok(alone.collection)
    }

    fn begin_copy(&self, copy: CappedCopy<'_>, name: LoadName) -> Result<BulkLoad, CatalogError> {
        let CappedCopy { target, options, uuid, .. } = copy;
        self.begin_load_of(NewLoad { namespace: target, options, uuid, descriptions: Vec::new() }, name)
    }
}

/// Fills a load with the newest documents of a collection that are within the limits of the load.
fn fill(
    catalog: &Catalog,
    load: &mut BulkLoad,
    source: &Collection,
    operation: &Operation,
) -> Result<(), CatalogError> {
    let limits = load.capped_limits().ok_or_else(|| CatalogError::CollectionOptions {
        reason: "the options of a capped copy have no limits".to_owned(),
    })?;
    let reader = catalog.begin(Begin::READ)?;
    let copied = copy_newest(load, source, (limits, operation), &*reader);
    reader.rollback();
    copied
}

fn copy_newest(
    load: &mut BulkLoad,
    source: &Collection,
    (limits, operation): (CappedLimits, &Operation),
    reader: &dyn Transaction,
) -> Result<(), CatalogError> {
    let Some(first) = first_that_fits(source, limits, reader, operation)? else { return Ok(()) };
    let range = KeyRange { lower: Bound::Included(first), upper: Bound::Unbounded };
    let mut scan = source.scan_documents(range, Direction::Forward);
    while let Some((_, document)) = scan.next(reader, BlockingMode::MayBlock)? {
        operation.check()?;
        load.insert(RawDocument::from_bytes(document).map_err(WriteError::from)?, operation)?;
    }
    Ok(())
}

/// The key from which on all documents are within the limits; the last one is in any case.
fn first_that_fits(
    source: &Collection,
    limits: CappedLimits,
    reader: &dyn Transaction,
    operation: &Operation,
) -> Result<Option<Vec<u8>>, CatalogError> {
    let mut scan = source.scan_documents(KeyRange::all(), Direction::Backward);
    let (mut first, mut documents, mut bytes) = (None, 0, 0);
    while let Some((key, document)) = scan.next(reader, BlockingMode::MayBlock)? {
        operation.check()?;
        documents += 1;
        bytes += document.len() as i64;
        if first.is_some() && !limits.admit(documents, bytes) {
            break;
        }
        first = Some(key.to_vec());
    }
    Ok(first)
}
