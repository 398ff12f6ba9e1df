//! Fuzz targets: one for every decoder and parser that reads bytes of strangers.
//!
//! A target ([`targets`]) is a function of bytes that panics where something is wrong. Two programs call it:
//!
//! - libFuzzer (folder `fuzz`, outside the workspace) needs the nightly toolchain. It finds new ways through
//!   the code.
//! - The smoke test (`tests/smoke.rs`) is part of `cargo test` with any toolchain. It runs the inputs of
//!   [`corpus`], which libFuzzer found, examples made by the encoders of today, and some thousand
//!   [mutations](mutator) of both from a seed. It finds what broke on known ways, and no new ways.
//!
//! Some targets take the bytes as they are. The others would spend their time on malformed BSON, so they
//! *grow* documents:
//!
//! 1. [`grown`] reads the bytes as decisions: which type comes next, which name, how many fields.
//! 2. [`words`] holds the names to choose from: operators, and field names that documents and requests share.
//! 3. [`requests`] holds the shapes: a stored document, a filter, an update, a pipeline. Their `Debug` is
//!    Extended JSON, which `cargo fuzz` prints for an input that fails.
//!
//! [`check`] holds the properties that more than one target asserts.

#[cfg(test)]
mod registry;

pub mod check;
pub mod corpus;
pub mod grown;
pub mod mutator;
pub mod requests;
pub mod targets;
pub mod words;
