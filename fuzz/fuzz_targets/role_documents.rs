//! Privileges of stored roles: what is read is written so that it reads the same.

#![no_main]

use pando_fuzzing::targets::role_documents;

libfuzzer_sys::fuzz_target!(|input: &[u8]| role_documents::run(input));
