//! Schemas of strangers: parsing, matching and the details of a failure never panic, and agree.

#![no_main]

use pando_fuzzing::targets::schema;

libfuzzer_sys::fuzz_target!(|input: schema::Input| schema::run(input));
