//! What the product does with bytes of strangers: a target for every decoder and parser, and what several targets share.
//!
//! A target ([`targets`]) is a function of bytes that panics where something is wrong. It is called by two:
//!
//! - libFuzzer (folder `fuzz`, outside the workspace), which needs the nightly toolchain and finds new ways through the code;
//! - the smoke test (`tests/smoke.rs`, part of `cargo test` with any toolchain): the inputs of [`corpus`], which libFuzzer found,
//!   sound examples made by the encoders of today, and some thousand [mutations](mutator) of them from a seed. It finds no new ways, but what has broken on the known ones.
//!
//! Targets that read bytes take them as they are. The others would spend their time on malformed BSON, so they *grow* documents:
//!
//! 1. [`grown`] reads the bytes as decisions: which type comes next, which name, how many fields.
//! 2. [`words`] are the names it chooses from: field names that documents and requests have in common, and operators.
//! 3. [`requests`] are the shapes: a stored document, a filter, an update, a pipeline. Their `Debug` is Extended JSON, which
//!    `cargo fuzz` prints for an input that fails.
//!
//! [`check`] has the properties that more than one target asserts.

#[cfg(test)]
mod registry;

pub mod check;
pub mod corpus;
pub mod grown;
pub mod mutator;
pub mod requests;
pub mod targets;
pub mod words;
