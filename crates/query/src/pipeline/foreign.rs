//! Searches in other collections than the one of a pipeline: the ways to their documents, and the work.

use std::collections::BTreeSet;

/// How documents of another collection are found by the values at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignAccess {
    /// The way to them.
    pub by: ForeignPath,
    /// Documents of the collection, where they are counted.
    pub documents: Option<u64>,
    /// Whether many searches are better made at once.
    pub search: ForeignSearch,
}

/// The cost of searches by an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignSearch {
    /// That of the pages that are read.
    #[default]
    ByPages,
    /// That of requests over a network: one search for the values of many documents takes fewer than one for
    /// each.
    ByRequests,
}

/// The way to the documents of another collection with some values at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignPath {
    /// All documents are read.
    #[default]
    Scan,
    /// An index begins with the path.
    Index,
}

/// The work of searches in other collections, for `explain`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Searches {
    /// Index entries stepped over, and lookups by primary key.
    pub keys_examined: u64,
    /// Documents looked at.
    pub documents_examined: u64,
    /// Searches that read all documents.
    pub collection_scans: u64,
    /// The names of the indexes of the others.
    pub indexes: BTreeSet<String>,
}

impl Searches {
    /// Adds later searches.
    pub fn add(&mut self, later: Searches) {
        self.keys_examined += later.keys_examined;
        self.documents_examined += later.documents_examined;
        self.collection_scans += later.collection_scans;
        self.indexes.extend(later.indexes);
    }
}
