//! MongoDB's error codes: the table of the crate `query`, which raises many of them.

pub use pando_query::ErrorCode;
