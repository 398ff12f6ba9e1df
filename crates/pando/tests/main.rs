//! All tests of this crate from outside, one program: each program of its own would be linked anew.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod collection;
mod compatibility;
mod embedded;
mod housekeeping;
mod many_documents;
mod processes;
mod query_memory;
mod refused_parts;
mod run_command;
mod statement_batches;
mod suspended_finds;
mod transactions;
mod wiredtiger;
