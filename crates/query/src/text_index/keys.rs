//! The keys of a document in a text index: one for each term, with its score, between the values of the other
//! fields of the index.

use md5::{Digest, Md5};
use pando_catalog::index_keys::{GeneratedKeys, IndexKey};
use pando_catalog::index_kind::{KeyGenerator, KeysWithoutArrays};
use pando_catalog::{FieldKind, IndexDescription, WriteError};
use pando_document::{RawDocument, RawValue};
use pando_keyorder::{Direction, TypeBits};

use super::scores;
use super::specification::TextSpecification;

/// Most bytes of the keys of one document.
const KEY_BYTES_MAX: usize = 128 << 20;
/// Bytes of a term from which on a key has its beginning and a hash.
const TERM_BYTES_MAX: usize = 256;

/// The generator of the keys of a text index.
#[derive(Debug)]
pub(crate) struct TextKeys {
    name: String,
    specification: TextSpecification,
    fields: Vec<(String, FieldKind)>,
    directions: Vec<Direction>,
}

impl TextKeys {
    /// The generator of an index by its description; `None` if it is no text index.
    pub fn of(description: &IndexDescription) -> Option<Result<TextKeys, String>> {
        if !description.is_text() {
            return None;
        }
        let specification = match TextSpecification::of(&description.specification) {
            Ok(specification) => specification,
            Err(reason) => return Some(Err(reason)),
        };
        let fields = &description.fields;
        Some(Ok(TextKeys {
            name: description.name.clone(),
            specification,
            fields: fields.iter().map(|field| (field.path.clone(), field.kind)).collect(),
            directions: fields.iter().map(|field| field.direction).collect(),
        }))
    }
}

impl KeyGenerator for TextKeys {
    fn keys(&self, document: &RawDocument) -> Result<GeneratedKeys, WriteError> {
        let mut others = Vec::with_capacity(self.fields.len());
        for (path, kind) in &self.fields {
            let value = if *kind == FieldKind::Value { plain_value(document, path)? } else { None };
            others.push(value.unwrap_or(RawValue::Null));
        }
        let mut keys = Vec::new();
        let mut bytes = 0;
        for (term, score) in scores::of_document(&self.specification, document)? {
            let (mut key, mut type_bits) = (Vec::with_capacity(32), TypeBits::new());
            let term = key_term(&term);
            for (at, (_, kind)) in self.fields.iter().enumerate() {
                let value = match kind {
                    FieldKind::TextTerm => RawValue::String(&term),
                    FieldKind::TextScore => RawValue::Double(score),
                    _ => others[at],
                };
                pando_keyorder::encode(value, self.directions[at], &mut key, &mut type_bits);
            }
            bytes += key.len();
            if bytes > KEY_BYTES_MAX {
                let index = self.name.clone();
                return Err(WriteError::KeysTooLarge { index, bytes_max: KEY_BYTES_MAX });
            }
            keys.push(IndexKey { fields: key, type_bits: type_bits.as_bytes().to_vec() });
        }
        keys.sort_unstable();
        keys.dedup_by(|a, b| a.fields == b.fields);
        Ok(GeneratedKeys { keys, multikey: Vec::new() })
    }

    fn directions(&self) -> &[Direction] {
        &self.directions
    }

    fn without_arrays(&self) -> KeysWithoutArrays {
        KeysWithoutArrays::Any
    }
}

/// The term as keys have it.
pub(super) fn key_term(term: &str) -> std::borrow::Cow<'_, str> {
    use std::fmt::Write as _;
    if term.len() <= TERM_BYTES_MAX {
        return term.into();
    }
    let mut cut = term[..term.floor_char_boundary(TERM_BYTES_MAX - 32)].to_owned();
    for byte in Md5::digest(term.as_bytes()) {
        let _never_fails = write!(cut, "{byte:02x}");
    }
    cut.into()
}

/// The value of a field beside the text, which must not meet an array.
fn plain_value<'d>(document: &'d RawDocument, path: &str) -> Result<Option<RawValue<'d>>, WriteError> {
    let (mut place, mut rest) = (document, path);
    loop {
        let (name, beyond) = match rest.split_once('.') {
            Some((name, beyond)) => (name, Some(beyond)),
            None => (rest, None),
        };
        match (place.get(name)?, beyond) {
            (Some(RawValue::Array(_)), _) => {
                return Err(WriteError::ArrayBesideText { path: path.to_owned() });
            }
            (Some(RawValue::Document(inner)), Some(beyond)) => (place, rest) = (inner, beyond),
            (value, None) => return Ok(value),
            (_, Some(_)) => return Ok(None),
        }
    }
}
