//! The creation of collections and indexes: their descriptions over new and empty trees.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pando_collation::TextOrder;
use pando_document::{RawDocument, RawDocumentBuf};
use pando_storage::{StorageError, Transaction, TreeOptions};

use super::Catalog;
use crate::catalog_entry;
use crate::collection::{Collection, Parts};
use crate::error::{CatalogError, PartitionFault};
use crate::index::Index;
use crate::index_description::{IndexDescription, Uniqueness};
use crate::index_kind::IndexDefinition;
use crate::layout::{Layout, is_partitioned};
use crate::namespace::Namespace;
use crate::partition_schedule::PartitionSchedule;
use crate::partitions::{PartitionList, Partitions};
use crate::record_ids::RecordIds;
use crate::store::Store;
use crate::tree_settings::tree_options;

impl Catalog {
    /// The parts of a new collection, with empty trees that no entry refers to yet.
    pub(crate) fn new_parts(
        &self,
        namespace: &Namespace,
        options: RawDocumentBuf,
        uuid: [u8; 16],
    ) -> Result<Parts, CatalogError> {
        let layout = Layout::of_options(&options);
        let layout = layout.map_err(|reason| CatalogError::CollectionOptions { reason })?;
        self.check_shareable(&layout, &options)?;
        PartitionSchedule::of_options(&options)
            .map_err(|reason| CatalogError::CollectionOptions { reason })?;
        let text_order = TextOrder::of_stored(&options);
        let text_order = text_order.map_err(|reason| CatalogError::CollectionOptions { reason })?;
        let settings = tree_options(&options, self.store.engine.name())?;
        let partitions = is_partitioned(&options).then(|| Partitions::new(PartitionList::first()));
        let mut indexes = Vec::new();
        if let Some(specification) = layout.id_index_specification(&text_order) {
            let description = self.describe_index(&specification)?;
            indexes.push(self.new_index_with(description, &settings, partitions.clone())?);
        }
        let primary = self.store.create_tree("collection", &settings)?;
        let record_ids = Arc::new(RecordIds::of_new_collection());
        let of_tree = Parts::of_tree(namespace.clone(), primary);
        let parts = Parts { uuid, options, layout, text_order, partitions, record_ids, indexes, ..of_tree };
        parts.counters_kept.store(true, Ordering::Release);
        Ok(parts)
    }

    /// Refuses, in a shared store, collections whose writers meet in the memory of one server: they give
    /// record ids, take turns, or look up partitions there.
    fn check_shareable(&self, layout: &Layout, options: &RawDocument) -> Result<(), CatalogError> {
        let is_refused = *layout == Layout::Heap || is_partitioned(options);
        match self.is_shared() && is_refused {
            false => Ok(()),
            true => {
                let reason = "a store that several servers share has no capped or partitioned collections, and \
                              none in the layout \"heap\"";
                Err(CatalogError::CollectionOptions { reason: reason.to_owned() })
            }
        }
    }

    /// A new index with an empty tree, which no entry refers to yet, of a collection with these partitions.
    pub(crate) fn new_index(
        &self,
        description: IndexDescription,
        partitions: Option<Arc<Partitions>>,
    ) -> Result<Arc<Index>, CatalogError> {
        check_partitionable(&description, partitions.is_some())?;
        let settings = tree_options(&description.specification, self.store.engine.name())?;
        self.new_index_with(description, &settings, partitions)
    }

    fn new_index_with(
        &self,
        description: IndexDescription,
        settings: &TreeOptions,
        partitions: Option<Arc<Partitions>>,
    ) -> Result<Arc<Index>, CatalogError> {
        let methods = self.store.methods(&description)?;
        let tree = self.store.create_tree("index", settings)?;
        Ok(Arc::new(Index::new(IndexDefinition { description, methods }, tree, partitions)))
    }
}

/// Refuses a unique index of a collection with partitions: that on `_id` is the only one.
pub(super) fn check_partitionable(
    description: &IndexDescription,
    has_partitions: bool,
) -> Result<(), CatalogError> {
    let is_refused = has_partitions && description.unique != Uniqueness::NotUnique;
    if !is_refused {
        return Ok(());
    }
    let reason = format!("a partitioned collection has no unique index beside '_id_': {}", description.name);
    Err(CatalogError::Partitions { fault: PartitionFault::UniqueIndex, reason })
}

/// Writes the entry of a collection as it is now.
pub(crate) fn put_entry(
    store: &Store,
    transaction: &mut dyn Transaction,
    collection: &Collection,
) -> Result<(), StorageError> {
    let entry = catalog_entry::encode(collection, collection.primary_truncation(), None);
    transaction.put(store.tree, &catalog_entry::key_of(collection.full_name()), entry.as_bytes())
}
