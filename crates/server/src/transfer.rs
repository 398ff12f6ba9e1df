//! `pando import` and `pando export`: documents between files and a store, which is a running server or a
//! data folder.
//!
//! # The life of an import
//! 1. [`input`] opens the file, unpacks gzip, and counts bytes for the progress bar.
//! 2. [`format`] looks at the first bytes and chooses a [`record`] reader: JSON lines, one JSON array, or CSV
//!    with a header.
//! 3. The reader gives documents with the number of the line that each began on. Unreadable records are
//!    counted and reported with their line; the rest goes on.
//! 4. [`batch`] collects them; [`target`] inserts each batch, unordered, so that one refused document stops
//!    no other.
//!
//! JSON is Extended JSON, canonical or relaxed, read and written by the `bson` crate.

mod address;
mod batch;
mod command;
mod csv_rows;
mod embedded_target;
mod error;
mod export;
mod format;
mod import;
mod input;
mod json_array;
mod json_lines;
mod record;
mod remote_target;
mod target;

pub use command::run_command;
pub use error::TransferError;
pub use export::{Export, export};
pub use format::InputFormat;
pub use import::{Import, Imported, import};
pub use target::TargetChoice;

#[cfg(test)]
mod tests;
