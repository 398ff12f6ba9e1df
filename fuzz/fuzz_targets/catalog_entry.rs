//! Entries of the catalog tree of a damaged store: they are refused, or what they say fits together.
//!
//! The bytes are tried twice: as they are, and as a document of their length.

#![no_main]

use pando_fuzzing::targets::catalog_entry;

libfuzzer_sys::fuzz_target!(|input: &[u8]| catalog_entry::run(input));
