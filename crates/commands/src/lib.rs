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
//! 5. A statement that needs a key which another transaction has claimed answers [`Handled::Again`]. It waits
//!    in the queue of the key without a thread, and is handled again (`intent_wait.rs`).
//! 6. A request that may wait is listed while it runs (`operations.rs`), and may be interrupted. One that was
//!    slow, or whose database is profiled, is recorded when it ends (`profiler.rs`).
//!
//! # Where to look
//! | folder | commands |
//! |---|---|
//! | `crud/` | those that read and write documents, and `explain` of them |
//! | `admin/` | those that create, list, change and drop databases, collections and indexes |
//! | `diagnostic/` | those that tell what the server is and how it is |
//! | `session/` | those that begin, end and kill sessions, and log users in and out |
//! | `users/` | those of users and roles |
//!
//! # Invariants
//! - A reply document is always complete: an error takes back the fields that a command had written before
//!   it.
//! - A command has its whole effect or none. Where MongoDB's own commands are not atomic (batches, large
//!   updates), the reply says how far the command came.
//!
//! # Allowed arrows
//! Between the modules of this folder; `cargo xtask layers` refuses any other.
//!
//! ```arrows
//! audit -> accounts, operations
//! rights -> operations
//! connection -> audit
//! shared_state -> audit
//! context -> audit
//! commands -> audit
//! commands -> clock_store, connection, connection_transaction, context, default_concerns, departures
//! commands -> durability_wait, fail_points, generic_arguments, housekeeping, write_gate
//! handled -> reply_wait
//! commands -> held_snapshots, operations, profiler, registry, reply_timers, request_notes
//! commands -> open_load, sessions, shared_state, suspended_find
//! commands -> server_counters, system_profile, topology_version, ttl_monitor
//! command_priority -> registry
//! registry -> admin, context, crud, diagnostic, generic_arguments, rights, session, users
//! crud -> admin, generic_arguments, validation, write_gate
//! crud -> connection, context, cursor_facts, cursor_reply, cursors, diagnostic, operations, point_lookup
//! crud -> open_load, reader, request_notes, rights, sessions, shared_state, suspended_find, tail_wait
//! crud -> unit_of_work
//! crud -> cursor_source, views
//! admin -> context, cursor_reply, default_concerns, diagnostic, fail_points, generic_arguments, open_load
//! admin -> rights, sessions, system_profile, validation, views
//! admin -> accounts, unit_of_work
//! default_concerns -> generic_arguments
//! diagnostic -> access, accounts, connection, context, fail_points, generic_arguments, operations, profiler
//! diagnostic -> server_counters, shared_state
//! diagnostic -> cursor_reply, sasl, sessions, snapshot_watch, system_profile, topology_version, validation
//! session -> access, accounts, connection, connection_transaction, context, generic_arguments
//! session -> sasl, sessions
//! sasl -> access, accounts, context
//! users -> accounts, context, unit_of_work
//! access -> accounts
//! commands -> access, diagnostic, rights
//! shared_state -> access
//! durability_wait -> operations
//! intent_wait -> operations, shared_state
//! tail_wait -> cursor_facts, operations, shared_state
//! ttl_monitor -> accounts, connection, context, crud, partition_keeper, shared_state
//! ttl_monitor -> write_gate
//! partition_keeper -> shared_state, write_gate
//! unit_of_work -> connection, context, intent_wait, shared_state
//! cursor_reply -> context, cursor_facts, cursor_source, cursors, operations
//! context -> access, accounts, connection, cursors, generic_arguments, intent_wait, operations, reader
//! context -> request_notes
//! context -> sessions, tail_wait, views
//! context -> held_snapshots, shared_state, system_profile
//! follower -> default_concerns, diagnostic, shared_state
//! commands -> follower
//! housekeeping -> clock_store, departures, sessions, shared_state, snapshot_watch, system_profile
//! snapshot_watch -> shared_state
//! held_snapshots -> operations
//! clock_store -> shared_state
//! system_profile -> shared_state
//! server_counters -> request_notes
//! shared_state -> cursors, default_concerns, departures, fail_points, operations, profiler, reply_timers
//! shared_state -> held_snapshots, server_counters, sessions, write_gate
//! reader -> held_snapshots, sessions
//! sessions -> generic_arguments, held_snapshots, open_load, operations
//! profiler -> operations, request_notes
//! connection -> access, accounts, connection_transaction, intent_wait, open_load, operations
//! connection -> cursor_facts, suspended_find
//! connection_transaction -> generic_arguments, sessions, shared_state
//! legacy -> commands, connection, context
//! cursors -> cursor_facts, cursor_source, operations
//! operations -> cursor_facts
//! request_notes -> cursor_facts
//! suspended_find -> point_lookup
//! point_lookup -> reader
//! validation -> context
//! views -> reader
//! request -> arguments, error, error_code
//! generic_arguments -> stable_api
//! diagnostic -> stable_api
//! arguments -> error, error_code
//! document_stream -> error
//! error -> error_code
//! collation -> error, error_code
//! short_options -> error, error_code
//! pipeline_references -> error
//! session_id -> identity
//! leaves: arguments, chore_figures, cluster_clock, command_name, error, error_code, handled, host_facts
//! leaves: certificate_rotation, collation, server_stop
//! leaves: damage_log, default_layout, document_stream, grid_fs, identity, open_buckets
//! leaves: last_write, log_limiter, log_tail, log_verbosity, operation_counters, persona, reply_wait, request
//! leaves: session_id
//! leaves: pipeline_references, short_options, ttl_state
//! leaves: wait_figures
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod access;
mod accounts;
mod admin;
pub mod arguments;
mod audit;
mod certificate_rotation;
mod chore_figures;
mod clock_store;
mod cluster_clock;
mod collation;
mod command_name;
mod command_priority;
mod commands;
mod connection;
mod connection_transaction;
mod context;
mod crud;
mod cursor_facts;
mod cursor_reply;
mod cursor_source;
mod cursors;
mod damage_log;
mod default_concerns;
mod default_layout;
mod departures;
mod diagnostic;
mod document_stream;
pub mod durability_wait;
mod error;
pub mod error_code;
mod fail_points;
mod follower;
mod generic_arguments;
mod grid_fs;
mod handled;
mod held_snapshots;
mod host_facts;
mod housekeeping;
mod identity;
mod intent_wait;
mod last_write;
mod legacy;
mod log_limiter;
mod log_tail;
mod log_verbosity;
mod open_buckets;
mod open_load;
mod operation_counters;
mod operations;
mod partition_keeper;
mod persona;
mod pipeline_references;
mod point_lookup;
mod profiler;
mod reader;
mod registry;
mod reply_timers;
mod reply_wait;
mod request;
mod request_notes;
mod rights;
mod sasl;
mod server_counters;
mod server_stop;
mod session;
mod session_id;
mod sessions;
mod shared_state;
mod short_options;
mod snapshot_watch;
mod stable_api;
mod suspended_find;
mod system_profile;
mod tail_wait;
mod topology_version;
mod ttl_monitor;
mod ttl_state;
mod unit_of_work;
mod users;
mod validation;
mod views;
mod wait_figures;
mod write_gate;

pub use access::{AccessControl, LocalhostException, PlainLogins};
pub use audit::{AuditFilter, AuditLog, AuditTrail};
pub use certificate_rotation::{CertificateRotation, OwnCertificate};
pub use command_priority::priority_of;
pub use commands::{Commands, StartParameterError, is_parameter};
pub use connection::{ClientWatch, ConnectionState, CursorLife, DefaultDurability, StreamState};
pub use cursors::CursorTimeout;
pub use default_layout::DefaultLayout;
pub use diagnostic::parameters::CACHE_BYTES_MIN;
pub use error::{CommandError, Failure};
pub use error_code::ErrorCode;
pub use fail_points::TestCommands;
pub use handled::Handled;
pub use host_facts::HostFacts;
pub use identity::{MAX_WIRE_VERSION, MONGODB_VERSION, PANDO_VERSION};
pub use legacy::{
    LegacyBatch, LegacyDelete, LegacyGetMore, LegacyHandled, LegacyInsert, LegacyOperation, LegacyOutcome,
    LegacyProtocol, LegacyQuery, LegacyQueryFlags, LegacyUpdate,
};
pub use log_limiter::{Admission, LogLimiter};
pub use log_tail::{LogLine, LogSeverity, LogTail};
pub use log_verbosity::LogVerbosity;
pub use pando_catalog::catalog_entry::CATALOG_TREE;
pub use pando_catalog::restore_emulated_backup;
pub use pando_catalog::{
    BlockingMode, ByteSize, ByteSizeError, CatalogError, CheckRequest, CollectionReport, Durability,
    DurabilityWaker, Engine, ErrorKind, QUERY_MEMORY_MIN, SharedEngine, Statistics, StorageError,
    TREES_READ_AT_OPENING, TreeOwners, verify_collection,
};
pub use persona::{Persona, PersonaOptions};
pub use profiler::ProfilerOptions;
pub use registry::Priority;
pub use reply_wait::ReplyWait;
pub use request::{DocumentSequence, Request};
pub use server_counters::{MessageTraffic, TlsVersion};
pub use server_stop::ServerStop;
pub use shared_state::{CommandsOptions, QueryMemoryOptions, ScratchFiles};
