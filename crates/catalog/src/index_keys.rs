//! The keys of a document in an index: a pure function of the document and the index's fields.
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

use pando_document::{RawDocument, RawValue};
use pando_keyorder::TypeBits;

use crate::expansion::{End, end_without_arrays, expand};
use crate::index::{IndexField, Multikey, RaisedFlags, Sparseness, Truncation};
use crate::{Index, WriteError};

/// One key of a document in an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexKey {
    /// Order-preserving bytes of all fields, one after the other; not yet cut.
    pub fields: Vec<u8>,
    /// The type bits that those bytes lose.
    pub type_bits: Vec<u8>,
}

/// The keys of a document, and the flags that they raise.
pub(crate) struct DocumentKeys {
    /// Sorted, each once.
    pub keys: Vec<IndexKey>,
    /// Arrays met; truncation is judged when the entry is made.
    pub flags: RaisedFlags,
}

/// The keys of `document` in `index`.
pub(crate) fn keys_of(index: &Index, document: &RawDocument) -> Result<DocumentKeys, WriteError> {
    derive(index.fields(), index.sparseness(), document)
}

/// The keys of `document` in an index over `fields`.
pub(crate) fn derive(
    fields: &[IndexField],
    sparseness: Sparseness,
    document: &RawDocument,
) -> Result<DocumentKeys, WriteError> {
    let mut keys = Vec::with_capacity(1);
    let mut flags = RaisedFlags::none(fields.len());
    if let Some(ends) = ends_without_arrays(fields, document)? {
        keys.extend(key_of(fields, sparseness, &ends));
        return Ok(DocumentKeys { keys, flags });
    }
    let paths: Vec<&str> = fields.iter().map(|field| field.path.as_str()).collect();
    expand::<WriteError>(document, &paths, &mut |at| flags.multikey[at] = Multikey::Yes, &mut |ends| {
        keys.extend(key_of(fields, sparseness, ends));
        Ok(())
    })?;
    keys.sort_unstable();
    keys.dedup_by(|a, b| a.fields == b.fields);
    Ok(DocumentKeys { keys, flags })
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
fn key_of(fields: &[IndexField], sparseness: Sparseness, ends: &[End<'_>]) -> Option<IndexKey> {
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
        pando_keyorder::encode(value, field.direction, &mut key, &mut type_bits);
    }
    Some(IndexKey { fields: key, type_bits: type_bits.as_bytes().to_vec() })
}

/// Whether flags need raising at all: most documents raise none.
pub(crate) fn raises_any(flags: &RaisedFlags) -> bool {
    flags.truncated == Truncation::Truncated || flags.multikey.contains(&Multikey::Yes)
}

#[cfg(test)]
mod tests;
