//! An index: its definition, its methods, its tree, and the flags that documents raise.
//!
//! Not here: logging a flag before it is raised (`flag_log`), building an index (`index_build`), the keys of
//! documents (`index_kind`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pando_collation::TextOrder;
use pando_document::{RawDocument, RawDocumentBuf};
use pando_keyorder::Direction;
use pando_storage::{CommitTimestamp, SnapshotTimestamp, TreeId};

use crate::error::WriteError;
use crate::index_description::{
    EntryContents, IndexDescription, IndexField, RaisedFlags, Sparseness, Truncation, Uniqueness,
};
use crate::index_entry::{self, DecodedEntry, EncodedEntry};
use crate::index_keys::{GeneratedKeys, IndexKey};
use crate::index_kind::{IndexDefinition, IndexMethods};
use crate::multikey::Multikey;
use crate::partitions::{PREFIX_BYTES, Partitions};
use crate::store::{NamedTree, TreeNumber};

/// The document that an entry stands for.
#[derive(Clone, Copy)]
pub(crate) struct Owner<'d> {
    pub primary_key: &'d [u8],
    pub document: &'d RawDocument,
}

/// A secondary index of a collection: its definition, its tree, and the flags that
/// documents set as they come.
///
/// Flags are only ever raised, and are raised (and logged) before the commit of the document that raises
/// them. A reader that takes its snapshot first and reads the flags afterwards therefore never misses an
/// array that it can see.
#[derive(Debug)]
pub struct Index {
    definition: IndexDescription,
    methods: IndexMethods,
    tree: NamedTree,
    /// Those of the collection, if it has any.
    partitions: Option<Arc<Partitions>>,
    /// The bits of each field's [`Multikey`].
    multikey: Vec<AtomicU64>,
    truncated: AtomicBool,
    /// The commit that published it; 0 for one that was there when the catalog was opened.
    published: AtomicU64,
    /// Searches that have read it since the store was opened.
    uses: AtomicU64,
}

impl Index {
    /// An index over a tree; the flags start as the definition has them.
    pub(crate) fn new(
        definition: IndexDefinition,
        tree: NamedTree,
        partitions: Option<Arc<Partitions>>,
    ) -> Index {
        let IndexDefinition { description, methods } = definition;
        assert!(!description.fields.is_empty(), "an index has at least one field");
        assert_eq!(description.fields.len(), description.multikey.len(), "each field has its multikey flags");
        let multikey = description.multikey.iter().map(|flags| AtomicU64::new(flags.bits())).collect();
        let truncated = AtomicBool::new(description.truncated == Truncation::Truncated);
        let published = AtomicU64::new(0);
        let uses = AtomicU64::new(0);
        Index { definition: description, methods, tree, partitions, multikey, truncated, published, uses }
    }

    /// The index's name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Counts a search that reads it.
    pub fn count_use(&self) {
        self.uses.fetch_add(1, Ordering::Relaxed);
    }

    /// Searches that have read it since the store was opened.
    pub fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    /// Its fields.
    pub fn fields(&self) -> &[IndexField] {
        &self.definition.fields
    }

    /// The order of each part of a key.
    pub fn directions(&self) -> &[Direction] {
        self.methods.generator.directions()
    }

    /// The keys of a document.
    pub(crate) fn keys_of(&self, document: &RawDocument) -> Result<GeneratedKeys, WriteError> {
        self.methods.keys_of(document)
    }

    /// The order of strings in its keys.
    pub fn text_order(&self) -> &TextOrder {
        &self.definition.text_order
    }

    /// Whether keys are unique.
    pub fn uniqueness(&self) -> Uniqueness {
        self.definition.unique
    }

    /// Whether documents without the fields are left out.
    pub fn sparseness(&self) -> Sparseness {
        self.definition.sparse
    }

    /// The contents of its entries.
    pub fn contents(&self) -> EntryContents {
        self.definition.contents
    }

    /// The entry of one of a document's keys.
    pub(crate) fn entry(&self, key: &IndexKey, owner: Owner<'_>) -> EncodedEntry {
        let entry = self.entry_key(key, owner.primary_key);
        match self.contents() {
            EntryContents::Copy => {
                let value = index_entry::value_with_document(&entry.value, owner.document.as_bytes());
                EncodedEntry { value, ..entry }
            }
            EntryContents::Reference | EntryContents::Document => entry,
        }
    }

    /// The same without the document.
    pub(crate) fn entry_key(&self, key: &IndexKey, primary_key: &[u8]) -> EncodedEntry {
        let entry = index_entry::encode(self.uniqueness(), &key.fields, &key.type_bits, primary_key);
        entry.behind(self.prefix_of(primary_key).as_ref())
    }

    /// The partitions of its collection, if it has any.
    pub(crate) fn partitions(&self) -> Option<&Arc<Partitions>> {
        self.partitions.as_ref()
    }

    /// The bytes before the keys of a document's entries, in a collection with partitions.
    pub(crate) fn prefix_of(&self, primary_key: &[u8]) -> Option<[u8; PREFIX_BYTES]> {
        Some(self.partitions.as_ref()?.prefix_of(primary_key))
    }

    /// Takes an entry apart; `Err` says what does not fit.
    pub(crate) fn decode_entry<'e>(
        &self,
        key: &'e [u8],
        value: &'e [u8],
    ) -> Result<DecodedEntry<'e>, &'static str> {
        let key = match &self.partitions {
            None => key,
            Some(_) => key.get(PREFIX_BYTES..).ok_or("the key is shorter than the number of a partition")?,
        };
        let (plain, document) = index_entry::split_document(self.contents(), value)?;
        let entry = index_entry::decode(self.uniqueness(), self.directions(), key, plain)?;
        Ok(DecodedEntry { document, ..entry })
    }

    /// The specification as `listIndexes` shows it.
    pub fn specification(&self) -> &RawDocumentBuf {
        &self.definition.specification
    }

    /// Whether the index has all entries that a snapshot sees: not for one from before it was published.
    pub(crate) fn is_usable_at(&self, snapshot: SnapshotTimestamp) -> bool {
        snapshot.sees(self.published())
    }

    pub(crate) fn published(&self) -> CommitTimestamp {
        CommitTimestamp::new(self.published.load(Ordering::Acquire))
    }

    /// Remembers the commit that published it.
    pub(crate) fn set_published(&self, at: CommitTimestamp) {
        self.published.store(at.get(), Ordering::Release);
    }

    /// The tree that holds the entries.
    pub(crate) fn tree(&self) -> TreeId {
        self.tree.id
    }

    /// The engine's name of that tree.
    pub(crate) fn tree_name(&self) -> &str {
        &self.tree.name
    }

    /// The same tree, with the number by which counters go.
    pub(crate) fn named_tree(&self) -> &NamedTree {
        &self.tree
    }

    /// The number by which its counter goes.
    pub(crate) fn number(&self) -> TreeNumber {
        self.tree.number
    }

    /// Whether some document may have no entry, or several.
    pub(crate) fn may_have_surplus(&self) -> bool {
        !self.methods.has_one_key_without_arrays()
            || self.multikey.iter().any(|bits| bits.load(Ordering::Acquire) != 0)
    }

    /// The description with the flags of this moment.
    pub fn describe(&self) -> IndexDescription {
        let mut description = self.definition.clone();
        for (flags, raised) in description.multikey.iter_mut().zip(&self.multikey) {
            *flags = Multikey::of_bits(raised.load(Ordering::Acquire));
        }
        if self.is_truncated() {
            description.truncated = Truncation::Truncated;
        }
        description
    }

    /// Whether some key was cut.
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated.load(Ordering::Acquire)
    }

    /// Whether a flag of `wanted` is not raised yet.
    pub(crate) fn lacks(&self, wanted: &RaisedFlags) -> bool {
        (wanted.truncated == Truncation::Truncated && !self.is_truncated())
            || wanted
                .multikey
                .iter()
                .zip(&self.multikey)
                .any(|(want, have)| !Multikey::of_bits(have.load(Ordering::Acquire)).includes(*want))
    }

    /// Raises the flags, once they are logged.
    pub(crate) fn raise(&self, wanted: &RaisedFlags) {
        for (want, have) in wanted.multikey.iter().zip(&self.multikey) {
            have.fetch_or(want.bits(), Ordering::AcqRel);
        }
        if wanted.truncated == Truncation::Truncated {
            self.truncated.store(true, Ordering::Release);
        }
    }
}
