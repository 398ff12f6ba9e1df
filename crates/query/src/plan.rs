//! The planner: from a parsed find and the descriptions of indexes to a plan. Pure: it reads no data, and is
//! given estimates.
//!
//! # Terms
//! - *Access*: how candidates are found: by `_id`, through one index, through several, or by looking at
//!   all documents.
//! - *Bounds*: intervals of values for each field of an index, see [`interval`].
//! - *Residual*: the part of the filter that the bounds do not settle. Each candidate is tested against it.
//! - *Covered*: entries hold all that is needed, so no document is fetched.
//!
//! # Steps
//! 1. `_id` equal to a plain value is a lookup by `_id`, whatever else the filter says. Where the primary
//!    key has more fields and the filter has values of all, it is a lookup by the primary key
//!    ([`primary_point`]).
//!    A wildcard index is described anew for each path that the filter asks for ([`wildcard`]).
//! 2. The filter's conjunction is taken apart into tests ([`predicates`]); each usable index gets the bounds
//!    that they put on its fields ([`index_bounds`], [`predicate_bounds`]).
//! 3. Each index that narrows the search, or gives the order of the sort, is a candidate, as is the
//!    collection itself. The cheapest by [`cost`] wins ([`selection`]). Between several indexes the storage
//!    engine's [`estimates`] decide.
//! 4. If none narrows but an `$or` has an index for each branch, the union of those scans wins.
//!    With a sort, scans that each give its order are merged ([`merge`]), those of an `$in` as well.
//! 5. A `$group` that needs only the ends of its groups has scans that step from group to group ([`ends`]).
//! 6. Two indexes with a single value each meet at their primary keys, where estimates say that far fewer
//!    documents are fetched then ([`intersection`]).
//! 7. An index filter of the query's shape leaves only the indexes that it allows ([`index_filter`]).
//! 8. `hint`, `min` and `max` leave no choice ([`forced`]), nor does a search for words ([`text`]).
//! 9. In a collection with partitions the scans of indexes keep to those that may have matches
//!    ([`partition_scope`]).
//!
//! # Invariants
//! - A plan finds every document that matches, and none twice.
//! - It leaves a test out only if its index bounds imply it, and a sort only if the scan gives its order.
//! - Hidden, sparse, partial and truncated indexes, and those that met arrays, are used
//!   only as far as that holds.
//!
//! # Not here
//! Carrying a plan out (`execute`), printing one (`explain`).

mod brackets;
mod candidate;
mod cost;
mod ends;
mod estimates;
mod fault;
mod forced;
mod from_index;
mod geo_bounds;
mod implication;
mod index_bounds;
mod index_filter;
mod intersection;
pub mod interval;
mod merge;
mod near;
mod partition_scope;
mod point_lookup;
mod predicate_bounds;
mod predicates;
mod primary_point;
mod query_shape;
mod returned_key;
mod selection;
mod specification;
mod text;
mod union;
mod usable_index;
pub(crate) mod wildcard;

use std::sync::Arc;

use pando_catalog::{Collection, IndexDescription, Layout, SnapshotTimestamp, Truncation};
use pando_collation::TextOrder;
use pando_keyorder::Direction;

pub use estimates::{AssumedShares, Estimates};
pub use fault::PlanFault;
pub use interval::{Cut, Interval, Intervals, Side};
pub use merge::MergeAccess;
pub(crate) use merge::{SortField, merge_key};
pub use near::{NearAccess, NearOutput};
pub use partition_scope::PartitionScope;
pub use point_lookup::{plan_by_id, point_lookup};
pub use query_shape::query_shape;
pub use returned_key::ReturnedKey;
pub use specification::{
    Consumer, End, FindSpecification, GroupEnd, GroupEnds, Hint, KeyNulls, ProjectionNeeds, Scores,
};

pub(crate) use self::near::{cell_bounds, ring_bounds};
use self::usable_index::UsableIndex;
use crate::QueryError;
use crate::filter::Filter;
use crate::literal::Literal;
use crate::sort::{Sort, SortPattern};
use crate::text_index::TextSearch;

/// How a find is carried out.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How candidates are found.
    pub access: Access,
    /// The tests that they still have to pass; `None` if there are none.
    pub residual: Option<Filter>,
    /// Where their fields come from.
    pub coverage: Coverage,
    /// The sort in memory, where the access does not give the order.
    pub sort: Option<SortPattern>,
    /// How many of the first are left out.
    pub skip: u64,
    /// How many are given at most; `None` for all.
    pub limit: Option<u64>,
}

/// How candidates are found.
#[derive(Clone, Debug)]
pub enum Access {
    /// No document can match.
    Nothing,
    /// The document with this `_id`.
    Id(Literal),
    /// All documents, in the order of primary keys or against it.
    Collection(ScanDirection),
    /// The entries of an index within bounds.
    Index(IndexAccess),
    /// The entries of several scans, each document once.
    Union(Vec<IndexAccess>),
    /// The entries of several scans in one order.
    Merge(Box<MergeAccess>),
    /// The documents that have an entry in each of two scans, which are in the order of primary keys.
    Intersection(Box<[IndexAccess; 2]>),
    /// A search for words.
    Text(Box<TextAccess>),
    /// Documents in the order of their distances from a point.
    Near(Box<NearAccess>),
}

/// Which way a scan goes through keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanDirection {
    /// From the least key.
    Forward,
    /// From the greatest key.
    Backward,
}

/// Where a candidate's fields come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// From the document.
    Document,
    /// From the index entry.
    Entry(Nulls),
    /// No field is needed, only that there is a document: rows have an empty one.
    Nothing,
    /// As [`Nothing`](Coverage::Nothing), of all documents: the collection's counter has their number.
    Counter,
}

/// The use of entries with null, which stands for missing fields as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// Their documents are fetched.
    Fetched,
    /// They are taken as null.
    Taken,
}

/// A scan of an index.
#[derive(Clone, Debug)]
pub struct IndexAccess {
    /// The index, as it was when planned.
    pub index: IndexDescription,
    /// Which entries.
    pub bounds: ScanBounds,
    /// Which way.
    pub direction: ScanDirection,
    /// In a collection with partitions: which of them. `None` for all.
    pub partitions: Option<Arc<PartitionScope>>,
    /// Which of the entries within the bounds it gives.
    pub picks: Picks,
}

/// Which of the entries within its bounds a scan gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picks {
    /// All of them.
    Every,
    /// The first of each combination of values of so many first fields. Of no field it is the first of all.
    FirstOfEach {
        /// The number of fields.
        fields: usize,
        /// The field in which null and undefined do not count: the scan gives one entry with such a value,
        /// and goes on to the next value in it.
        valued: Option<usize>,
    },
}

/// A search for words in a text index.
#[derive(Clone, Debug)]
pub struct TextAccess {
    /// The index, as it was when planned.
    pub index: IndexDescription,
    /// By field, in the field's direction; all terms.
    pub bounds: Vec<Intervals>,
    /// The search.
    pub search: Arc<TextSearch>,
    /// Whether documents get their scores.
    pub scores: Scores,
    /// The scans of the other branches of an `$or`.
    pub others: Vec<IndexAccess>,
}

/// Which entries of an index a scan is about.
#[derive(Clone, Debug)]
pub enum ScanBounds {
    /// By field, in the field's direction.
    Fields(Vec<Intervals>),
    /// From `min` (inclusive) to `max` (exclusive), of all fields at once.
    Keys {
        /// Field bytes of the least key.
        min: Option<Vec<u8>>,
        /// Field bytes of the first key beyond.
        max: Option<Vec<u8>>,
    },
}

impl IndexAccess {
    /// Whether it steps from value to value.
    pub fn is_distinct(&self) -> bool {
        self.picks != Picks::Every
    }

    /// Whether one document may turn up at several entries.
    pub fn gives_duplicates(&self) -> bool {
        if let (Some(at), ScanBounds::Fields(fields)) = (self.index.wildcard_path(), &self.bounds)
            && !wildcard::is_one_path(&fields[at])
        {
            return true;
        }
        let is_one_key = match &self.bounds {
            ScanBounds::Fields(fields) => {
                fields.iter().all(|field| field.is_points() && field.list().len() == 1)
            }
            ScanBounds::Keys { .. } => false,
        };
        // Bounds longer than cut keys are widened, and then may overlap.
        self.index.truncated == Truncation::Truncated || (self.index.is_multikey() && !is_one_key)
    }
}

impl Plan {
    /// Whether its scans step from value to value.
    pub fn is_distinct(&self) -> bool {
        match &self.access {
            Access::Index(scan) => scan.is_distinct(),
            Access::Union(scans) => scans.iter().all(IndexAccess::is_distinct),
            Access::Nothing
            | Access::Id(_)
            | Access::Collection(_)
            | Access::Merge(_)
            | Access::Intersection(_)
            | Access::Text(_)
            | Access::Near(_) => false,
        }
    }

    /// Whether candidates are found in the order of `_id` or of an index, so that results
    /// are not all held in memory.
    pub fn is_streaming(&self) -> bool {
        self.sort.is_none()
    }

    /// Whether what is left out is not even fetched: nothing is asked of documents, and nothing sorts them.
    pub fn skips_before_fetching(&self) -> bool {
        self.sort.is_none() && self.residual.is_none()
    }

    /// How many documents a sort in memory has to keep; `None` for all.
    pub fn sort_limit(&self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_add(self.skip))
    }
}

/// A plan, and those that lost against it.
#[derive(Clone, Debug)]
pub struct PlanChoice {
    /// The plan to carry out.
    pub plan: Plan,
    /// The other plans through indexes.
    pub rejected: Vec<Plan>,
    /// Whether an index filter restricted the choice.
    pub index_filter: IndexFilterUse,
}

/// Whether an index filter restricts a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexFilterUse {
    /// There is none for the shape of the query.
    Absent,
    /// Only the indexes that it allows could be chosen.
    Applied,
}

impl PlanChoice {
    fn only(plan: Plan) -> PlanChoice {
        PlanChoice { plan, rejected: Vec::new(), index_filter: IndexFilterUse::Absent }
    }
}

/// Plans a find by assumed shares.
///
/// `indexes` are all of the collection, `_id_` among them
/// ([`Collection::describe_indexes`](pando_catalog::Collection)).
///
/// # Errors
/// A hint that fits no index; `min` and `max` that do not fit the hint.
pub fn plan(find: &FindSpecification<'_>, indexes: &[IndexDescription]) -> Result<Plan, QueryError> {
    Ok(choose(find, indexes, &AssumedShares)?.plan)
}

/// Plans a find. Estimates decide between several indexes, where they are known.
///
/// # Errors
/// As for [`plan`].
pub fn choose(
    find: &FindSpecification<'_>,
    indexes: &[IndexDescription],
    estimates: &dyn Estimates,
) -> Result<PlanChoice, QueryError> {
    if let Some((path, near)) = find.filter.near() {
        return near::plan(find, path, near, indexes).map(PlanChoice::only);
    }
    if let Some(plan) = text::plan(find, indexes)? {
        return Ok(PlanChoice::only(plan));
    }
    if let Some(plan) = forced::plan(find, indexes)? {
        return Ok(PlanChoice::only(plan));
    }
    let by_id = || plan_by_id(find, order_of_ids(indexes)?);
    if let Some(plan) = primary_point::plan(find, indexes).or_else(by_id) {
        return Ok(PlanChoice::only(plan));
    }
    let nodes = predicates::conjunction(find.filter);
    let predicates = predicates::of_conjunction(nodes);
    let indexes = wildcard::described(indexes, nodes);
    let ordered = indexes.iter().filter(|index| !index.is_text());
    let usable: Vec<UsableIndex<'_>> = ordered.filter_map(UsableIndex::of).collect();
    let mut candidates: Vec<candidate::Candidate> = usable
        .iter()
        .filter(|index| index.has_all_matches(nodes, &predicates))
        .map(|index| index.description)
        .filter_map(|index| candidate::of_index(find, nodes, &predicates, index))
        .collect();
    let narrowed = candidates.iter().any(|candidate| candidate.narrows);
    if !narrowed {
        candidates.extend(union::of_branches(find, nodes, &usable, estimates));
        candidates.extend(union::merge_of_branches(find, nodes, &usable, estimates));
    }
    candidates.push(candidate::of_collection(find));
    let conjunction = candidate::Conjunction { find, nodes, predicates: &predicates };
    Ok(selection::of(&conjunction, candidates, estimates))
}

/// The order of strings in the keys of `_id`: that of its index, where that may be used.
fn order_of_ids(indexes: &[IndexDescription]) -> Option<&TextOrder> {
    let of_id =
        indexes.iter().find(|index| matches!(index.fields.as_slice(), [field] if field.path == "_id"));
    of_id.map(|index| &index.text_order)
}

/// Plans a find against the indexes of a collection that a snapshot may use. A search by `_id` needs no
/// description of them, and no estimates.
///
/// # Errors
/// As for [`plan`].
pub fn plan_at(
    find: &FindSpecification<'_>,
    collection: &Collection,
    snapshot: SnapshotTimestamp,
    estimates: &dyn Estimates,
) -> Result<Plan, QueryError> {
    Ok(choose_at(find, collection, snapshot, estimates)?.plan)
}

/// As [`plan_at`], with the plans that lost.
///
/// # Errors
/// As for [`plan`].
pub fn choose_at(
    find: &FindSpecification<'_>,
    collection: &Collection,
    snapshot: SnapshotTimestamp,
    estimates: &dyn Estimates,
) -> Result<PlanChoice, QueryError> {
    if let Some(filter) = index_filter::of(find, collection) {
        let indexes = collection.describe_indexes_at(snapshot);
        let choice = index_filter::choose_allowed(find, &filter, &indexes, estimates)?;
        return Ok(partition_scope::narrowed(choice, find.filter, collection));
    }
    // A primary key of several fields may have a better plan.
    let by_id = match collection.layout() {
        Layout::Clustered | Layout::Heap => plan_by_id(find, collection.text_order()),
        Layout::Fields(_) => None,
    };
    let choice = match by_id {
        Some(plan) => return Ok(PlanChoice::only(plan)),
        None => choose(find, &collection.describe_indexes_at(snapshot), estimates)?,
    };
    Ok(partition_scope::narrowed(choice, find.filter, collection))
}

/// As [`choose_at`], against all indexes that there are by now.
///
/// # Errors
/// As for [`plan`].
pub fn choose_now(
    find: &FindSpecification<'_>,
    collection: &Collection,
    estimates: &dyn Estimates,
) -> Result<PlanChoice, QueryError> {
    let indexes = collection.describe_indexes();
    let choice = match index_filter::of(find, collection) {
        Some(filter) => index_filter::choose_allowed(find, &filter, &indexes, estimates)?,
        None => choose(find, &indexes, estimates)?,
    };
    Ok(partition_scope::narrowed(choice, find.filter, collection))
}

/// The direction in which a collection scan goes for a `$natural` sort or hint.
fn natural(direction: Direction) -> ScanDirection {
    match direction {
        Direction::Ascending => ScanDirection::Forward,
        Direction::Descending => ScanDirection::Backward,
    }
}

/// The direction of a collection scan for a sort.
fn natural_of(sort: &Sort) -> ScanDirection {
    match sort {
        Sort::Natural(direction) => natural(*direction),
        Sort::Unordered | Sort::By(_) => ScanDirection::Forward,
    }
}
