//! Index kinds: the seam between the maintenance of indexes and their meaning.
//!
//! The catalog keeps entries, counters and flags up. It does not know which documents an index has, nor their
//! keys. Two traits say that:
//! - [`IndexPredicate`]: which documents the index has (a partial index has some).
//! - [`KeyGenerator`]: the keys of a document (one a combination of values, a hash, one a word …).
//!
//! # Steps
//! 1. An [`IndexFactory`] makes both from the specification: when an index is created and when the catalog is
//!    opened. [`Catalog::open_with`](crate::Catalog::open_with) gets it.
//! 2. Statements that write, index builds, the first count and the check of a collection ask
//!    [`IndexMethods::keys_of`] for the keys of a document, and know no other way.
//!
//! # Invariants
//! - Keys depend on the document and the specification alone: the keys of an old document are those that it
//!   had when it was written.
//! - Every key of an index has the same number of parts, in the directions that the generator tells. The
//!   reader of an entry finds the primary key behind them.
//!
//! [`OrdinaryIndexes`] makes the indexes over fields in ascending or descending order ([`index_keys`]).

use std::fmt::Debug;
use std::sync::Arc;

use pando_document::RawDocument;
use pando_keyorder::Direction;

use crate::WriteError;
use crate::definition::definition_of;
use crate::index_description::{FieldKind, IndexDescription, Sparseness};
use crate::index_keys::{self, GeneratedKeys, OrdinaryKeys};

/// Says which documents an index has.
pub trait IndexPredicate: Debug + Send + Sync {
    /// Whether the index has entries for a document.
    fn has(&self, document: &RawDocument) -> Result<bool, WriteError>;
}

/// Says which keys a document has in an index.
pub trait KeyGenerator: Debug + Send + Sync {
    /// The keys of a document, sorted and each once, and the arrays that its paths met.
    fn keys(&self, document: &RawDocument) -> Result<GeneratedKeys, WriteError>;

    /// The order of each part of a key.
    fn directions(&self) -> &[Direction];

    /// The keys of a document that has no arrays on the paths.
    fn without_arrays(&self) -> KeysWithoutArrays;
}

/// How many keys a document has as long as its paths meet no array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysWithoutArrays {
    /// Exactly one.
    One,
    /// Any number.
    Any,
}

/// The predicate and the generator of an index.
#[derive(Clone, Debug)]
pub struct IndexMethods {
    /// `None`: the index has all documents.
    pub predicate: Option<Arc<dyn IndexPredicate>>,
    /// The generator.
    pub generator: Arc<dyn KeyGenerator>,
}

impl IndexMethods {
    /// The keys of a document in the index.
    pub fn keys_of(&self, document: &RawDocument) -> Result<GeneratedKeys, WriteError> {
        match &self.predicate {
            Some(predicate) if !predicate.has(document)? => Ok(GeneratedKeys::default()),
            _ => self.generator.keys(document),
        }
    }

    /// Whether a document whose paths meet no array has exactly one key.
    pub(crate) fn has_one_key_without_arrays(&self) -> bool {
        self.predicate.is_none() && self.generator.without_arrays() == KeysWithoutArrays::One
    }
}

/// An index as its specification defines it.
#[derive(Clone, Debug)]
pub struct IndexDefinition {
    /// The description, without flags.
    pub description: IndexDescription,
    /// The methods.
    pub methods: IndexMethods,
}

/// Makes indexes from specifications.
pub trait IndexFactory: Send + Sync {
    /// The index of a specification; `Err` says what is wrong with it.
    fn define(&self, specification: &RawDocument) -> Result<IndexDefinition, String>;
}

/// The factory of ordinary indexes: all documents, over fields in ascending or descending order.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrdinaryIndexes;

impl IndexFactory for OrdinaryIndexes {
    fn define(&self, specification: &RawDocument) -> Result<IndexDefinition, String> {
        let description = definition_of(specification)?;
        if let Some(field) = description.fields.iter().find(|field| field.kind != FieldKind::Value) {
            return Err(format!(
                "the index does not have the value of {}, and is no ordinary one",
                field.path
            ));
        }
        let generator = Arc::new(OrdinaryKeys::new(
            description.fields.clone(),
            description.sparse,
            description.text_order.clone(),
        ));
        Ok(IndexDefinition { description, methods: IndexMethods { predicate: None, generator } })
    }
}

impl KeyGenerator for OrdinaryKeys {
    fn keys(&self, document: &RawDocument) -> Result<GeneratedKeys, WriteError> {
        index_keys::derive(self.fields(), self.sparseness(), self.text_order(), document)
    }

    fn directions(&self) -> &[Direction] {
        self.directions()
    }

    fn without_arrays(&self) -> KeysWithoutArrays {
        match self.sparseness() {
            Sparseness::Sparse => KeysWithoutArrays::Any,
            Sparseness::Dense => KeysWithoutArrays::One,
        }
    }
}
