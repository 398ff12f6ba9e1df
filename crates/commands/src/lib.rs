//! One file per command: requests and replies, cursors, sessions and MongoDB's error codes.
//!
//! A [`Request`] is a command document with its document sequences; the answer is one BSON document, written into the caller's
//! buffer. Nothing here knows sockets (crate `server`), and nothing below knows MongoDB's error codes: they stand in
//! [`error_code`], and [`error`] maps every error of the layers below to one.
//!
//! # The life of a request
//! 1. [`Commands::handle`] takes the first field's name as the command and finds it in the [`registry`].
//! 2. The command checks its fields ([`arguments`]), does its work on the catalog and the query layer, and writes its reply.
//! 3. With [`BlockingMode::CachedOnly`] it may answer [`Handled::WouldBlock`] instead: nothing has changed, and the same request is
//!    to be handled again on a thread that may wait.
//! 4. A write whose client asked for the device ([`Durability::Synced`]) answers with [`ReplyWhen::Durable`]: the reply is ready, and is
//!    to be sent when the log has reached it. No thread sleeps for that.
//!
//! # Invariants
//! - A reply document is always complete: on an error, what a command had written of its reply is taken back first.
//! - A command either has its whole effect or, where MongoDB's own commands are not atomic (ordered batches), says how far it got.
//!
//! # Not here
//! Users and authentication; multi-statement transactions (transaction numbers are refused as a standalone refuses them).

mod admin;
pub mod arguments;
mod commands;
mod connection;
mod context;
mod crud;
mod cursor_reply;
mod cursors;
mod diagnostic;
pub mod error;
pub mod error_code;
mod generic_arguments;
mod identity;
mod operation_counters;
mod parked;
mod query_codes;
mod read_concern;
mod registry;
mod request;
mod session;
mod write_concern;

pub use commands::{Commands, CommandsOptions, DurabilityWait, Handled, ReplyWhen};
pub use connection::ConnectionState;
pub use cursors::CursorTimeout;
pub use error::{CommandError, Failure};
pub use error_code::ErrorCode;
pub use identity::{MAX_WIRE_VERSION, MONGODB_VERSION, PANDO_VERSION};
pub use pando_catalog::restore_emulated_backup;
pub use pando_catalog::{
    BlockingMode, CatalogError, CollectionReport, Durability, Engine, SharedEngine, Statistics, StorageError,
    verify_collection,
};
pub use request::{DocumentSequence, Request};
