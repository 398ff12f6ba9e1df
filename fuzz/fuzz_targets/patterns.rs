//! Regular expressions of strangers: three lines of text, the pattern, its options, and what is searched.
//! The filter never panics, and finds what the expression finds.

#![no_main]

use pando_fuzzing::targets::patterns;

libfuzzer_sys::fuzz_target!(|input: &str| patterns::run(input));
