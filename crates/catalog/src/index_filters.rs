//! Index filters of a collection: for a shape of queries, the indexes that its plans may use.
//!
//! They live in memory, from the command that sets them until the store is closed or the collection is
//! dropped, and follow a renamed collection. The shape is made above (crate `query`); here it is bytes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pando_document::{RawDocument, RawDocumentBuf, RawValue, compare_documents};
use parking_lot::RwLock;

use crate::IndexDescription;

/// The indexes that queries of one shape may use.
#[derive(Clone, Debug)]
pub struct IndexFilter {
    /// The shape.
    pub shape: Vec<u8>,
    /// Query, sort, projection and collation, as they are listed.
    pub request: RawDocumentBuf,
    /// Indexes by name.
    pub names: BTreeSet<String>,
    /// Indexes by key pattern, each once, in their order.
    pub patterns: Vec<RawDocumentBuf>,
}

impl IndexFilter {
    /// Adds a key pattern, unless it is there.
    pub fn add_pattern(&mut self, pattern: &RawDocument) {
        let place = self.patterns.binary_search_by(|other| compare_documents(other, pattern));
        if let Err(place) = place {
            self.patterns.insert(place, pattern.to_owned());
        }
    }

    /// Whether queries of the shape may use an index.
    pub fn allows(&self, index: &IndexDescription) -> bool {
        if self.names.contains(&index.name) {
            return true;
        }
        match index.specification.get("key") {
            Ok(Some(RawValue::Document(key))) => {
                self.patterns.binary_search_by(|pattern| compare_documents(pattern, key)).is_ok()
            }
            _ => false,
        }
    }
}

/// The filters of one collection, in the order in which they were set.
#[derive(Debug, Default)]
pub struct IndexFilters {
    /// Whether there are some: the only thing that most queries look at.
    are_set: AtomicBool,
    list: RwLock<Vec<Arc<IndexFilter>>>,
}

impl IndexFilters {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.are_set.load(Ordering::Acquire)
    }

    /// The filter of a shape.
    pub fn of_shape(&self, shape: &[u8]) -> Option<Arc<IndexFilter>> {
        self.list.read().iter().find(|filter| filter.shape == shape).cloned()
    }

    /// All filters.
    pub fn all(&self) -> Vec<Arc<IndexFilter>> {
        self.list.read().clone()
    }

    /// Sets the filter of a shape, in the place of the one before.
    pub fn set(&self, filter: IndexFilter) {
        let mut list = self.list.write();
        list.retain(|other| other.shape != filter.shape);
        list.push(Arc::new(filter));
        self.are_set.store(true, Ordering::Release);
    }

    /// Takes the filter of a shape away, if there is one.
    pub fn clear(&self, shape: &[u8]) {
        let mut list = self.list.write();
        list.retain(|filter| filter.shape != shape);
        self.are_set.store(!list.is_empty(), Ordering::Release);
    }

    /// Takes all filters away.
    pub fn clear_all(&self) {
        let mut list = self.list.write();
        list.clear();
        self.are_set.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    fn filter(shape: &str, name: &str) -> IndexFilter {
        IndexFilter {
            shape: shape.as_bytes().to_vec(),
            request: RawDocumentBuf::new(),
            names: BTreeSet::from([name.to_owned()]),
            patterns: Vec::new(),
        }
    }

    #[test]
    fn a_filter_replaces_that_of_its_shape_and_no_other() {
        let filters = IndexFilters::default();
        assert!(filters.is_empty());
        filters.set(filter("a", "one"));
        filters.set(filter("b", "two"));
        filters.set(filter("a", "three"));
        assert_eq!(filters.all().len(), 2);
        assert!(filters.of_shape(b"a").is_some_and(|filter| filter.names.contains("three")));
        filters.clear(b"a");
        assert!(filters.of_shape(b"a").is_none() && !filters.is_empty());
        filters.clear(b"b");
        assert!(filters.is_empty());
    }

    #[test]
    fn an_index_is_allowed_by_its_name_or_its_key_pattern() {
        let specification = doc! { "v": 2, "key": { "a": 1, "b": -1 }, "name": "ab" };
        let index = IndexDescription::from_specification(&specification.to_raw()).unwrap();
        assert!(filter("", "ab").allows(&index));
        let mut by_pattern = filter("", "other");
        by_pattern.add_pattern(&doc! { "a": 1 }.to_raw());
        assert!(!by_pattern.allows(&index));
        by_pattern.add_pattern(&doc! { "a": 1.0, "b": -1 }.to_raw());
        by_pattern.add_pattern(&doc! { "a": 1, "b": -1 }.to_raw());
        assert_eq!(by_pattern.patterns.len(), 2);
        assert!(by_pattern.allows(&index));
    }
}
