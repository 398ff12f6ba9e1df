//! A document made from an index entry, for covered plans: the indexed fields and nothing else.
//!
//! In a key, a missing field and null are alike. So where a key holds null the document itself has to be
//! looked at, unless the plan takes both as null. A key of undefined may be that of an empty array, and its
//! document is looked at in any case.

use pando_catalog::{FieldKind, IndexDescription};
use pando_document::{Document, DocumentWriter, Value};
use pando_keyorder::Direction;

use crate::QueryError;
use crate::plan::Nulls;

/// Makes documents of entries.
#[derive(Clone, Debug)]
pub(super) struct EntryDocument {
    nulls: Nulls,
    directions: Vec<Direction>,
    /// Empty where a part of the key is no field of the document.
    paths: Vec<Vec<String>>,
}

impl EntryDocument {
    pub fn new(index: &IndexDescription, nulls: Nulls) -> EntryDocument {
        EntryDocument {
            nulls,
            directions: index.fields.iter().map(|field| field.direction).collect(),
            paths: index
                .fields
                .iter()
                .map(|field| match field.kind {
                    FieldKind::WildcardPath => Vec::new(),
                    _ => field.path.split('.').map(str::to_owned).collect(),
                })
                .collect(),
        }
    }

    /// Writes the document of an entry; false where the entry does not tell enough.
    pub fn write(&self, fields: &[u8], type_bits: &[u8], out: &mut Vec<u8>) -> Result<bool, QueryError> {
        let Ok(values) = pando_keyorder::decode(fields, type_bits, &self.directions) else {
            return Ok(false);
        };
        let is_unclear = |value: &Value| match value {
            Value::Null => self.nulls == Nulls::Fetched,
            value => matches!(value, Value::Undefined),
        };
        if values.iter().any(is_unclear) {
            return Ok(false);
        }
        out.clear();
        if self.paths.iter().all(|path| path.len() <= 1) {
            let mut writer = DocumentWriter::begin(out);
            for (path, value) in self.paths.iter().zip(&values) {
                if let Some(name) = path.first() {
                    writer.append_value(name, value);
                }
            }
            writer.finish();
            return Ok(true);
        }
        let mut document = Document::new();
        for (path, value) in self.paths.iter().zip(values).filter(|(path, _)| !path.is_empty()) {
            if !put(&mut document, path, value) {
                return Ok(false);
            }
        }
        out.extend_from_slice(document.to_raw().as_bytes());
        Ok(true)
    }
}

/// Puts a value at a path; false where another field of the index stands in the way.
fn put(document: &mut Document, path: &[String], value: Value) -> bool {
    let Some((last, way)) = path.split_last() else { return false };
    let mut place = document;
    for name in way {
        if place.get(name).is_none() {
            place.push(name, Value::Document(Document::new()));
        }
        match place.get_mut(name) {
            Some(Value::Document(inner)) => place = inner,
            _ => return false,
        }
    }
    if place.get(last).is_some() {
        return false;
    }
    place.push(last, value);
    true
}
