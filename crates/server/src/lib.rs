//! The process around a store: command line, configuration, connections, start and shutdown.
//!
//! - [`program`]: the command line.
//! - [`configuration`]: the table of options.
//! - [`serve`]: a server from its start to its end.
//! - [`network`]: connections and requests. It does not know what a request means.
//! - [`transfer`]: import and export.
//!
//! The program logs a line at warning or above for the operator. Such a line says what happened, to what (an
//! address, a path, a number), and what to do where the operator can do something.
//!
//! # Allowed arrows
//! Between the modules of this folder; `cargo xtask layers` refuses any other.
//!
//! ```arrows
//! program -> configuration, serve, transfer
//! serve -> configuration, network
//! folder_owner -> error_text
//! leaves: amounts, audit_file, error_text, file_modes, folder_owner, stop_signals, uri_encoding, version
//! ```

mod amounts;
mod audit_file;
pub mod configuration;
mod error_text;
mod file_modes;
mod folder_owner;
pub mod network;
pub mod program;
pub mod serve;
mod stop_signals;
pub mod transfer;
mod uri_encoding;
mod version;
