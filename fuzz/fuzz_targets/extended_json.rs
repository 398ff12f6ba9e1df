//! Extended JSON of strangers: no text makes the parser panic, and what it reads is printed so that it reads
//! the same again.

#![no_main]

use pando_fuzzing::targets::extended_json;

libfuzzer_sys::fuzz_target!(|input: &str| extended_json::run(input));
