//! The executor: makes documents of a plan, a collection and a transaction, one at a time.
//!
//! # Terms
//! - *Candidate*: a document (or, of a covered plan, an index entry made into one) that the access has found.
//! - *Row*: a candidate that is part of the answer: primary key and document.
//! - *Run*: a row that stands for equal rows behind it as well. Equal they are in what the plan looks at:
//!   entries with the same field bytes of a covered plan; all documents, where only their number is wanted.
//! - *Work budget*: the number of entries that a call with `CachedOnly` examines before it gives the thread
//!   back.
//!
//! # Steps of [`Executor::next`]
//! 1. The [`source`] steps to the next document or index entry; a document that came already is passed over.
//! 2. An entry's document is fetched, unless the plan is covered. Where the order does not matter, some
//!    thousand documents are fetched in the order of their keys ([`gathered_keys`]).
//! 3. The residual filter is asked.
//! 4. With a sort in memory, all candidates go into the sorter first, and rows come out of it.
//! 5. `skip` and `limit` are counted.
//!
//! # Invariants
//! - After `WouldBlock` nothing is lost or repeated: the same call with `MayBlock` goes on at the same entry.
//! - An executor owns all that it needs and is `Send`; the transaction is given at each call, and must be the
//!   same one.
//!
//! # Not here
//! Projections, which commands apply to rows; batches and cursors (crate `commands`);
//! writing (crate `catalog`).

mod counters;
mod entries;
mod entry_document;
mod entry_estimates;
mod executor;
mod gathered_keys;
mod intersected_scans;
mod key_ranges;
mod merged_scans;
mod near_ring;
mod near_search;
mod picking;
mod row;
mod source;
mod text_source;

pub use counters::{Counters, ExecutionFigures};
pub use entry_estimates::EntryEstimates;
pub use executor::{BatchEnd, Executor};
pub use near_search::nearest;
pub use row::{Row, Run};
pub use source::primary_range;
