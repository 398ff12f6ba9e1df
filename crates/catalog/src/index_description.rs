//! The description of an index: plain data about it, and the flags that documents raise.
//!
//! A *flag* records a fact about the documents that plans must know: a path met an array ([`Multikey`]), or a
//! key was too long and was cut (*truncated*). Flags are raised and never taken back.

use pando_collation::TextOrder;
use pando_document::RawDocumentBuf;
use pando_keyorder::Direction;

use crate::multikey::Multikey;

/// Whether a key may stand in an index once only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uniqueness {
    /// At most one document a key.
    Unique,
    /// Any number.
    NotUnique,
    /// Those that were there may share a key; writes add no further. The entries are those of an index that
    /// is not unique.
    Prepared,
}

impl Uniqueness {
    /// Whether the key of an entry ends with the primary key of its document.
    pub(crate) fn has_primary_key_in_key(self) -> bool {
        match self {
            Uniqueness::Unique => false,
            Uniqueness::NotUnique | Uniqueness::Prepared => true,
        }
    }
}

/// Whether documents without the indexed fields stand in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparseness {
    /// Documents that have none of the fields are left out.
    Sparse,
    /// Every document has an entry; a missing field counts as null.
    Dense,
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

/// The contents of an index's entries besides the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryContents {
    /// The primary key of the document.
    Reference,
    /// The document itself: the index is the collection's primary tree.
    Document,
    /// The primary key and a copy of the document: the index was asked for with `clustering: true`.
    Copy,
}

/// One field of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexField {
    /// The dotted path.
    pub path: String,
    /// Its order.
    pub direction: Direction,
    /// The part of a key that stands for it.
    pub kind: FieldKind,
}

/// The part of an index key that stands for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Its value.
    Value,
    /// The hash of its value.
    Hashed,
    /// Two parts: the path of any field below, and its value. `a.$**` is the field of all below `a`.
    Wildcard,
    /// The path of such a field, where a description is about one path or a part of them. The value is the
    /// next field.
    WildcardPath,
    /// A term of a text index.
    TextTerm,
    /// The score of that term.
    TextScore,
    /// The numbers of the cells on the sphere that hold its geometry.
    Sphere,
    /// The hash of the place of its point in a grid of the plane.
    Plane,
}

impl FieldKind {
    /// Whether the part stands for a geometry.
    pub fn is_geometry(self) -> bool {
        matches!(self, FieldKind::Sphere | FieldKind::Plane)
    }
}

/// The name of the wildcard, and the last component of the field of an index of all fields below another.
pub const WILDCARD: &str = "$**";

/// Whether a field of a key pattern stands for all fields below another, or of the document.
pub fn is_wildcard(path: &str) -> bool {
    path.strip_suffix(WILDCARD).is_some_and(|before| before.is_empty() || before.ends_with('.'))
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
    /// Where arrays were met, by field; as long as `fields`.
    pub multikey: Vec<Multikey>,
    /// Whether keys were cut.
    pub truncated: Truncation,
    /// Whether the planner may use it.
    pub hidden: Visibility,
    /// The contents of its entries.
    pub contents: EntryContents,
    /// The order of strings in its keys.
    pub text_order: TextOrder,
    /// The specification as `listIndexes` shows it.
    pub specification: RawDocumentBuf,
}

impl IndexDescription {
    /// Whether the index is the documents themselves.
    pub fn is_primary(&self) -> bool {
        self.contents == EntryContents::Document
    }

    /// Whether a scan of the index is known to users to give the documents: all but `_id_` that are
    /// documents, or have copies of them.
    pub fn shows_documents(&self) -> bool {
        match self.contents {
            EntryContents::Reference => false,
            EntryContents::Document => self.fields.len() > 1,
            EntryContents::Copy => true,
        }
    }

    /// The field of which keys have the hash.
    pub fn hashed_field(&self) -> Option<&IndexField> {
        self.fields.iter().find(|field| field.kind == FieldKind::Hashed)
    }

    /// Whether it is over the fields that documents happen to have, be it described as a whole or for a path.
    pub fn is_wildcard(&self) -> bool {
        self.fields.iter().any(|field| matches!(field.kind, FieldKind::Wildcard | FieldKind::WildcardPath))
    }

    /// Whether it is over the words of strings.
    pub fn is_text(&self) -> bool {
        self.fields.iter().any(|field| field.kind == FieldKind::TextTerm)
    }

    /// Where the path stands in a key, if the description is about paths of a wildcard index.
    pub fn wildcard_path(&self) -> Option<usize> {
        self.fields.iter().position(|field| field.kind == FieldKind::WildcardPath)
    }

    /// Whether it is an index of geometries. Such an index has only documents that have one.
    pub fn is_of_geometries(&self) -> bool {
        self.fields.iter().any(|field| field.kind.is_geometry())
    }

    /// Whether any field has met an array.
    pub fn is_multikey(&self) -> bool {
        self.multikey.iter().any(|multikey| multikey.has_arrays())
    }

    /// Sets the flags that a document raises.
    pub(crate) fn raise(&mut self, flags: &RaisedFlags) {
        for (have, want) in self.multikey.iter_mut().zip(&flags.multikey) {
            *have = have.union(*want);
        }
        if flags.truncated == Truncation::Truncated {
            self.truncated = Truncation::Truncated;
        }
    }
}

/// The flags that one document raises in one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RaisedFlags {
    /// Where each field met an array.
    pub multikey: Vec<Multikey>,
    /// Whether a key was cut.
    pub truncated: Truncation,
}

impl IndexDescription {
    /// Its flags.
    pub(crate) fn raised(&self) -> RaisedFlags {
        RaisedFlags { multikey: self.multikey.clone(), truncated: self.truncated }
    }
}

impl RaisedFlags {
    /// Whether there is a flag at all: most documents raise none.
    pub fn any(&self) -> bool {
        self.truncated == Truncation::Truncated || self.multikey.iter().any(|flag| flag.has_arrays())
    }
}
