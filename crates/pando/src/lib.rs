//! Pando in your own process: open a folder, use typed collections, no socket and no server.
//!
//! ```
//! use pandodb::{Pando, doc};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct City {
//!     #[serde(rename = "_id")]
//!     name: String,
//!     people: i64,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let pando = Pando::open(folder)?;
//! let cities = pando.database("atlas").collection::<City>("cities");
//! cities.create_index(doc! { "people": -1 }).run()?;
//! cities.insert_one(City { name: "Utrecht".into(), people: 374_000 }).run()?;
//! cities.update_one(doc! { "_id": "Utrecht" }, doc! { "$inc": { "people": 1 } }).run()?;
//! for city in cities.find(doc! { "people": { "$gt": 100_000 } }).sort(doc! { "people": -1 }).run()? {
//!     println!("{}", city?.name);
//! }
//! pando.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Calls
//! A method of a [`Collection`] describes a call, further methods add options, and `run` carries it out
//! ([`action`]). Names and results are those of the official crate `mongodb` (its module `sync`). A call
//! waits until it is done; a store, its databases and its collections may be used by any number of threads.
//! All of them can be printed (`Debug`), which shows names and no documents.
//!
//! | in SQL | here |
//! |---|---|
//! | a database file | a folder: [`Pando::open`]; `:memory:` is [`Pando::open_in_memory`] |
//! | a table | a [`Collection`]; it comes into being with its first document |
//! | a primary key | the field `_id`; a document without one gets an [`bson::oid::ObjectId`] |
//! | `INSERT` | [`insert_one`](Collection::insert_one), [`insert_many`](Collection::insert_many) |
//! | `SELECT … WHERE … ORDER BY … LIMIT` | [`find`](Collection::find)`(filter).sort(…).limit(…)` |
//! | `UPDATE … SET` | [`update_many`](Collection::update_many)`(filter, doc! { "$set": … })` |
//! | `INSERT … ON CONFLICT DO UPDATE` | [`update_one`](Collection::update_one)`(…).upsert(true)` |
//! | `UPDATE … RETURNING` | [`find_one_and_update`](Collection::find_one_and_update) |
//! | `GROUP BY`, joins | [`aggregate`](Collection::aggregate) |
//! | `UNIQUE` | an [`IndexModel`] with [`IndexOptions::unique`]; [`Error::is_duplicate_key`] tells a conflict |
//! | `BEGIN … COMMIT` | [`ClientSession::with_transaction`] |
//! | `EXPLAIN` | [`run_command`](Database::run_command)`(doc! { "explain": … })` |
//!
//! A primary key that the store shall choose is a field `Option<ObjectId>` with
//! `#[serde(rename = "_id", skip_serializing_if = "Option::is_none")]`. Without the second part `None` is
//! stored as the `_id` null, which one document of a collection can have.
//!
//! # Processes
//! A folder is used by one process at a time; another one gets [`Error::InUse`]. A child of `fork` has none
//! of the threads of a store: it must neither use a store of its parent nor close or drop it. It can open
//! another one. While it lives, the folder stays in use, also where its parent has closed the store.
//!
//! # Durability
//! Writes are on the device when a call returns, unless the
//! options say otherwise. Everything that a MongoDB client can ask a server can be asked here by
//! [`Database::run_command`]; a `writeConcern` in such a command counts for it instead of the options.
//! [`Pando::backup`] copies a store while it is open, and [`restore_store`] makes a store of the copies.
//!
//! # Asynchronous programs
//! A call waits for the device, and keeps its thread meanwhile. In a program with tokio or another executor
//! it belongs into `spawn_blocking`, for which a [`Pando`] and a [`Collection`] can be cloned at no cost:
//! `tokio::task::spawn_blocking(move || cities.insert_one(city).run()).await`.
//!
//! # Work between calls
//! Threads of the store flush its log, make checkpoints, remove what an expiry index (`expireAfterSeconds`)
//! names, and end transactions that are too old. They end with [`Pando::close`], or with the last clone. What
//! they have to tell, such as a full device, and other warnings are events of the crate `tracing`: a program
//! sees them with a subscriber, such as that of `tracing-subscriber`.
//!
//! # Features
//! | feature | what it adds |
//! |---|---|
//! | `collation` | rules of languages for comparing texts; without it strings compare byte by byte |
//! | `text` | text indexes and `$text` |
//! | `codecs` | Snappy and zlib for blocks, beside zstd and LZ4 |
//! | `saslprep` | passwords beyond ASCII |
//! | `engine-lmdb`, `engine-rocksdb`, `engine-wiredtiger`, `engine-tikv` | further engines, with their native libraries |
//!
//! A call that needs a feature of which the build has none fails, and its error names the feature.
//!
//! The values are those of the crate `bson` 3. A program that depends on it, too, chooses its features, such
//! as `chrono-0_4` and `uuid-1` for dates and identifiers of these crates.
//!
//! # Build
//! About 110 packages come with this one. A first build takes some ten minutes of processor time, and a
//! program grows by some 20 MB.
//!
//! # Speed of debug builds
//! A debug build of a program builds this crate without optimisation, too, which makes it many times slower.
//! These lines in the program's `Cargo.toml` optimise the packages that it uses, and leave its own code as it
//! is:
//!
//! ```toml
//! [profile.dev.package."*"]
//! opt-level = 2
//! ```
//!
//! Without them a call needs much stack: reading a document of 80 levels into a `bson::Document` overflows
//! the 2 MB of a thread of Rust's standard library, which ends the process. With them 90 levels fit, in a
//! release build 170; a store takes 180. Give threads that read such documents more, by
//! `std::thread::Builder::stack_size` or `RUST_MIN_STACK`.
//!
//! # Not here
//! The meaning of commands: crate `pando-commands`. The server: crate `pando-server`, which opens its engine
//! through `open_commands` as this crate does.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(missing_docs, missing_debug_implementations)]

pub mod action;
mod call;
mod call_arguments;
mod client_session;
mod collection;
mod cursor;
mod database;
mod documents_with_ids;
mod engine_choice;
mod error;
mod index_model;
mod key_rotation;
mod options;
mod raw_session;
mod reply;
mod restore;
pub mod results;
mod session_pool;
mod store;
mod store_folder;
mod update_modifications;
mod verify;
mod write_model;

pub use bson::{self, doc};
pub use call_arguments::{Hint, Namespace, ReturnDocument};
pub use client_session::{ClientSession, Isolation};
pub use collection::Collection;
pub use cursor::Cursor;
pub use database::Database;
pub use engine_choice::EngineName;
#[doc(hidden)]
pub use engine_choice::open_commands;
pub use error::{Error, WriteErrorDetail};
pub use index_model::{IndexModel, IndexOptions};
pub use key_rotation::rotate_keys;
pub use options::{DurabilityChoice, EngineOptions, Options};
pub use pando_betree::DataKeys;
pub use pando_commands::CACHE_BYTES_MIN;
#[doc(hidden)]
pub use pando_commands::{Commands, CommandsOptions, DocumentSequence, Request};
pub use pando_encryption::{
    Cipher, Encryption, EncryptionError, HeldKey, KeyCommand, KeyFile, KeySource, SecretKey,
};
#[doc(hidden)]
pub use raw_session::RawSession;
pub use restore::restore_store;
pub use store::Pando;
pub use store_folder::{
    AUDIT_NAME, FolderError, FolderState, MissingStore, SOCKET_NAME, engine_of_folder, inspect_folder,
};
pub use update_modifications::UpdateModifications;
pub use verify::{StoreReport, VerifyDepth, verify_store, verify_store_with};
pub use write_model::{
    DeleteManyModel, DeleteOneModel, InsertOneModel, ReplaceOneModel, UpdateManyModel, UpdateOneModel,
    WriteModel,
};

/// The snippets of the project's first page, so that they compile as they stand.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
