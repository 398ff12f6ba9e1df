//! Dates, formats of dates and time zones of strangers: three lines of text. A date that is read is printed
//! so that it reads the same.

#![no_main]

use pando_fuzzing::targets::dates;

libfuzzer_sys::fuzz_target!(|input: &str| dates::run(input));
