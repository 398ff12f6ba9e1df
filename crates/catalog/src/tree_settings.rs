//! The trees of a collection as the engine sees them: settings, statistics, compaction, checks.
//!
//! The *settings* of a tree are the engine's own. The options of a collection and the specification of an
//! index have them in the field `storageEngine`, by engine. The engine gives them their meaning.

use pando_document::{RawDocument, RawValue};
use pando_storage::{CheckReport, CheckRequest, ErrorKind, Operation, Statistics, StorageError, TreeOptions};

use crate::collection::Collection;

/// The settings for `engine` in a document that may have a field `storageEngine`. Small and large letters of
/// the engine's name are the same: clients of MongoDB write `wiredTiger`.
pub(crate) fn tree_options(document: &RawDocument, engine: &str) -> Result<TreeOptions, StorageError> {
    let mut options = TreeOptions::default();
    let Ok(Some(RawValue::Document(engines))) = document.get("storageEngine") else { return Ok(options) };
    let refused = |reason: String| StorageError::new(ErrorKind::InvalidInput, reason);
    for section in engines.iter() {
        let (name, settings) = section.map_err(|error| refused(error.to_string()))?;
        if let RawValue::Document(settings) = settings
            && name.eq_ignore_ascii_case(engine)
        {
            take_settings(name, settings, &mut options)?;
        }
    }
    Ok(options)
}

fn take_settings(
    engine: &str,
    settings: &RawDocument,
    options: &mut TreeOptions,
) -> Result<(), StorageError> {
    let refused = |reason: String| StorageError::new(ErrorKind::InvalidInput, reason);
    for setting in settings.iter() {
        let (name, value) = setting.map_err(|error| refused(error.to_string()))?;
        let value = match value {
            RawValue::String(text) => text.to_owned(),
            number => number.as_i64_exact().map(|number| number.to_string()).ok_or_else(|| {
                refused(format!("storageEngine.{engine}.{name} must be a string or a whole number"))
            })?,
        };
        options.entries.push((name.to_owned(), value));
    }
    Ok(())
}

impl Collection {
    /// The engine's figures of each tree: first of the documents, then of each secondary index by its name.
    pub fn tree_statistics(&self) -> Result<Vec<(String, Statistics)>, StorageError> {
        let documents = self.engine().tree_statistics(self.primary_tree())?;
        let mut figures = vec![(self.layout().documents_name().to_owned(), documents)];
        for index in self.indexes() {
            figures.push((index.name().to_owned(), self.engine().tree_statistics(index.tree())?));
        }
        Ok(figures)
    }

    /// Has the engine compact the collection's trees. Returns the bytes by which the store has become smaller
    /// meanwhile, by this and by other writes. Blocks; may rewrite everything, unless the operation is
    /// interrupted.
    pub fn compact(&self, operation: &Operation) -> Result<u64, StorageError> {
        let before = self.engine().bytes_on_disk(None)?;
        let trees: Vec<_> = self.trees().collect();
        self.engine().compact(&trees, operation)?;
        Ok(before.saturating_sub(self.engine().bytes_on_disk(None)?))
    }

    /// Has the engine compact one tree: that of the secondary index of this name or else that of the
    /// documents. Blocks.
    pub fn compact_tree(&self, index: &str, operation: &Operation) -> Result<(), StorageError> {
        let tree = self.index(index).map_or_else(|| self.primary_tree(), |index| index.tree());
        self.engine().compact(&[tree], operation).map(|_| ())
    }

    /// Has the engine check every block of the collection's trees. Blocks; reads everything, unless the
    /// operation is interrupted.
    pub fn check_trees(&self, operation: &Operation) -> Result<CheckReport, StorageError> {
        let trees: Vec<_> = self.trees().collect();
        self.engine().check(&CheckRequest {
            trees: &trees,
            bytes_per_second: None,
            operation: Some(operation),
        })
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, Value};

    use super::*;

    #[test]
    fn the_section_of_the_engine_is_found_in_any_letters() {
        let section = |name: &str, setting: &str| {
            let mut settings = Document::new();
            settings.push(setting, Value::from("x"));
            let mut engines = Document::new();
            engines.push(name, Value::Document(settings));
            engines.push("other", Value::Document(Document::new()));
            let mut document = Document::new();
            document.push("storageEngine", Value::Document(engines));
            document.to_raw()
        };
        let document = section("wiredTiger", "configString");
        let found = tree_options(&document, "wiredtiger").expect("the settings are read");
        assert_eq!(found.entries, [("configString".to_owned(), "x".to_owned())]);
        assert!(tree_options(&document, "betree").expect("there are none").entries.is_empty());
    }
}
