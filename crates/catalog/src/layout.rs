//! The layout of a collection: by which key its documents lie in the primary tree.
//!
//! | layout      | key of a document                                          | `_id`                    |
//! |-------------|------------------------------------------------------------|--------------------------|
//! | `Clustered` | `_id`                                                      | is the key               |
//! | `Fields`    | fields of the user's choice, the last of which is `_id`    | a unique secondary index |
//! | `Heap`      | a record id: the number of the insert (`record_ids`)       | a unique secondary index |
//!
//! The options of the collection tell it: `layout: "heap"`, or `primaryKey: {ts: 1, _id: 1}` as in TokuMX.
//! A capped collection is a heap. Options without any of these mean `Clustered`, as they do in every
//! collection of an older program. A layout never changes.
//!
//! # Not here
//! The bytes of a key (`document_key`), reads by `_id` (`id_lookup`).

use std::sync::Arc;

use pando_collation::TextOrder;
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, Value, doc};
use pando_keyorder::Direction;

use crate::capped::CappedLimits;
use crate::definition::fields_of;
use crate::index_description::IndexField;

/// The name of the index on `_id`.
pub const ID_INDEX: &str = "_id_";

/// The name of the index that the documents are where their key is of the user's choice.
pub const PRIMARY_KEY_INDEX: &str = "primaryKey";

/// A name for the tree of a heap's documents, which is no index.
pub const HEAP_TREE: &str = "$documents";

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// By `_id`.
    #[default]
    Clustered,
    /// By these fields, the last of which is `_id`.
    Fields(Arc<[IndexField]>),
    /// By a record id, in the order of inserts.
    Heap,
}

impl Layout {
    /// The layout that the options of a collection ask for; `Err` says what is wrong with them.
    pub fn of_options(options: &RawDocument) -> Result<Layout, String> {
        let get = |name| options.get(name).map_err(|error| error.to_string());
        let fields = match get("primaryKey")? {
            None => None,
            Some(RawValue::Document(pattern)) => Some(primary_key_fields(pattern)?),
            Some(_) => return Err("'primaryKey' has to be a document".to_owned()),
        };
        if CappedLimits::of_options(options).is_some() {
            return match (get("layout")?, fields) {
                (None | Some(RawValue::String("heap")), None) => Ok(Layout::Heap),
                _ => {
                    Err("a capped collection keeps its documents in the order of inserts, and has no other \
                          'layout' or 'primaryKey'"
                        .to_owned())
                }
            };
        }
        if is_partitioned(options) && matches!(get("layout")?, Some(RawValue::String("heap"))) {
            return Err(
                "a partitioned collection has the layout of its 'primaryKey', and not \"heap\"".to_owned()
            );
        }
        match (get("layout")?, fields) {
            (None | Some(RawValue::String("clustered")), None) => Ok(Layout::Clustered),
            (None | Some(RawValue::String("clustered")), Some(fields)) if fields.len() == 1 => {
                Ok(Layout::Clustered)
            }
            (None | Some(RawValue::String("clustered")), Some(fields)) => Ok(Layout::Fields(fields.into())),
            (Some(RawValue::String("heap")), None) => Ok(Layout::Heap),
            (Some(RawValue::String("heap")), Some(_)) => {
                Err("a collection with a 'primaryKey' cannot have the layout \"heap\"".to_owned())
            }
            (Some(other), _) => {
                let found = other.as_str().map_or(String::new(), |text| format!(", and is \"{text}\""));
                Err(format!("'layout' has to be \"clustered\" or \"heap\"{found}"))
            }
        }
    }

    /// Whether `_id` is the key of a document.
    pub fn is_by_id(&self) -> bool {
        matches!(self, Layout::Clustered)
    }

    /// The name of the layout.
    pub fn name(&self) -> &'static str {
        match self {
            Layout::Clustered => "clustered",
            Layout::Fields(_) => "primaryKey",
            Layout::Heap => "heap",
        }
    }

    /// The name of the tree of documents in lists of figures: that of the index that they are, if any.
    pub fn documents_name(&self) -> &'static str {
        match self {
            Layout::Clustered => ID_INDEX,
            Layout::Fields(_) => PRIMARY_KEY_INDEX,
            Layout::Heap => HEAP_TREE,
        }
    }

    /// The specification of the index that the documents are; `None` for a heap.
    pub(crate) fn primary_specification(&self, order: &TextOrder) -> Option<RawDocumentBuf> {
        match self {
            Layout::Clustered => Some(id_specification(order)),
            Layout::Fields(fields) => {
                let mut key = Document::new();
                for field in fields.iter() {
                    let order = if field.direction == Direction::Ascending { 1 } else { -1 };
                    key.push(field.path.as_str(), Value::Int32(order));
                }
                let mut specification = doc! {
                    "v": 2, "key": (Value::Document(key)), "name": PRIMARY_KEY_INDEX,
                    "unique": true, "clustering": true,
                };
                push_collation(&mut specification, order);
                Some(specification.to_raw())
            }
            Layout::Heap => None,
        }
    }

    /// The specification of the secondary index on `_id`; `None` where `_id` is the key of a document.
    pub(crate) fn id_index_specification(&self, order: &TextOrder) -> Option<RawDocumentBuf> {
        (!self.is_by_id()).then(|| id_specification(order))
    }
}

fn id_specification(order: &TextOrder) -> RawDocumentBuf {
    let mut specification = doc! { "v": 2, "key": { "_id": 1 }, "name": ID_INDEX };
    push_collation(&mut specification, order);
    specification.to_raw()
}

fn push_collation(specification: &mut Document, order: &TextOrder) {
    if let Some(collation) = order.document() {
        specification.push("collation", Value::from(RawValue::Document(collation)));
    }
}

/// Whether the options of a collection ask for partitions.
pub fn is_partitioned(options: &RawDocument) -> bool {
    matches!(options.get("partitioned"), Ok(Some(RawValue::Boolean(true))))
}

/// The name that MongoDB's option `clusteredIndex` gives the documents; `None` without the option.
pub(crate) fn clustered_name(options: &RawDocument) -> Option<&str> {
    let Ok(Some(RawValue::Document(index))) = options.get("clusteredIndex") else { return None };
    let name = index.get("name").ok().flatten().and_then(|name| name.as_str());
    Some(name.unwrap_or(ID_INDEX))
}

/// The specification of the index that the documents of such a collection are.
pub(crate) fn clustered_specification(
    options: &RawDocument,
    name: &str,
    order: &TextOrder,
) -> RawDocumentBuf {
    let mut specification = doc! { "v": 2, "key": { "_id": 1 }, "name": name, "unique": true };
    push_collation(&mut specification, order);
    if let Some(seconds) =
        options.get("expireAfterSeconds").ok().flatten().and_then(|value| value.as_i64_exact())
    {
        specification.push("expireAfterSeconds", Value::Int64(seconds));
    }
    specification.push("clustered", Value::Boolean(true));
    specification.to_raw()
}

/// The fields of a primary key, checked.
fn primary_key_fields(pattern: &RawDocument) -> Result<Vec<IndexField>, String> {
    let fields = fields_of(pattern)?;
    match fields.last() {
        Some(last) if last.path == "_id" && last.direction == Direction::Ascending => {}
        _ => return Err("'primaryKey' has to end with {_id: 1}".to_owned()),
    }
    for (at, field) in fields.iter().enumerate() {
        if fields[..at].iter().any(|before| before.path == field.path) {
            return Err(format!("'primaryKey' has the field {} twice", field.path));
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(options: Document) -> Result<Layout, String> {
        Layout::of_options(&options.to_raw())
    }

    #[test]
    fn options_tell_the_layout_and_none_mean_clustered() {
        assert_eq!(layout(doc! {}), Ok(Layout::Clustered));
        assert_eq!(layout(doc! { "layout": "clustered" }), Ok(Layout::Clustered));
        assert_eq!(layout(doc! { "primaryKey": { "_id": 1 } }), Ok(Layout::Clustered));
        assert_eq!(layout(doc! { "layout": "heap" }), Ok(Layout::Heap));
        assert_eq!(layout(doc! { "capped": true, "size": 4096 }), Ok(Layout::Heap));
        assert_eq!(layout(doc! { "capped": false }), Ok(Layout::Clustered));
        let Ok(Layout::Fields(fields)) = layout(doc! { "primaryKey": { "a.b": -1, "_id": 1.0 } }) else {
            panic!("a primary key of two fields")
        };
        assert_eq!((fields[0].path.as_str(), fields[1].path.as_str()), ("a.b", "_id"));
    }

    #[test]
    fn a_layout_that_there_is_not_is_told_as_it_was_written() {
        let refused = |value: Value| layout(doc! { "layout": value }).unwrap_err();
        assert_eq!(
            refused(Value::from("hep")),
            "'layout' has to be \"clustered\" or \"heap\", and is \"hep\""
        );
        assert_eq!(refused(Value::from(7)), "'layout' has to be \"clustered\" or \"heap\"");
    }

    #[test]
    fn a_primary_key_ends_with_id_and_has_each_field_once() {
        for refused in [
            doc! { "primaryKey": { "a": 1 } },
            doc! { "primaryKey": { "_id": 1, "a": 1 } },
            doc! { "primaryKey": { "a": 1, "_id": -1 } },
            doc! { "primaryKey": { "a": "hashed", "_id": 1 } },
            doc! { "primaryKey": { "a": 1, "a": 1, "_id": 1 } },
            doc! { "primaryKey": { "a": 0, "_id": 1 } },
            doc! { "primaryKey": {} },
            doc! { "primaryKey": 1 },
            doc! { "primaryKey": { "a": 1, "_id": 1 }, "layout": "heap" },
            doc! { "capped": true, "size": 1, "primaryKey": { "a": 1, "_id": 1 } },
            doc! { "capped": true, "size": 1, "layout": "clustered" },
            doc! { "layout": "cluster" },
            doc! { "layout": 1 },
        ] {
            assert!(layout(refused.clone()).is_err(), "{refused:?}");
        }
    }
}
