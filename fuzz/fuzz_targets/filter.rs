//! Filters of strangers: parsing and matching never panic, and both ways of matching say the same.

#![no_main]

use pando_fuzzing::targets::filter;

libfuzzer_sys::fuzz_target!(|input: filter::Input| filter::run(input));
