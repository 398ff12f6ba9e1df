//! The keys of a document in an ordinary index: a pure function of the document and the index's fields.
//!
//! # Steps
//! 1. Expand the paths of the fields through the document's arrays ([`crate::expansion`]): one combination of
//!    values for each element. A path that leads nowhere gives null. A path that ends at an empty array gives
//!    a key of its own, which sorts before null.
//! 2. Encode each combination, field by field. A sparse index leaves out a combination without any value.
//!
//! # Worked example
//! `{a: [{b: 1, c: 2}, {b: 3}], d: 9}` in the index `{a.b: 1, a.c: 1, d: 1}` has the keys `(1, 2, 9)` and
//! `(3, null, 9)`.
//!
//! # Invariants
//! - The keys are sorted, and each stands once.
//! - A document has at least one key, unless the index is sparse and the document has none of its fields.

use pando_collation::TextOrder;
use pando_document::{RawDocument, RawValue, Value};
use pando_keyorder::{Direction, TypeBits};

use crate::error::WriteError;
use crate::expansion::{End, end_without_arrays, expand};
use crate::index_description::{IndexField, RaisedFlags, Sparseness, Truncation};
use crate::index_entry::FIELD_BYTES_MAX;
use crate::multikey::Multikey;

/// One key of a document in an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexKey {
    /// Order-preserving bytes of all fields, one after the other; not yet cut.
    pub fields: Vec<u8>,
    /// The type bits that those bytes lose.
    pub type_bits: Vec<u8>,
}

/// The keys of a document, and the arrays that its paths met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeneratedKeys {
    /// Sorted, each once.
    pub keys: Vec<IndexKey>,
    /// Where each field met an array; empty where none did.
    pub multikey: Vec<Multikey>,
}

impl GeneratedKeys {
    /// The flags that the keys raise: those of arrays, and that of a key that is too long for an entry.
    pub(crate) fn flags(&self) -> RaisedFlags {
        let is_cut = self.keys.iter().any(|key| key.fields.len() >= FIELD_BYTES_MAX);
        let truncated = if is_cut { Truncation::Truncated } else { Truncation::Whole };
        RaisedFlags { multikey: self.multikey.clone(), truncated }
    }
}

/// The generator of ordinary keys.
#[derive(Clone, Debug)]
pub struct OrdinaryKeys {
    fields: Vec<IndexField>,
    sparseness: Sparseness,
    directions: Vec<Direction>,
    text_order: TextOrder,
}

impl OrdinaryKeys {
    pub(crate) fn new(
        fields: Vec<IndexField>,
        sparseness: Sparseness,
        text_order: TextOrder,
    ) -> OrdinaryKeys {
        let directions = fields.iter().map(|field| field.direction).collect();
        OrdinaryKeys { fields, sparseness, directions, text_order }
    }

    pub(crate) fn fields(&self) -> &[IndexField] {
        &self.fields
    }

    pub(crate) fn sparseness(&self) -> Sparseness {
        self.sparseness
    }

    pub(crate) fn text_order(&self) -> &TextOrder {
        &self.text_order
    }

    pub(crate) fn directions(&self) -> &[Direction] {
        &self.directions
    }
}

/// The keys of `document` in an index over `fields`, with strings in this order.
pub(crate) fn derive(
    fields: &[IndexField],
    sparseness: Sparseness,
    order: &TextOrder,
    document: &RawDocument,
) -> Result<GeneratedKeys, WriteError> {
    let mut keys = Vec::with_capacity(1);
    if let Some(ends) = ends_without_arrays(fields, document)? {
        keys.extend(key_of(fields, sparseness, order, &ends));
        return Ok(GeneratedKeys { keys, multikey: Vec::new() });
    }
    let mut multikey = vec![Multikey::NO; fields.len()];
    let paths: Vec<&str> = fields.iter().map(|field| field.path.as_str()).collect();
    let mut meet = |at: usize, component: usize| multikey[at] = multikey[at].union(Multikey::at(component));
    expand::<WriteError>(document, &paths, &mut meet, &mut |ends| {
        keys.extend(key_of(fields, sparseness, order, ends));
        Ok(())
    })?;
    keys.sort_unstable();
    keys.dedup_by(|a, b| a.fields == b.fields);
    Ok(GeneratedKeys { keys, multikey })
}

/// A key of a document, and the values that it stands for.
#[derive(Clone, Debug)]
pub struct KeyValues {
    /// Order-preserving bytes of all fields, one after the other.
    pub bytes: Vec<u8>,
    /// Where the bytes of each field end.
    pub ends: Vec<usize>,
    /// The values.
    pub values: Vec<Value>,
}

/// The keys of a document in an index over `fields` that has all documents, sorted.
///
/// # Errors
/// Two fields are arrays, or a path is ambiguous.
pub fn key_values(
    fields: &[IndexField],
    order: &TextOrder,
    document: &RawDocument,
) -> Result<Vec<KeyValues>, WriteError> {
    let directions: Vec<Direction> = fields.iter().map(|field| field.direction).collect();
    let damaged = |error: pando_keyorder::DecodeError| WriteError::DamagedEntry {
        index: "of this document".to_owned(),
        reason: error.to_string(),
    };
    let values_of = |key: IndexKey| {
        let values = order.decode(&key.fields, &key.type_bits, &directions).map_err(damaged)?;
        let ends = (1..=directions.len())
            .map(|parts| pando_keyorder::parts_length(&key.fields, &directions[..parts]).map_err(damaged));
        Ok(KeyValues { ends: ends.collect::<Result<_, WriteError>>()?, bytes: key.fields, values })
    };
    derive(fields, Sparseness::Dense, order, document)?.keys.into_iter().map(values_of).collect()
}

/// The one combination of a document in which no path meets an array.
fn ends_without_arrays<'d>(
    fields: &[IndexField],
    document: &'d RawDocument,
) -> Result<Option<Vec<End<'d>>>, WriteError> {
    let mut ends = Vec::with_capacity(fields.len());
    for field in fields {
        match end_without_arrays(document, &field.path)? {
            Some(end) => ends.push(end),
            None => return Ok(None),
        }
    }
    Ok(Some(ends))
}

/// The key of one combination; none where a sparse index has none.
fn key_of(
    fields: &[IndexField],
    sparseness: Sparseness,
    order: &TextOrder,
    ends: &[End<'_>],
) -> Option<IndexKey> {
    if sparseness == Sparseness::Sparse && ends.iter().all(|end| matches!(end, End::Missing)) {
        return None;
    }
    let mut key = Vec::with_capacity(32);
    let mut type_bits = TypeBits::new();
    for (end, field) in ends.iter().zip(fields) {
        let value = match end {
            End::Value(value) => *value,
            End::EmptyArray => {
                pando_keyorder::encode_empty_array(field.direction, &mut key);
                continue;
            }
            End::Missing => RawValue::Null,
        };
        order.encode(value, field.direction, &mut key, &mut type_bits);
    }
    Some(IndexKey { fields: key, type_bits: type_bits.as_bytes().to_vec() })
}

#[cfg(test)]
mod tests;
