//! sysbench: its documents, and its transaction of 18 statements (part B of the specification).
//!
//! - [`documents`]: the documents and collections, which `point` uses, too.
//! - [`loading`]: fills the collections.
//! - [`mix`]: which statements a transaction has, with which keys: the same for every target.
//! - [`mongo`]: the statements over MongoDB's protocol; [`wrapping`]: what makes them one transaction, where
//!   that is asked for. `tools/bench-mysql` has the same over MySQL's protocol.
//! - [`workload`]: the whole, for the frame.
//! - [`columns`]: the columns of sysbench-mongodb.

pub(crate) mod columns;
pub mod documents;
pub mod loading;
pub mod mix;
pub(crate) mod mongo;
pub mod workload;
pub(crate) mod wrapping;

#[cfg(test)]
mod tests;
