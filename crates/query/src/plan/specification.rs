//! The input of the planner: a find as plain data.

use pando_collation::TextOrder;
use pando_document::{RawDocument, RawDocumentBuf, RawValue};
use pando_keyorder::Direction;

use crate::filter::Filter;
use crate::metadata::{Metadata, MetadataSet};
use crate::sort::{Sort, SortPattern};
use crate::{ErrorCode, QueryError};

/// A find, parsed.
#[derive(Clone, Copy, Debug)]
pub struct FindSpecification<'a> {
    /// Which documents.
    pub filter: &'a Filter,
    /// In which order.
    pub sort: &'a Sort,
    /// Which fields are looked at once documents are found.
    pub needs: ProjectionNeeds<'a>,
    /// The use of the documents.
    pub consumer: Consumer<'a>,
    /// How many of the first are left out.
    pub skip: u64,
    /// How many are wanted at most; `None` for all.
    pub limit: Option<u64>,
    /// The metadata that documents get.
    pub metadata: MetadataSet,
    /// Which index to take.
    pub hint: Option<&'a Hint>,
    /// The least index key, inclusive.
    pub min: Option<&'a RawDocument>,
    /// The greatest index key, exclusive.
    pub max: Option<&'a RawDocument>,
    /// The order of strings in `min` and `max`.
    pub order: &'a TextOrder,
}

impl<'a> FindSpecification<'a> {
    /// All documents that match, whole, as they come: what updates, deletes and counts ask for.
    pub fn matching(filter: &'a Filter) -> FindSpecification<'a> {
        FindSpecification {
            filter,
            sort: &Sort::Unordered,
            needs: ProjectionNeeds::Everything,
            consumer: Consumer::Documents,
            skip: 0,
            limit: None,
            metadata: MetadataSet::EMPTY,
            hint: None,
            min: None,
            max: None,
            order: &TextOrder::SIMPLE,
        }
    }

    /// Documents to produce before skipping; `None` for all.
    pub(super) fn limit_before_skip(&self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_add(self.skip))
    }

    /// Whether documents get the scores of a search.
    pub(super) fn scores(&self) -> Scores {
        if self.metadata.has(Metadata::TextScore) { Scores::Wanted } else { Scores::Unneeded }
    }

    /// The sort pattern, where there is one.
    pub(super) fn sort_pattern(&self) -> Option<&'a SortPattern> {
        self.sort.pattern()
    }
}

/// The use of the scores of a search for words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scores {
    /// Each document has its score in a field of its own, a hidden one ([`crate::metadata`]).
    Wanted,
    /// Nobody looks at them.
    #[default]
    Unneeded,
}

/// Which fields a projection reads.
#[derive(Clone, Copy, Debug)]
pub enum ProjectionNeeds<'a> {
    /// Whole documents.
    Everything,
    /// Only what stands at these dotted paths, `_id` among them where it is wanted.
    Paths(&'a [String]),
    /// Nothing: a count.
    Nothing,
}

/// The use of the documents that a plan finds.
#[derive(Clone, Copy, Debug)]
pub enum Consumer<'a> {
    /// They are the answer, or something whose answer depends on each and on their order.
    Documents,
    /// Groups of them, in any order, to which a missing field is the same as null. The number of all is one
    /// group.
    Groups,
    /// The different values at this path: one document with each is enough.
    Values(&'a str),
    /// Groups that need only some documents of each. A plan may give all of them as well.
    Ends(&'a GroupEnds),
}

impl Consumer<'_> {
    /// Whether documents need not be sorted for it.
    pub(super) fn sorts_itself(self) -> bool {
        matches!(self, Consumer::Ends(GroupEnds { sorts_itself: true, .. }))
    }

    /// Whether a missing field is the same as null to it, and the order of the documents none of its concern.
    pub(super) fn sees_values_only(self) -> bool {
        match self {
            Consumer::Groups => true,
            Consumer::Documents | Consumer::Values(_) => false,
            Consumer::Ends(ends) => ends.sees_values_only,
        }
    }
}

/// The documents that a `$group` needs: those at the ends of each group, in one order or several.
#[derive(Clone, Debug)]
pub struct GroupEnds {
    /// The path by which documents are grouped; `None` where they are one group.
    pub key: Option<String>,
    /// The order of strings, which says which keys are equal.
    pub order: TextOrder,
    /// The ends, in the order in which their documents have to come. Without any, one document of each group
    /// is enough.
    pub ends: Vec<GroupEnd>,
    /// Whether the order of the documents does not matter, and a missing field is null.
    pub sees_values_only: bool,
    /// Whether the group finds the ends of a sort by itself, so that documents need not be sorted for it.
    pub sorts_itself: bool,
}

/// An end of each group.
#[derive(Clone, Debug)]
pub struct GroupEnd {
    /// The order within the group.
    pub pattern: SortPattern,
    /// Which end of it.
    pub end: End,
    /// Whether documents with null in the first field of the pattern count.
    pub nulls: KeyNulls,
}

/// An end of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its beginning.
    First,
    /// Its last place.
    Last,
}

/// The part of null, undefined and missing values in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyNulls {
    /// They have their place.
    Ordered,
    /// They do not count, as those of `$min` and `$max`. A group that has no other value needs one of them.
    Ignored,
}

/// Which index a request asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    /// By name.
    Name(String),
    /// By key pattern.
    Pattern(RawDocumentBuf),
    /// By name, also a hidden one: for statements of the server itself.
    OfServer(String),
    /// No index: the collection, forwards or backwards.
    Natural(Direction),
}

impl Hint {
    /// Parses the `hint` of a request; an empty document is none.
    pub fn parse(value: RawValue<'_>) -> Result<Option<Hint>, QueryError> {
        match value {
            RawValue::String(name) => Ok(Some(Hint::Name(name.to_owned()))),
            RawValue::Document(document) if document.is_empty() => Ok(None),
            RawValue::Document(document) => match document.get("$natural")? {
                Some(natural) => crate::sort::natural_direction(natural).map(|way| Some(Hint::Natural(way))),
                None => Ok(Some(Hint::Pattern(document.to_owned()))),
            },
            _ => Err(QueryError::new(ErrorCode::FailedToParse, "Hint must be a string or an object")),
        }
    }
}
