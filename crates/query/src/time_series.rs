//! Time series: many measurements of one source in one document, a *bucket*.
//!
//! # Terms
//! - *Measurement*: a document of the user with a time and, as a rule, a meta value that names its source.
//! - *Bucket*: the measurements of one meta value within one window of time, by columns ([`column`]).
//! - *Window*: as many seconds as the collection's option `bucketMaxSpanSeconds`, counted from 1970.
//!
//! ```text
//! { _id: ObjectId(the window's first second …),
//!   control: { version: 1, min: { t: …, v: … }, max: { … }, count: 3 },
//!   meta: …,
//!   data: { t: Binary(a column), v: Binary(a column), … } }
//! ```
//! The shape is that of MongoDB, but for the bytes of a column. Columns of MongoDB that are documents
//! (`{"0": …, "1": …}`) are read as well.
//!
//! # Invariants
//! - `control.min` and `control.max` bound the values of each field in the order of all values, so a filter
//!   on the time can be asked of a bucket first ([`bucket_filter`]).
//! - The `_id` of a bucket begins with the first second of its window, bounded by what 32 bits hold.

pub mod bucket;
mod bucket_filter;
mod bucket_index;
mod column;
mod meta_change;
mod packed_numbers;
#[cfg(test)]
mod tests;
mod time_span;

pub use bucket::{FieldNames, ROWS_MAX, Series, Unpacked};
pub use bucket_filter::bucket_filter;
pub use bucket_index::ORIGINAL_SPECIFICATION;
pub use time_span::TimeSpan;

/// The name of the stage that makes measurements of buckets.
pub const UNPACK_STAGE: &str = "$_internalUnpackBucket";
/// The begin of the names of collections of buckets.
pub const BUCKETS_PREFIX: &str = "system.buckets.";
