//! Sorting: the pattern, the key of a document, and the sorter of documents.
//!
//! # Terms
//! - *Pattern*: paths with directions, `{ a: 1, "b.c": -1 }`.
//! - *Sort key*: order-preserving bytes; documents compare as their keys do under `memcmp`, descending parts
//!   inverted. See [`key`] for what arrays and missing fields come to.
//!
//! # Not here
//! When a sort is needed at all (`plan`), the `$sort` of `$push` (`update`).

mod document_sorter;
mod fault;
mod key;
mod least;
mod pattern;
mod sorter;
#[cfg(test)]
mod tests;

pub use document_sorter::DocumentSorter;
pub use fault::SortFault;
pub(crate) use pattern::natural_direction;
pub use pattern::{Sort, SortPart, SortPattern};
pub(crate) use sorter::Check;
pub use sorter::{Sorted, Sorter};
