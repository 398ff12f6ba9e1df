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
//! cities.insert_one(&City { name: "Utrecht".into(), people: 374_000 })?;
//! cities.create_index(doc! { "people": -1 })?;
//! for city in cities.find(doc! { "people": { "$gt": 100_000 } })? {
//!     println!("{}", city?.name);
//! }
//! pando.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! A folder is used by one process at a time. Writes are on the device when a call returns, unless the
//! options say otherwise. Everything that a MongoDB client can ask a server can be asked here by
//! [`Database::run_command`], and without values in between by a [`RawSession`].
//!
//! # Not here
//! The meaning of commands: crate `pando-commands`. The server: crate `pando-server`, which opens its engine
//! through [`open_commands`] as this crate does.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(missing_docs)]

mod collection;
mod database;
mod engine_choice;
mod error;
mod options;
mod raw_session;
mod restore;
mod store;
mod store_folder;
mod verify;

pub use bson::{self, doc};
pub use collection::{Collection, Find, UpdateResult};
pub use database::Database;
pub use engine_choice::{EngineName, open_commands};
pub use error::{Error, WriteErrorDetail};
pub use options::{DurabilityChoice, EngineOptions, Options};
pub use pando_commands::{Commands, CommandsOptions, DocumentSequence, Request};
pub use raw_session::RawSession;
pub use restore::restore_store;
pub use store::Pando;
pub use store_folder::{FolderError, FolderState, MissingStore, inspect_folder};
pub use verify::{StoreReport, VerifyDepth, verify_store};
