//! Which keys a document has in an index: pure, from the document and the index's fields alone.
//!
//! # Terms
//! - *Field value*: what one indexed path comes to in one place of the document. A path that leads nowhere gives null; a path
//!   that ends at an empty array gives a key of its own, which sorts before null.
//! - *Expansion*: an array on a path gives one key for each of its elements. Two paths through the same array (`a.b` and
//!   `a.c` through `a`) go through it together; two paths through different arrays have no meaning and are refused.
//!
//! # Steps, for one level of expansion
//! 1. Walk each unfinished path down through documents until it ends, leads nowhere, or meets an array.
//! 2. If none met an array: the key is complete.
//! 3. If all that met one met the same: for each element, put the element in its place and go back to step 1.
//! 4. Otherwise: parallel arrays.
//!
//! # Worked example
//! `{a: [{b: 1, c: 2}, {b: 3}], d: 9}` in the index `{a.b: 1, a.c: 1, d: 1}` has the keys `(1, 2, 9)` and `(3, null, 9)`.
//!
//! # Invariants
//! - Keys come out sorted and each once.
//! - A document has at least one key, unless the index is sparse and the document has none of its fields.

use pando_document::{RawArray, RawDocument, RawValue};
use pando_keyorder::TypeBits;

use crate::index::{IndexField, Multikey, RaisedFlags, Sparseness, Truncation};
use crate::{Index, WriteError};

/// One key of a document in an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexKey {
    /// Order-preserving bytes of all fields, one after the other; not yet cut.
    pub fields: Vec<u8>,
    /// What those bytes lose.
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
    let mut expansion =
        Expansion { fields, keys: Vec::with_capacity(1), flags: RaisedFlags::none(fields.len()), sparseness };
    let walks: Vec<Walk<'_>> =
        fields.iter().map(|field| Walk::Inside { document, rest: field.path.as_str() }).collect();
    expansion.expand(walks)?;
    expansion.keys.sort_unstable();
    expansion.keys.dedup_by(|a, b| a.fields == b.fields);
    Ok(DocumentKeys { keys: expansion.keys, flags: expansion.flags })
}

/// How far one path has been followed.
#[derive(Clone, Copy)]
enum Walk<'d> {
    /// Still inside a document, with this much of the path to go.
    Inside { document: &'d RawDocument, rest: &'d str },
    /// Stands before an array, with this much of the path to go beyond it (`None`: the path ends here).
    Before { array: &'d RawArray, rest: Option<&'d str> },
    /// The path has ended at a value.
    Ended(RawValue<'d>),
    /// The path has ended at an empty array.
    EndedEmpty,
    /// The path leads nowhere.
    Nowhere,
}

struct Expansion<'f> {
    fields: &'f [IndexField],
    sparseness: Sparseness,
    keys: Vec<IndexKey>,
    flags: RaisedFlags,
}

impl Expansion<'_> {
    fn expand<'d>(&mut self, mut walks: Vec<Walk<'d>>) -> Result<(), WriteError> {
        for walk in &mut walks {
            *walk = follow(*walk)?;
        }
        let Some(array) = self.common_array(&walks)? else {
            return self.emit(&walks);
        };
        let mut any = false;
        for element in array.iter() {
            any = true;
            let element = element?;
            self.expand(walks.iter().map(|walk| enter(*walk, element)).collect())?;
        }
        if !any {
            let emptied = walks.iter().map(|walk| leave_empty(*walk)).collect();
            self.expand(emptied)?;
        }
        Ok(())
    }

    /// The one array that paths stand before; an error if there are two, `None` if there is none.
    fn common_array<'d>(&mut self, walks: &[Walk<'d>]) -> Result<Option<&'d RawArray>, WriteError> {
        let mut common: Option<(usize, &'d RawArray)> = None;
        for (at, walk) in walks.iter().enumerate() {
            let Walk::Before { array, .. } = walk else { continue };
            self.flags.multikey[at] = Multikey::Yes;
            match common {
                None => common = Some((at, array)),
                Some((_, have)) if std::ptr::eq(have, *array) => {}
                Some((first, _)) => {
                    return Err(WriteError::ParallelArrays {
                        first: last_component(&self.fields[first].path).to_owned(),
                        second: last_component(&self.fields[at].path).to_owned(),
                    });
                }
            }
        }
        Ok(common.map(|(_, array)| array))
    }

    fn emit(&mut self, walks: &[Walk<'_>]) -> Result<(), WriteError> {
        let present = walks.iter().any(|walk| matches!(walk, Walk::Ended(_) | Walk::EndedEmpty));
        if !present && self.sparseness == Sparseness::Sparse {
            return Ok(());
        }
        let mut key = Vec::with_capacity(32);
        let mut type_bits = TypeBits::new();
        for (walk, field) in walks.iter().zip(self.fields) {
            let value = match walk {
                Walk::Ended(value) => *value,
                Walk::EndedEmpty => {
                    pando_keyorder::encode_empty_array(field.direction, &mut key);
                    continue;
                }
                Walk::Nowhere => RawValue::Null,
                Walk::Inside { .. } | Walk::Before { .. } => {
                    unreachable!("paths are followed to their ends before a key is emitted")
                }
            };
            pando_keyorder::encode(value, field.direction, &mut key, &mut type_bits);
        }
        self.keys.push(IndexKey { fields: key, type_bits: type_bits.as_bytes().to_vec() });
        Ok(())
    }
}

/// Follows a path down through documents until it ends, leads nowhere or meets an array.
fn follow(mut walk: Walk<'_>) -> Result<Walk<'_>, WriteError> {
    while let Walk::Inside { document, rest } = walk {
        let (name, beyond) = split(rest);
        walk = match (document.get(name)?, beyond) {
            (None, _) => Walk::Nowhere,
            (Some(RawValue::Document(inner)), Some(rest)) => Walk::Inside { document: inner, rest },
            (Some(RawValue::Array(array)), Some(rest)) => follow_position(array, rest)?,
            (Some(RawValue::Array(array)), None) => Walk::Before { array, rest: None },
            (Some(value), None) => Walk::Ended(value),
            (Some(_), Some(_)) => Walk::Nowhere,
        };
    }
    Ok(walk)
}

/// A path that meets an array with a position next (`a.0`) goes to that element and not through all of them.
fn follow_position<'d>(array: &'d RawArray, rest: &'d str) -> Result<Walk<'d>, WriteError> {
    let (name, beyond) = split(rest);
    let is_position = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    if !is_position {
        return Ok(Walk::Before { array, rest: Some(rest) });
    }
    Ok(match (array.as_document().get(name)?, beyond) {
        (None, _) => Walk::Before { array, rest: Some(rest) },
        (Some(RawValue::Document(inner)), Some(rest)) => Walk::Inside { document: inner, rest },
        (Some(RawValue::Array(inner)), Some(rest)) => follow_position(inner, rest)?,
        (Some(RawValue::Array(inner)), None) => Walk::Before { array: inner, rest: None },
        (Some(value), None) => Walk::Ended(value),
        (Some(_), Some(_)) => Walk::Nowhere,
    })
}

/// Puts an element of the array in the place of a path that stands before it.
fn enter<'d>(walk: Walk<'d>, element: RawValue<'d>) -> Walk<'d> {
    match (walk, element) {
        (Walk::Before { rest: None, .. }, element) => Walk::Ended(element),
        (Walk::Before { rest: Some(rest), .. }, RawValue::Document(document)) => {
            Walk::Inside { document, rest }
        }
        // An array within an array is not gone through, and a scalar has no fields.
        (Walk::Before { rest: Some(_), .. }, _) => Walk::Nowhere,
        (finished, _) => finished,
    }
}

/// What a path that stands before an empty array comes to.
fn leave_empty(walk: Walk<'_>) -> Walk<'_> {
    match walk {
        Walk::Before { rest: None, .. } => Walk::EndedEmpty,
        Walk::Before { rest: Some(_), .. } => Walk::Nowhere,
        finished => finished,
    }
}

/// The first component of a path, and what follows it.
fn split(path: &str) -> (&str, Option<&str>) {
    match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    }
}

fn last_component(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Whether flags need raising at all: most documents raise none.
pub(crate) fn raises_any(flags: &RaisedFlags) -> bool {
    flags.truncated == Truncation::Truncated || flags.multikey.contains(&Multikey::Yes)
}

#[cfg(test)]
mod tests;
