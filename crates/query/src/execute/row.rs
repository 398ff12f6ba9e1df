//! Rows: the documents of an answer, one by one or several equal ones at once.

use pando_document::RawDocument;

/// A row of the answer.
#[derive(Clone, Copy, Debug)]
pub struct Row<'e> {
    /// The document's primary key.
    pub primary_key: &'e [u8],
    /// The document; of a covered plan the indexed fields.
    pub document: &'e RawDocument,
}

impl Row<'static> {
    /// A row of which nothing is looked at.
    pub(super) fn empty() -> Row<'static> {
        Row { primary_key: &[], document: RawDocument::empty() }
    }
}

/// A row that stands for several.
#[derive(Clone, Copy, Debug)]
pub struct Run<'e> {
    /// The first of them.
    pub row: Row<'e>,
    /// How many documents it stands for: as far as the plan looks at them they are equal.
    pub documents: u64,
}
