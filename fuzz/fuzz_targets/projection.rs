//! Projections of strangers: parsing and applying never panic, and what is shown is a sound document.

#![no_main]

use pando_fuzzing::targets::projection;

libfuzzer_sys::fuzz_target!(|input: projection::Input| projection::run(input));
