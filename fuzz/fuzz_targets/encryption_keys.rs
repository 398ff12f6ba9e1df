//! The text of a master key, and the file with the data keys of a store.

#![no_main]

use pando_fuzzing::targets::encryption_keys;

libfuzzer_sys::fuzz_target!(|input: &[u8]| encryption_keys::run(input));
