//! An index: its definition, its tree, and the flags that documents raise.
//!
//! A *flag* records a fact about the documents that plans must know: a field met an array (*multikey*), or a
//! key was too long and was cut (*truncated*). Flags are raised and never taken back.
//!
//! Not here: logging a flag before it is raised (`flag_log`), building an index (`index_build`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pando_document::RawDocumentBuf;
use pando_keyorder::Direction;
use pando_storage::{CommitTimestamp, SnapshotTimestamp, TreeId};

use crate::store::{NamedTree, TreeNumber};

/// Whether a key may stand in an index once only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uniqueness {
    /// At most one document a key.
    Unique,
    /// Any number.
    NotUnique,
}

/// Whether documents without the indexed fields stand in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparseness {
    /// Documents that have none of the fields are left out.
    Sparse,
    /// Every document has an entry; a missing field counts as null.
    Dense,
}

/// Whether a field of an index has met an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multikey {
    /// No document has an array on this path: one entry a document.
    No,
    /// Some document has had one.
    Yes,
}

/// Whether some key was too long and has been cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// All keys are whole: order and bounds are exact.
    Whole,
    /// Some key was cut: plans re-check the filter and re-sort.
    Truncated,
}

/// Whether the planner sees an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// It does.
    Visible,
    /// It does not; the index is kept up all the same.
    Hidden,
}

/// One field of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexField {
    /// The dotted path.
    pub path: String,
    /// Its order.
    pub direction: Direction,
}

/// The description of an index: plain data, enough for a planner.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDescription {
    /// Its name.
    pub name: String,
    /// Its fields, at least one.
    pub fields: Vec<IndexField>,
    /// Whether keys are unique.
    pub unique: Uniqueness,
    /// Whether documents without the fields are left out.
    pub sparse: Sparseness,
    /// Whether arrays were met, by field; as long as `fields`.
    pub multikey: Vec<Multikey>,
    /// Whether keys were cut.
    pub truncated: Truncation,
    /// Whether the planner may use it.
    pub hidden: Visibility,
    /// The specification as `listIndexes` shows it.
    pub specification: RawDocumentBuf,
}

impl IndexDescription {
    /// Whether any field has met an array.
    pub fn is_multikey(&self) -> bool {
        self.multikey.contains(&Multikey::Yes)
    }

    /// Sets the flags that a document raises.
    pub(crate) fn raise(&mut self, flags: &RaisedFlags) {
        for (have, want) in self.multikey.iter_mut().zip(&flags.multikey) {
            if *want == Multikey::Yes {
                *have = Multikey::Yes;
            }
        }
        if flags.truncated == Truncation::Truncated {
            self.truncated = Truncation::Truncated;
        }
    }
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
    /// Of each field; as long as the fields.
    directions: Vec<Direction>,
    tree: NamedTree,
    multikey: Vec<AtomicBool>,
    truncated: AtomicBool,
    /// The commit that published it; 0 for one that was there when the catalog was opened.
    published: AtomicU64,
}

impl Index {
    /// An index over a tree; the flags start as the definition has them.
    pub(crate) fn new(definition: IndexDescription, tree: NamedTree) -> Index {
        assert!(!definition.fields.is_empty(), "an index has at least one field");
        assert_eq!(definition.fields.len(), definition.multikey.len(), "each field has its multikey flag");
        let multikey =
            definition.multikey.iter().map(|flag| AtomicBool::new(*flag == Multikey::Yes)).collect();
        let truncated = AtomicBool::new(definition.truncated == Truncation::Truncated);
        let directions = definition.fields.iter().map(|field| field.direction).collect();
        let published = AtomicU64::new(0);
        Index { definition, directions, tree, multikey, truncated, published }
    }

    /// The index's name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Its fields.
    pub fn fields(&self) -> &[IndexField] {
        &self.definition.fields
    }

    /// The order of each field.
    pub fn directions(&self) -> &[Direction] {
        &self.directions
    }

    /// Whether keys are unique.
    pub fn uniqueness(&self) -> Uniqueness {
        self.definition.unique
    }

    /// Whether documents without the fields are left out.
    pub fn sparseness(&self) -> Sparseness {
        self.definition.sparse
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
        self.sparseness() == Sparseness::Sparse
            || self.multikey.iter().any(|flag| flag.load(Ordering::Acquire))
    }

    /// The description with the flags of this moment.
    pub fn describe(&self) -> IndexDescription {
        let mut description = self.definition.clone();
        for (flag, raised) in description.multikey.iter_mut().zip(&self.multikey) {
            *flag = if raised.load(Ordering::Acquire) { Multikey::Yes } else { Multikey::No };
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
                .any(|(want, have)| *want == Multikey::Yes && !have.load(Ordering::Acquire))
    }

    /// Raises the flags, once they are logged.
    pub(crate) fn raise(&self, wanted: &RaisedFlags) {
        for (want, have) in wanted.multikey.iter().zip(&self.multikey) {
            if *want == Multikey::Yes {
                have.store(true, Ordering::Release);
            }
        }
        if wanted.truncated == Truncation::Truncated {
            self.truncated.store(true, Ordering::Release);
        }
    }
}

/// The flags that one document raises in one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RaisedFlags {
    /// Which fields met an array.
    pub multikey: Vec<Multikey>,
    /// Whether a key was cut.
    pub truncated: Truncation,
}

impl RaisedFlags {
    /// No flag for an index of this many fields.
    pub fn none(fields: usize) -> RaisedFlags {
        RaisedFlags { multikey: vec![Multikey::No; fields], truncated: Truncation::Whole }
    }
}
