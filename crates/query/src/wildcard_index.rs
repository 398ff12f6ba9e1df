//! Wildcard indexes: the fields that such an index has, and the keys of a document in it.
//!
//! # Keys
//! A key has the path of a field and the field's value. A *compound* index has the values of regular fields
//! before or behind the two.
//! - Nested documents are followed to their leaves, and the elements of arrays to theirs. The path of an
//!   element is that of its array.
//! - An empty array stands as such. An array within an array is a value.
//! - A document without leaves stands as `{}`: an empty one, and one whose fields are all left out. So the
//!   value `{}` in a key says only that the document has a document there.
//! - A field whose name has a dot is left out: no query finds it by a path.
//! - A compound index has one key with the wildcard's parts at MinKey for a document that has no other key.
//!
//! # Worked example
//! `{a: [{b: 1}, 5], c: {}}` in `{"$**": 1}` has the keys `("a.b", 1)`, `("a", 5)`, `("c", {})`.
//!
//! # Invariants
//! - Each field of a covered path has a key at the path or below it. A query that asks whether the path
//!   exists finds the document by them.
//! - The index has all documents if it is compound, and else those that have a covered field.

mod projection;

use self::projection::Below;
pub use self::projection::{ProjectionRefusal, WILDCARD_PROJECTION, WildcardPaths};

use pando_catalog::index_entry::FIELD_BYTES_MAX;
use pando_catalog::index_keys::{GeneratedKeys, IndexKey};
use pando_catalog::index_kind::{KeyGenerator, KeysWithoutArrays};
use pando_catalog::{FieldKind, IndexDescription, Multikey, WriteError};
use pando_collation::TextOrder;
use pando_document::{RawArray, RawDocument, RawValue};
use pando_keyorder::{Direction, TypeBits};

/// Most bytes of the keys of one document.
const KEY_BYTES_MAX: usize = 128 << 20;
/// Longest path in a key. A longer one is cut with its key in any case, and a query cannot tell it from
/// others.
const PATH_BYTES_MAX: usize = FIELD_BYTES_MAX;

/// The generator of the keys of a wildcard index.
#[derive(Debug)]
pub(crate) struct WildcardKeys {
    name: String,
    paths: WildcardPaths,
    fields: Vec<Field>,
    directions: Vec<Direction>,
    wildcard: usize,
    order: TextOrder,
}

#[derive(Debug)]
struct Field {
    path: String,
    direction: Direction,
}

impl WildcardKeys {
    /// The generator of an index by its description; `None` if it has no wildcard.
    pub fn of(description: &IndexDescription) -> Option<Result<WildcardKeys, String>> {
        let wildcard = description.fields.iter().position(|field| field.kind == FieldKind::Wildcard)?;
        let paths = match WildcardPaths::of_specification(&description.specification) {
            Ok(paths) => paths,
            Err(refusal) => return Some(Err(refusal.reason)),
        };
        let fields: Vec<Field> = description
            .fields
            .iter()
            .map(|field| Field { path: field.path.clone(), direction: field.direction })
            .collect();
        let mut directions: Vec<Direction> = fields.iter().map(|field| field.direction).collect();
        directions.insert(wildcard, Direction::Ascending);
        Some(Ok(WildcardKeys {
            name: description.name.clone(),
            paths,
            fields,
            directions,
            wildcard,
            order: description.text_order.clone(),
        }))
    }

    fn is_compound(&self) -> bool {
        self.fields.len() > 1
    }
}

impl KeyGenerator for WildcardKeys {
    fn keys(&self, document: &RawDocument) -> Result<GeneratedKeys, WriteError> {
        let mut regular = Vec::with_capacity(self.fields.len());
        for (at, field) in self.fields.iter().enumerate() {
            let value = if at == self.wildcard { None } else { regular_value(document, &field.path)? };
            regular.push(value.unwrap_or(RawValue::Null));
        }
        let mut walk = Walk {
            generator: self,
            regular,
            path: String::new(),
            arrays: Multikey::NO,
            keys: Vec::new(),
            bytes: 0,
        };
        walk.fields(document, self.paths.root(), Depth::Top)?;
        if walk.keys.is_empty() && self.is_compound() {
            walk.push(RawValue::MinKey, Leaf::Value(RawValue::MinKey))?;
        }
        let Walk { mut keys, arrays, .. } = walk;
        keys.sort_unstable();
        keys.dedup_by(|a, b| a.fields == b.fields);
        let multikey = match arrays.has_arrays() {
            true => (0..self.fields.len())
                .map(|at| if at == self.wildcard { arrays } else { Multikey::NO })
                .collect(),
            false => Vec::new(),
        };
        Ok(GeneratedKeys { keys, multikey })
    }

    fn directions(&self) -> &[Direction] {
        &self.directions
    }

    fn without_arrays(&self) -> KeysWithoutArrays {
        KeysWithoutArrays::Any
    }
}

/// The value of a regular field, which must not meet an array.
fn regular_value<'d>(document: &'d RawDocument, path: &str) -> Result<Option<RawValue<'d>>, WriteError> {
    let (mut place, mut rest) = (document, path);
    loop {
        let (name, beyond) = match rest.split_once('.') {
            Some((name, beyond)) => (name, Some(beyond)),
            None => (rest, None),
        };
        match (place.get(name)?, beyond) {
            (Some(RawValue::Array(_)), _) => {
                return Err(WriteError::ArrayBesideWildcard { path: path.to_owned() });
            }
            (Some(RawValue::Document(inner)), Some(beyond)) => (place, rest) = (inner, beyond),
            (value, None) => return Ok(value),
            (_, Some(_)) => return Ok(None),
        }
    }
}

#[derive(Clone, Copy)]
enum Leaf<'d> {
    Value(RawValue<'d>),
    EmptyArray,
}

/// Whether a document is the whole one: paths have no dot before their first component.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Top,
    Inner,
}

struct Walk<'d, 'g> {
    generator: &'g WildcardKeys,
    regular: Vec<RawValue<'d>>,
    path: String,
    arrays: Multikey,
    keys: Vec<IndexKey>,
    bytes: usize,
}

impl<'d> Walk<'d, '_> {
    fn fields(
        &mut self,
        document: &'d RawDocument,
        cover: Below<'_>,
        depth: Depth,
    ) -> Result<(), WriteError> {
        for field in document {
            let (name, value) = field?;
            let Some(cover) = cover.at(name).filter(|_| !name.contains('.')) else { continue };
            let before = self.path.len();
            if depth == Depth::Inner {
                self.path.push('.');
            }
            self.path.push_str(name);
            match value {
                RawValue::Array(array) => self.array(array, cover)?,
                value => self.value(value, cover)?,
            }
            self.path.truncate(before);
        }
        Ok(())
    }

    fn array(&mut self, array: &'d RawArray, cover: Below<'_>) -> Result<(), WriteError> {
        self.arrays = self.arrays.union(Multikey::of_array_path(&self.path));
        if array.is_empty() && cover.has_place() {
            return self.push_leaf(Leaf::EmptyArray);
        }
        array.iter().try_for_each(|element| self.value(element?, cover))
    }

    /// A value that is no array of a document's field.
    fn value(&mut self, value: RawValue<'d>, cover: Below<'_>) -> Result<(), WriteError> {
        match value {
            RawValue::Document(inner) => {
                let before = self.keys.len();
                self.fields(inner, cover, Depth::Inner)?;
                if self.keys.len() == before && cover.has_place() {
                    self.push_leaf(Leaf::Value(RawValue::Document(RawDocument::empty())))?;
                }
                Ok(())
            }
            value if cover.has_place() => self.push_leaf(Leaf::Value(value)),
            _ => Ok(()),
        }
    }

    fn push_leaf(&mut self, leaf: Leaf<'d>) -> Result<(), WriteError> {
        let path = std::mem::take(&mut self.path);
        let outcome = match path.len() > PATH_BYTES_MAX {
            true => {
                let cut = &path[..path.floor_char_boundary(PATH_BYTES_MAX)];
                self.push(RawValue::String(cut), Leaf::Value(RawValue::Null))
            }
            false => self.push(RawValue::String(&path), leaf),
        };
        self.path = path;
        outcome
    }

    fn push(&mut self, path: RawValue<'_>, leaf: Leaf<'_>) -> Result<(), WriteError> {
        let (mut fields, mut type_bits) = (Vec::with_capacity(32), TypeBits::new());
        let order = &self.generator.order;
        for (at, field) in self.generator.fields.iter().enumerate() {
            if at != self.generator.wildcard {
                order.encode(self.regular[at], field.direction, &mut fields, &mut type_bits);
                continue;
            }
            // Names of fields compare by bytes.
            pando_keyorder::encode(path, Direction::Ascending, &mut fields, &mut type_bits);
            match leaf {
                Leaf::Value(value) => {
                    order.encode(value, field.direction, &mut fields, &mut type_bits);
                }
                Leaf::EmptyArray => pando_keyorder::encode_empty_array(field.direction, &mut fields),
            }
        }
        self.bytes += fields.len();
        if self.bytes > KEY_BYTES_MAX {
            let index = self.generator.name.clone();
            return Err(WriteError::KeysTooLarge { index, bytes_max: KEY_BYTES_MAX });
        }
        // Leaves of one long path have one key.
        let key = IndexKey { fields, type_bits: type_bits.as_bytes().to_vec() };
        if self.keys.last() != Some(&key) {
            self.keys.push(key);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
