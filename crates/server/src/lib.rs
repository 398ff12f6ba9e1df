//! The process: listeners, connection loop, limits, shutdown, configuration and the choice of engine.
//!
//! - [`program`]: the command line.
//! - [`configuration`]: the table of options.
//! - [`serve`]: a server from its start to its end.
//! - [`network`]: connections and requests, without knowing what a request means.
//! - [`transfer`]: import and export.

pub mod configuration;
pub mod network;
pub mod program;
pub mod serve;
pub mod transfer;
