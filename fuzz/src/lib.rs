//! What several fuzz targets share: how a fuzzer's bytes become requests that have a chance to be parsed.
//!
//! Targets that read bytes (`wire_message`, `document_validate`, `extended_json`, `keyorder_decode`) take the fuzzer's bytes as
//! they are. The others would spend their time on malformed BSON, so they *grow* documents:
//!
//! 1. [`grown`] reads the fuzzer's bytes as decisions: which type comes next, which name, how many fields.
//! 2. [`words`] are the names it chooses from: field names that documents and requests have in common, and operators.
//! 3. [`requests`] are the shapes: a stored document, a filter, an update, a pipeline. Their `Debug` is Extended JSON, which
//!    `cargo fuzz` prints for an input that fails.
//!
//! [`check`] has the properties that more than one target asserts.

#[cfg(test)]
mod registry;

pub mod check;
pub mod grown;
pub mod requests;
pub mod words;
