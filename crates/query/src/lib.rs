//! The meaning of filters, updates and pipelines: parse, plan, execute.
//!
//! # The life of a find
//! 1. [`filter`] parses the filter document into a tree of tests; [`sort`] and [`projection`] parse theirs.
//! 2. [`plan`] is a pure function: it makes a [`Plan`](plan::Plan) of the parsed request and the
//!    *descriptions* of the collection's indexes. It reads no data, so golden files test it, and [`explain`]
//!    prints it. Between several indexes it asks for [estimates](plan::Estimates), which are given to it.
//! 3. [`execute`] carries the plan out against a transaction: scan → fetch → filter → sort → skip → limit. It
//!    owns all that it needs, and can be asked again with `MayBlock` after `WouldBlock`. The caller projects
//!    the documents.
//!
//! [`update`] changes one document; [`pipeline`] carries out aggregations; [`expression`] is the one
//! evaluator that `$expr`, updates, projections and pipelines share. [`path`] follows dotted paths through
//! raw documents.
//!
//! # Rooms
//! A room is a top module with what lies in its folder. `cargo xtask layers` holds the rooms to these arrows.
//!
//! ```arrows
//! update -> array_sort, expression, filter, memory, partial_index, pipeline
//! explain -> execute, filter, geo_index, memory, plan, sort
//! pipeline -> expression, filter, memory, plan, projection, sort, time_series
//! execute -> filter, geo_index, geometry, memory, plan, sort, text_index
//! plan -> filter, geo_index, geometry, partial_index, regular_expression, sort, text_index, wildcard_index
//! partial_index -> expression, filter, geo_index, text_index, wildcard_index
//! projection -> expression, filter
//! filter -> expression, geometry, regular_expression, text_index
//! geo_index -> geometry
//! sort -> expression, memory
//! expression -> array_sort, date, memory, regular_expression
//! needs -> path
//! path -> error, field_tables
//! merged_fields -> literal
//! nesting -> error
//! metadata -> error
//! leaves: array_build, error, field_tables, hashed_index, identity, literal, merged_fields, metadata, needs
//! leaves: nesting, path, shell_text, value_set
//! ```
//!
//! # Invariants
//! - Every error has MongoDB's code where it is defined: an [`ErrorCode`] with a name,
//!   or a fault with a number.
//! - Hostile input gives an error: no parser recurses deeper than a valid document can nest.
//! - A plan leaves out a sort or a test only if its index bounds imply it.
//!
//! # Not here
//! Key layout and index maintenance (crate `catalog`), cursors and sessions (crate `commands`).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod array_build;
mod array_sort;
mod date;
mod error;
pub mod execute;
pub mod explain;
pub mod expression;
mod field_tables;
pub mod filter;
pub mod geo_index;
pub mod geometry;
pub mod hashed_index;
mod identity;
pub mod literal;
pub mod memory;
mod merged_fields;
pub mod metadata;
pub mod needs;
mod nesting;
pub mod partial_index;
pub mod path;
pub mod pipeline;
pub mod plan;
pub mod projection;
pub mod regular_expression;
pub mod shell_text;
pub mod sort;
pub mod text_index;
pub mod time_series;
pub mod update;
mod value_set;
pub mod wildcard_index;

pub use date::calendar::iso_text;
pub use error::{ErrorCode, QueryError};
