//! `pando import`, `pando export` and `pando copy`: documents between files and stores. A store is a running
//! server or a data folder.
//!
//! # The life of an import
//! 1. [`import_plan`] finds the collections of the import: one, or those of a dump ([`dump`]).
//! 2. [`input`] opens a file, unpacks gzip, and counts bytes for the progress line.
//! 3. [`format`] looks at the name and the first bytes and chooses a [`record`] reader: JSON objects, one
//!    JSON array, CSV, TSV or BSON.
//! 4. The reader gives documents with the number of the line that each began on, in a thread of its own
//!    ([`batch`]). Unreadable records are counted and reported with their line; the rest goes on.
//! 5. [`write_mode`] makes statements of them; [`target`] carries out each batch, unordered, so that one
//!    refused document stops no other.
//! 6. [`import`] counts ([`import_counts`]), and says at the end where it stopped ([`resume_point`]).
//!
//! A file of a folder that cannot be read on is told at the end ([`import_result`]); the others are imported.
//!
//! A copy is an import whose input is the collections of another store ([`copy`](mod@copy),
//! [`stored_collections`]). Its beginning compares the options of collections that are there
//! ([`target_options`]), its end the documents of both sides ([`comparison`]).
//!
//! # Invariants
//! - However an import ends, the result says how many documents are in, and from where it can go on.
//! - Going on puts no document in twice, and leaves none out in silence ([`folder_place`]).
//! - An export makes no store, nor does a copy for its source.
//! - An export leaves no file behind for a query that is refused.
//!
//! JSON is Extended JSON, canonical or relaxed, read and written by the `bson` crate.

mod address;
mod batch;
mod bson_file;
mod cluster_store;
mod column_type;
mod command;
mod comparison;
mod connection_string;
mod copy;
mod csv_rows;
mod data_folder;
mod dropped;
mod dump;
mod embedded_target;
mod engine_settings;
mod error;
mod export;
mod export_format;
mod extended_json_1;
mod filled;
mod folder_place;
mod format;
mod gzip_members;
mod import;
mod import_counts;
mod import_options;
mod import_plan;
mod import_result;
mod input;
mod interrupt;
mod json_array;
mod json_lines;
mod login;
mod passed_over;
mod progress;
mod record;
mod remote_target;
mod resume_point;
mod rule_bypass;
mod shared_store;
mod stored_collections;
mod target;
mod target_options;
mod write_mode;

pub use address::{database_of, without_password};
pub use cluster_store::{ClusterStore, ENGINE as CLUSTER_ENGINE, SCHEME as CLUSTER_SCHEME};
pub use column_type::{ColumnType, TypedColumn};
pub use command::{run_command, run_command_in, run_command_within};
pub use comparison::{Check, Compared, Digests};
pub use copy::{Continuation, Copied, StoreCopy, copy};
pub use csv_rows::{Blanks, RowOptions, TypeMismatch, TypedNames};
pub use data_folder::DataFolder;
pub use error::{ColumnNames, TransferError};
pub use export::{Export, ExportEnd, Exported, export};
pub use export_format::{CsvHeader, ExportFormat, JsonDialect, JsonFrame, JsonLayout, JsonStyle};
pub use folder_place::FolderPlace;
pub use format::{FormatError, InputFormat};
pub use import::import;
pub use import_counts::ImportCounts;
pub use import_options::{Existing, FormatChoice, Import, ImportOptions, Talk};
pub use import_result::{Damage, DamagedFile, End, Imported, StoppedAt};
pub use input::Source;
pub use interrupt::EXIT_CODE_INTERRUPTED;
pub(crate) use interrupt::tell_at_end;
pub use resume_point::ResumePoint;
pub use target::TargetChoice;
pub use target_options::{OtherOption, OtherOptions};
pub use write_mode::{AfterFault, WriteMode, Writing};

#[cfg(test)]
mod copy_tests;
#[cfg(test)]
mod import_tests;
#[cfg(test)]
mod tests;
