//! The owners of storage keys: the index that a claimed key belongs to, and the values in the key.

use std::collections::HashMap;

use pando_collation::TextOrder;
use pando_document::{Binary, Document, Value};
use pando_keyorder::Direction;
use pando_storage::TreeId;

use crate::catalog::Catalog;
use crate::collection::Collection;
use crate::index_description::FieldKind;
use crate::layout::Layout;
use crate::partitions::PREFIX_BYTES;
use crate::record_ids::record_id_of;

/// See the module's head.
pub struct KeyOwners {
    owners: HashMap<TreeId, Owner>,
}

struct Owner {
    /// `database.collection.$index`.
    index: String,
    /// None of the documents of a heap, whose keys are record ids.
    paths: Vec<String>,
    directions: Vec<Direction>,
    order: TextOrder,
    /// Bytes of the number of a partition before each key.
    prefix_bytes: usize,
}

/// A key as people read it.
pub struct OwnedKey {
    /// `database.collection.$index`.
    pub index: String,
    /// The values of the index's fields; the bytes where they cannot be told.
    pub values: Document,
}

impl KeyOwners {
    /// Those of an open store.
    pub fn of_catalog(catalog: &Catalog) -> KeyOwners {
        let mut found = KeyOwners { owners: HashMap::new() };
        found.add_primary(catalog.session_records());
        for database in catalog.databases() {
            for collection in catalog.collections(&database) {
                found.add_primary(&collection);
                for index in collection.indexes() {
                    let owner = Owner {
                        index: format!("{}.${}", collection.full_name(), index.name()),
                        paths: index
                            .fields()
                            .iter()
                            .flat_map(|field| match field.kind {
                                FieldKind::Wildcard => vec!["$_path".to_owned(), field.path.clone()],
                                _ => vec![field.path.clone()],
                            })
                            .collect(),
                        directions: index.directions().to_vec(),
                        order: index.text_order().clone(),
                        prefix_bytes: index.partitions().map_or(0, |_| PREFIX_BYTES),
                    };
                    found.owners.insert(index.tree(), owner);
                }
            }
        }
        found
    }

    fn add_primary(&mut self, collection: &Collection) {
        let (paths, directions) = match collection.layout() {
            Layout::Clustered => (vec!["_id".to_owned()], vec![Direction::Ascending]),
            Layout::Fields(fields) => {
                fields.iter().map(|field| (field.path.clone(), field.direction)).unzip()
            }
            Layout::Heap => (Vec::new(), Vec::new()),
        };
        let order = collection.text_order().clone();
        let name = collection.layout().documents_name().trim_start_matches('$');
        let owner = Owner {
            index: format!("{}.${name}", collection.full_name()),
            paths,
            directions,
            order,
            prefix_bytes: 0,
        };
        self.owners.insert(collection.primary_tree(), owner);
    }

    /// The index and the values of a key, or of its first bytes.
    pub fn describe(&self, tree: TreeId, key: &[u8]) -> OwnedKey {
        let owner = self.owners.get(&tree);
        let index = owner.map_or_else(|| tree.to_string(), |owner| owner.index.clone());
        let values = owner.and_then(|owner| owner.values(key)).unwrap_or_else(|| {
            let mut bytes = Document::new();
            bytes.push("key", Value::Binary(Binary { subtype: 0, bytes: key.to_vec() }));
            bytes
        });
        OwnedKey { index, values }
    }
}

impl Owner {
    /// The values of a whole key. The type of a number is the commonest one, for keys do not keep it.
    fn values(&self, key: &[u8]) -> Option<Document> {
        if self.paths.is_empty() {
            let record = record_id_of(key).and_then(|record| i64::try_from(record).ok())?;
            let mut document = Document::new();
            document.push("$recordId", Value::Int64(record));
            return Some(document);
        }
        let key = key.get(self.prefix_bytes..)?;
        let length = pando_keyorder::parts_length(key, &self.directions).ok()?;
        let values = self.order.decode(&key[..length], &[], &self.directions).ok()?;
        let mut document = Document::new();
        for (path, value) in self.paths.iter().zip(values) {
            document.push(path, value);
        }
        Some(document)
    }
}
