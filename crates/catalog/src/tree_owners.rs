//! The owners of trees by name: a damage to a tree is told with its collection or index.
//!
//! They are taken from an open catalog, or from entries of the catalog tree, for a store that is not opened.

use std::collections::BTreeMap;

use pando_document::{RawDocument, RawValue};

use crate::catalog::Catalog;
use crate::catalog_entry::namespace_of;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct TreeOwners {
    /// `collection atlas.cities`, or `index name_1 of atlas.cities`, by the tree's name.
    owners: BTreeMap<String, String>,
}

impl TreeOwners {
    /// Those of an open store.
    pub fn of_catalog(catalog: &Catalog) -> TreeOwners {
        let mut found = TreeOwners::default();
        for database in catalog.databases() {
            for collection in catalog.collections(&database) {
                let namespace = collection.full_name();
                found.add_collection(collection.primary_tree_name(), namespace);
                for index in collection.indexes() {
                    found.add_index(index.tree_name(), index.name(), namespace);
                }
            }
        }
        found
    }

    /// Adds those of an entry of the catalog tree. A damaged entry adds fewer or none.
    pub fn add_entry(&mut self, key: &[u8], value: &[u8]) {
        let (Some(namespace), Ok(entry)) = (namespace_of(key), RawDocument::from_bytes(value)) else {
            return;
        };
        if let Ok(Some(RawValue::String(tree))) = entry.get("tree") {
            self.add_collection(tree, namespace);
        }
        let Ok(Some(RawValue::Array(indexes))) = entry.get("indexes") else { return };
        for index in indexes.iter().map_while(Result::ok) {
            if let RawValue::Document(index) = index
                && let Ok(Some(RawValue::String(tree))) = index.get("tree")
                && let Ok(Some(RawValue::Document(specification))) = index.get("spec")
                && let Ok(Some(RawValue::String(name))) = specification.get("name")
            {
                self.add_index(tree, name, namespace);
            }
        }
    }

    /// The sentence of an engine, which has the tree's name in parentheses, with the owner beside it.
    pub fn name_in(&self, sentence: &str) -> String {
        let named = sentence.split_once(" (").and_then(|(before, rest)| {
            let (tree, after) = rest.split_once(')')?;
            Some((before, tree, self.owners.get(tree)?, after))
        });
        match named {
            Some((before, tree, owner, after)) => format!("{owner}: {before} ({tree}){after}"),
            None => sentence.to_owned(),
        }
    }

    fn add_collection(&mut self, tree: &str, namespace: &str) {
        self.owners.insert(tree.to_owned(), format!("collection {namespace}"));
    }

    fn add_index(&mut self, tree: &str, name: &str, namespace: &str) {
        self.owners.insert(tree.to_owned(), format!("index {name} of {namespace}"));
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    #[test]
    fn a_sentence_about_a_tree_names_its_collection_or_index() {
        let mut owners = TreeOwners::default();
        let entry = doc! {
            "v": 1, "tree": "collection-3",
            "indexes": [{ "spec": { "name": "name_1" }, "tree": "index-4" }],
        };
        owners.add_entry(b"c/atlas.cities", entry.to_raw().as_bytes());
        owners.add_entry(b"c/broken", b"no document");
        let named = |sentence: &str| owners.name_in(sentence);
        assert_eq!(
            named("tree 5 (collection-3), keys from a: x"),
            "collection atlas.cities: tree 5 (collection-3), keys from a: x"
        );
        assert_eq!(named("tree 6 (index-4), (x)"), "index name_1 of atlas.cities: tree 6 (index-4), (x)");
        for other in ["tree 7 (collection-9), x", "the log ends", "odd ("] {
            assert_eq!(named(other), other);
        }
    }
}
