//! The index key by which a plan has found a document, as `returnKey` and `$meta` show it.
//!
//! The key is derived from the document again. Of several keys of a document with arrays it is the first, in
//! the direction of the scan, that lies within the bounds.

use pando_catalog::index_keys::{KeyValues, key_values};
use pando_catalog::{FieldKind, IndexField, WriteError};
use pando_collation::TextOrder;
use pando_document::{Document, RawDocument, Value};
use pando_keyorder::Direction;

use super::{Access, IndexAccess, ScanBounds, ScanDirection};
use crate::QueryError;

/// See the module's head.
#[derive(Clone, Debug)]
pub struct ReturnedKey {
    fields: Vec<IndexField>,
    order: TextOrder,
    /// One of them holds the key; none for keys without bounds.
    bounds: Vec<ScanBounds>,
    direction: ScanDirection,
}

impl ReturnedKey {
    /// The keys of an access; `None` where it goes through no index, or through one whose keys
    /// are no values of fields.
    pub fn of(access: &Access) -> Option<ReturnedKey> {
        match access {
            Access::Nothing | Access::Collection(_) | Access::Text(_) | Access::Near(_) => None,
            Access::Id(_) => {
                let id = IndexField {
                    path: "_id".to_owned(),
                    direction: Direction::Ascending,
                    kind: FieldKind::Value,
                };
                Some(ReturnedKey {
                    fields: vec![id],
                    order: TextOrder::SIMPLE,
                    bounds: Vec::new(),
                    direction: ScanDirection::Forward,
                })
            }
            Access::Index(access) => ReturnedKey::of_index(access),
            Access::Merge(merge) => {
                let first = merge.scans.first()?;
                let of_index = merge.scans.iter().filter(|scan| scan.index.name == first.index.name);
                let bounds = of_index.map(|scan| scan.bounds.clone()).collect();
                ReturnedKey::of_index(first).map(|key| ReturnedKey { bounds, ..key })
            }
            Access::Union(accesses) => ReturnedKey::of_index(accesses.first()?),
            Access::Intersection(scans) => ReturnedKey::of_index(&scans[0]),
        }
    }

    fn of_index(access: &IndexAccess) -> Option<ReturnedKey> {
        let IndexAccess { index, bounds, direction, .. } = access;
        if index.hashed_field().is_some() || index.is_wildcard() || index.is_of_geometries() {
            return None;
        }
        let (fields, bounds) = (index.fields.clone(), vec![bounds.clone()]);
        Some(ReturnedKey { fields, order: index.text_order.clone(), bounds, direction: *direction })
    }

    /// The key of a document, by field.
    pub fn of_document(&self, document: &RawDocument) -> Result<Document, QueryError> {
        let mut keys = key_values(&self.fields, &self.order, document).map_err(fault)?;
        if self.direction == ScanDirection::Backward {
            keys.reverse();
        }
        let at = keys.iter().position(|key| self.is_within(key)).unwrap_or(0);
        let values = keys.into_iter().nth(at).map(|key| key.values).unwrap_or_default();
        Ok(self.fields.iter().map(|field| field.path.clone()).zip(values).collect())
    }

    fn is_within(&self, key: &KeyValues) -> bool {
        let is_within = |bounds: &ScanBounds| match bounds {
            ScanBounds::Keys { min, max } => {
                min.as_ref().is_none_or(|min| key.bytes >= *min)
                    && max.as_ref().is_none_or(|max| key.bytes < *max)
            }
            ScanBounds::Fields(bounds) => {
                let starts = std::iter::once(0).chain(key.ends.iter().copied());
                let parts = starts.zip(&key.ends).map(|(start, end)| &key.bytes[start..*end]);
                parts
                    .zip(bounds)
                    .all(|(part, bounds)| bounds.list().iter().any(|interval| interval.contains(part)))
            }
        };
        self.bounds.is_empty() || self.bounds.iter().any(is_within)
    }

    /// The values by which a document is sorted: of an array, the one that decides.
    pub fn sort_key(
        fields: &[IndexField],
        order: &TextOrder,
        document: &RawDocument,
    ) -> Result<Vec<Value>, QueryError> {
        let keys = key_values(fields, order, document).map_err(fault)?;
        Ok(keys.into_iter().next().map(|key| key.values).unwrap_or_default())
    }
}

fn fault(error: WriteError) -> QueryError {
    match error {
        WriteError::Storage(error) => QueryError::Storage(error),
        other => QueryError::bad_value(other.to_string()),
    }
}
