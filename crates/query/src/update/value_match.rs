//! A filter on one value that stands in no document: an element of an array, for `$pull` and `arrayFilters`.
//!
//! The value is put under a name of its own into a document of one field, and the filter speaks of that name.

use pando_document::{DocumentWriter, RawDocument, RawValue};

use crate::error::QueryError;
use crate::filter::Filter;

/// A filter and the name under which it knows the value.
#[derive(Debug)]
pub(super) struct ValueMatch {
    filter: Filter,
    name: String,
}

impl ValueMatch {
    /// `filter` speaks of the field `name`.
    pub(super) fn new(filter: Filter, name: &str) -> ValueMatch {
        ValueMatch { filter, name: name.to_owned() }
    }

    /// Whether the value meets the filter.
    pub(super) fn accepts(&self, value: RawValue<'_>) -> Result<bool, QueryError> {
        let mut bytes = Vec::with_capacity(128);
        let mut writer = DocumentWriter::begin(&mut bytes);
        writer.append(&self.name, value);
        writer.finish();
        self.filter.matches(RawDocument::from_bytes(&bytes)?)
    }
}
