//! MongoDB's commands, one file each, with requests and replies, cursors, sessions and MongoDB's error codes.
//!
//! A [`Request`] is a command document with its document sequences. The answer is one BSON document, written
//! into the caller's buffer. This crate does not know sockets (crate `server`). Every error ends as an
//! [`ErrorCode`] and a sentence: an error of a query brings its own, and [`error`] chooses one for the errors
//! of the catalog and the engine, which know none.
//!
//! # The life of a request
//! 1. [`Commands::handle`] reads the fields that every command may have (`generic_arguments.rs`), takes the
//!    name of the first field as the command, and finds its row in `registry.rs`.
//! 2. The function of the command reads its own fields ([`arguments`]), works on the catalog and the query
//!    layer, and writes its fields into the reply.
//! 3. With [`BlockingMode::CachedOnly`] a command may answer [`Handled::WouldBlock`] instead. It has changed
//!    nothing then, and the same request is handled again on a thread that may wait, or after the missed read
//!    was made.
//! 4. A write whose client asked for the device ([`Durability::Synced`]) answers [`Handled::ReplyLater`]. The
//!    reply is ready, and is sent when the log has reached its commit. No thread sleeps for that.
//!
//! # Where to look
//! | folder | commands |
//! |---|---|
//! | `crud/` | those that read and write documents, and `explain` of them |
//! | `admin/` | those that create, list, change and drop databases, collections and indexes |
//! | `diagnostic/` | those that tell what the server is and how it is |
//! | `session/` | those that begin and end sessions |
//!
//! # Invariants
//! - A reply document is always complete: an error takes back the fields that a command had written before
//!   it.
//! - A command has its whole effect or none. Where MongoDB's own commands are not atomic (batches, large
//!   updates), the reply says how far the command came.
//!
//! # Not here
//! Users and authentication. Multi-statement transactions: transaction numbers are refused as a standalone
//! MongoDB refuses them.
//!
//! # Allowed arrows
//! Between the modules of this folder; `cargo xtask layers` refuses any other.
//!
//! ```arrows
//! commands -> connection, context, generic_arguments, registry, shared_state, suspended_find
//! registry -> admin, context, crud, diagnostic, generic_arguments, session
//! crud -> context, cursor_reply, cursors, diagnostic, point_lookup, shared_state, suspended_find
//! admin -> context, cursor_reply, cursors
//! diagnostic -> context
//! session -> context, generic_arguments
//! cursor_reply -> context, cursors
//! context -> connection, cursors, generic_arguments, shared_state
//! shared_state -> connection, cursors
//! connection -> suspended_find
//! suspended_find -> point_lookup
//! request -> arguments, error, error_code
//! arguments -> error, error_code
//! error -> error_code
//! leaves: arguments, command_name, error, error_code, identity, operation_counters, request
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod admin;
pub mod arguments;
mod command_name;
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
mod point_lookup;
mod registry;
mod request;
mod session;
mod shared_state;
mod suspended_find;

pub use commands::{Commands, Handled, ReplyWait};
pub use connection::ConnectionState;
pub use cursors::CursorTimeout;
pub use error::{CommandError, Failure};
pub use error_code::ErrorCode;
pub use identity::{MAX_WIRE_VERSION, MONGODB_VERSION, PANDO_VERSION};
pub use pando_catalog::restore_emulated_backup;
pub use pando_catalog::{
    BlockingMode, CatalogError, CollectionReport, Durability, DurabilityWaker, Engine, ErrorKind,
    SharedEngine, Statistics, StorageError, verify_collection,
};
pub use request::{DocumentSequence, Request};
pub use shared_state::CommandsOptions;
