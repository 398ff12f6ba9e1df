//! What filters, updates and pipelines mean: parse, plan, execute.
//!
//! # The life of a find
//! 1. [`filter`] parses the filter document into a tree of tests; [`sort`] and [`projection`] parse theirs.
//! 2. [`plan`] is a pure function: from the parsed request and the *descriptions* of the collection's indexes to a
//!    [`Plan`](plan::Plan). It reads no data, so golden files test it, and `explain` prints it.
//! 3. [`execute`] carries the plan out step by step against a transaction: scan → fetch → filter → sort → skip → limit →
//!    project. It owns all that it needs, can move between threads, and can be asked again with `MayBlock` after
//!    `WouldBlock`.
//!
//! [`update`] changes one document; [`pipeline`] carries out aggregations; [`expression`] is the one evaluator that `$expr`,
//! updates, projections and pipelines share. [`path`] follows dotted paths through raw documents.
//!
//! # Invariants
//! - Every error has MongoDB's code where it is defined: an [`ErrorCode`] with a name, or a fault with a number.
//! - Hostile input gives an error: no parser recurses deeper than a valid document can nest.
//! - What a plan leaves out (a sort, a filter) is implied by its index bounds, never by luck.
//!
//! # Not here
//! Key layout and index maintenance (crate `catalog`), cursors and sessions (crate `commands`).

mod array_build;
mod calendar;
mod date_text;
mod error;
pub mod execute;
pub mod expression;
pub mod filter;
mod identity;
pub mod path;
pub mod pipeline;
pub mod plan;
pub mod projection;
pub mod shell_text;
pub mod sort;
mod time_zone;
pub mod update;

pub use error::{ErrorCode, QueryError};
