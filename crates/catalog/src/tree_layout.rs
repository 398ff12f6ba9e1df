//! The trees of a collection as the engine sees them: their layout, their figures, their soundness.
//!
//! The layout is what the options of a collection, or the specification of an index, say in the field
//! `storageEngine`, and of it the part that is for this engine. What the settings mean is the engine's business.

use pando_document::{RawDocument, RawDocumentBuf, RawValue};
use pando_storage::{CheckReport, CheckRequest, ErrorKind, Statistics, StorageError, TreeOptions};

use crate::{Catalog, CatalogError, Collection, Namespace};

/// The settings for `engine` in a document that may have a field `storageEngine`.
pub(crate) fn tree_options(document: &RawDocument, engine: &str) -> Result<TreeOptions, StorageError> {
    let mut options = TreeOptions::default();
    let Ok(Some(RawValue::Document(engines))) = document.get("storageEngine") else { return Ok(options) };
    let Ok(Some(RawValue::Document(settings))) = engines.get(engine) else { return Ok(options) };
    for setting in settings.iter() {
        let refused = |reason: String| StorageError::new(ErrorKind::InvalidInput, reason);
        let (name, value) = setting.map_err(|error| refused(error.to_string()))?;
        let value = match value {
            RawValue::String(text) => text.to_owned(),
            number => number.as_i64_exact().map(|number| number.to_string()).ok_or_else(|| {
                refused(format!("storageEngine.{engine}.{name} must be a string or a whole number"))
            })?,
        };
        options.entries.push((name.to_owned(), value));
    }
    Ok(options)
}

impl Catalog {
    /// Replaces a collection's options, and lays out its documents as they say from now on.
    pub fn change_layout(&self, namespace: &Namespace, options: RawDocumentBuf) -> Result<(), CatalogError> {
        let tree = self.existing(namespace)?.primary_tree();
        let layout = tree_options(&options, self.engine().name())?;
        self.engine().change_tree_options(tree, &layout)?;
        self.set_options(namespace, options)
    }

    /// Replaces an index's specification by one that means the same tree, and lays its entries out as it says from now on.
    pub fn change_index_layout(
        &self,
        namespace: &Namespace,
        name: &str,
        specification: RawDocumentBuf,
    ) -> Result<(), CatalogError> {
        let collection = self.existing(namespace)?;
        let index = collection.index(name);
        let index = index.ok_or_else(|| CatalogError::IndexNotFound { name: name.to_owned() })?;
        let layout = tree_options(&specification, self.engine().name())?;
        self.engine().change_tree_options(index.tree(), &layout)?;
        self.set_index_specification(namespace, name, specification)
    }
}

impl Collection {
    /// The engine's figures of each tree: first of the documents (`_id_`), then of each index by its name.
    pub fn tree_statistics(&self) -> Result<Vec<(String, Statistics)>, StorageError> {
        let mut figures = vec![("_id_".to_owned(), self.engine().tree_statistics(self.primary_tree())?)];
        for index in self.indexes() {
            figures.push((index.name().to_owned(), self.engine().tree_statistics(index.tree())?));
        }
        Ok(figures)
    }

    /// Has the engine make the collection's trees as small as it can; by how many bytes the store has become smaller meanwhile, others'
    /// writes included. Blocks; may write everything anew.
    pub fn compact(&self) -> Result<u64, StorageError> {
        let before = self.engine().bytes_on_disk(None)?;
        let trees: Vec<_> = self.trees().collect();
        self.engine().compact(&trees)?;
        Ok(before.saturating_sub(self.engine().bytes_on_disk(None)?))
    }

    /// Has the engine check every block of the collection's trees. Blocks; reads everything.
    pub fn check_trees(&self) -> Result<CheckReport, StorageError> {
        let trees: Vec<_> = self.trees().collect();
        self.engine().check(&CheckRequest { trees: &trees, bytes_per_second: None })
    }
}
