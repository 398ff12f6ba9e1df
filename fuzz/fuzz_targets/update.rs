//! Updates of strangers: parsing, applying and upserting never panic, and what they make is a sound document
//! that keeps its `_id`.

#![no_main]

use pando_fuzzing::targets::update;

libfuzzer_sys::fuzz_target!(|input: update::Input| update::run(input));
