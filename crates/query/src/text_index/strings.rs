//! The strings of a document that a text index has, each with its language and weight.
//!
//! # Rules (observed on MongoDB 6.0)
//! - A weighted path ends at a string, or at an array whose elements are strings. An array within an array
//!   has none.
//! - With the wildcard all strings count, those in arrays within arrays too, but for the names of languages.
//! - A document's field for the language is that of all below, where the index looks.

use pando_catalog::WriteError;
use pando_document::{RawArray, RawDocument, RawValue};

use super::language::Language;
use super::specification::TextSpecification;

/// The weight of a field that has none of its own.
const WEIGHT_DEFAULT: f64 = 1.0;

/// A string of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexedString<'d> {
    pub text: &'d str,
    pub language: Language,
    pub weight: f64,
}

/// Calls `take` with each string, until it breaks off by an error.
pub(super) fn for_each<'d>(
    specification: &TextSpecification,
    document: &'d RawDocument,
    take: &mut dyn FnMut(IndexedString<'d>) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let language = language_of(specification, document, specification.language())?;
    let mut walk = Walk { specification, path: String::new(), take };
    walk.fields(document, language)
}

/// The language of a document within one of another language.
fn language_of(
    specification: &TextSpecification,
    document: &RawDocument,
    outer: Language,
) -> Result<Language, WriteError> {
    match document.get(specification.override_field())? {
        None => Ok(outer),
        Some(RawValue::String(name)) => {
            Language::of(name).ok_or_else(|| WriteError::TextLanguage { language: Some(name.to_owned()) })
        }
        Some(_) => Err(WriteError::TextLanguage { language: None }),
    }
}

/// The use of a path.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// Its strings have this weight.
    Strings(f64),
    /// Only strings below it count.
    Below,
}

struct Walk<'w, 'd> {
    specification: &'w TextSpecification,
    path: String,
    take: &'w mut dyn FnMut(IndexedString<'d>) -> Result<(), WriteError>,
}

impl<'d> Walk<'_, 'd> {
    fn fields(&mut self, document: &'d RawDocument, language: Language) -> Result<(), WriteError> {
        for field in document {
            let (name, value) = field?;
            if self.specification.is_wildcard() && name == self.specification.override_field() {
                continue;
            }
            let before = self.path.len();
            if before > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            if let Some(found) = self.use_of_path() {
                match value {
                    RawValue::Array(array) => self.array(array, found, language)?,
                    value => self.value(value, found, language)?,
                }
            }
            self.path.truncate(before);
        }
        Ok(())
    }

    fn use_of_path(&self) -> Option<Use> {
        let specification = self.specification;
        match specification.weight(&self.path) {
            Some(weight) => Some(Use::Strings(weight)),
            None if specification.is_wildcard() => Some(Use::Strings(WEIGHT_DEFAULT)),
            None => specification.has_weights_below(&self.path).then_some(Use::Below),
        }
    }

    fn array(&mut self, array: &'d RawArray, found: Use, language: Language) -> Result<(), WriteError> {
        for element in array {
            match element? {
                RawValue::Array(inner) if self.specification.is_wildcard() => {
                    self.array(inner, found, language)?;
                }
                RawValue::Array(_) => {}
                value => self.value(value, found, language)?,
            }
        }
        Ok(())
    }

    fn value(&mut self, value: RawValue<'d>, found: Use, language: Language) -> Result<(), WriteError> {
        match (value, found) {
            (RawValue::String(text), Use::Strings(weight)) => {
                (self.take)(IndexedString { text, language, weight })
            }
            (RawValue::Document(inner), found) if found == Use::Below || self.specification.is_wildcard() => {
                let language = language_of(self.specification, inner, language)?;
                self.fields(inner, language)
            }
            _ => Ok(()),
        }
    }
}
