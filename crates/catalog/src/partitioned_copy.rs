//! The partitioned copy of a collection, which takes its place: TokuMX's `convertToPartitioned`.
//!
//! # Steps
//! 1. The collection is taken alone, so that no acknowledged document is lost.
//! 2. A load takes its documents (`bulk_load`). It has the indexes of the source, and the partitions of the
//!    schedule or one.
//! 3. One commit publishes it. A crash leaves one of the two.

use std::sync::Arc;

use pando_document::{RawDocument, RawDocumentBuf};
use pando_storage::{Begin, BlockingMode, Direction, KeyRange, Operation, Transaction};

use crate::bulk_load::{BulkLoad, LoadName, NewLoad};
use crate::error::WriteError;
use crate::layout::ID_INDEX;
use crate::{Catalog, CatalogError, Collection, Namespace};

/// The copy that is asked for.
pub struct PartitionedCopy<'c> {
    /// The collection that is replaced.
    pub namespace: &'c Namespace,
    /// The options of the copy.
    pub options: RawDocumentBuf,
    /// Its identity.
    pub uuid: [u8; 16],
    /// The time in milliseconds since 1970.
    pub now_ms: i64,
}

impl Catalog {
    /// Replaces a collection by its partitioned copy. Gives the old one. `end_users` asks the statements that
    /// use it to end, as in [`drop_collection`](Catalog::drop_collection). Blocks until the commit is on the
    /// device.
    ///
    /// # Errors
    /// An index of it is unique or is being built; a document cannot lie in a partition.
    pub fn replace_by_partitioned(
        &self,
        copy: PartitionedCopy<'_>,
        operation: &Operation,
        end_users: &dyn Fn(&Collection),
    ) -> Result<Arc<Collection>, CatalogError> {
        let PartitionedCopy { namespace, options, uuid, now_ms } = copy;
        let alone = self.exclusive_after(namespace, operation, end_users)?;
        let source = &alone.collection;
        if !source.building().is_empty() {
            return Err(CatalogError::IndexBuildRunning { namespace: namespace.to_string() });
        }
        let mut descriptions = Vec::new();
        // The index on `_id` comes with the options.
        for index in source.indexes().iter().filter(|index| index.name() != ID_INDEX) {
            descriptions.push(self.describe_index(index.specification())?);
        }
        let new = NewLoad { namespace, options, uuid, descriptions };
        let mut load = self.begin_load_of(new, LoadName::Replaced)?;
        load.make_partitions(now_ms)?;
        let reader = self.begin(Begin::READ)?;
        let copied = copy_all(&mut load, source, &*reader, operation);
        reader.rollback();
        copied?;
        let loaded = load.finish(self, operation)?;
        self.commit_replacement(loaded, Some(source))?;
        self.drop_replaced(source, end_users);
        Ok(alone.collection)
    }
}

fn copy_all(
    load: &mut BulkLoad,
    source: &Collection,
    reader: &dyn Transaction,
    operation: &Operation,
) -> Result<(), CatalogError> {
    let mut scan = source.scan_documents(KeyRange::all(), Direction::Forward);
    while let Some((_, document)) = scan.next(reader, BlockingMode::MayBlock)? {
        operation.check()?;
        load.insert(RawDocument::from_bytes(document).map_err(WriteError::from)?, operation)?;
    }
    Ok(())
}
