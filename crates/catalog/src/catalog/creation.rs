//! The creation of collections and indexes: their descriptions over new and empty trees.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pando_collation::TextOrder;
use pando_document::RawDocumentBuf;
use pando_storage::TreeOptions;

use super::Catalog;
use crate::collection::Parts;
use crate::error::CatalogError;
use crate::index::Index;
use crate::index_description::IndexDescription;
use crate::index_kind::IndexDefinition;
use crate::layout::Layout;
use crate::namespace::Namespace;
use crate::record_ids::RecordIds;
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
        let text_order = TextOrder::of_stored(&options);
        let text_order = text_order.map_err(|reason| CatalogError::CollectionOptions { reason })?;
        let settings = tree_options(&options, self.store.engine.name())?;
        let mut indexes = Vec::new();
        if let Some(specification) = layout.id_index_specification(&text_order) {
            indexes.push(self.new_index_with(self.describe_index(&specification)?, &settings)?);
        }
        let primary = self.store.create_tree("collection", &settings)?;
        let record_ids = Arc::new(RecordIds::of_new_collection());
        let of_tree = Parts::of_tree(namespace.clone(), primary);
        let parts = Parts { uuid, options, layout, text_order, record_ids, indexes, ..of_tree };
        parts.counters_kept.store(true, Ordering::Release);
        Ok(parts)
    }

    /// A new index with an empty tree, which no entry refers to yet.
    pub(crate) fn new_index(&self, description: IndexDescription) -> Result<Arc<Index>, CatalogError> {
        let settings = tree_options(&description.specification, self.store.engine.name())?;
        self.new_index_with(description, &settings)
    }

    fn new_index_with(
        &self,
        description: IndexDescription,
        settings: &TreeOptions,
    ) -> Result<Arc<Index>, CatalogError> {
        let methods = self.store.methods(&description)?;
        let tree = self.store.create_tree("index", settings)?;
        Ok(Arc::new(Index::new(IndexDefinition { description, methods }, tree)))
    }
}
