//! Names of certificates, by which their owners log in.

#![no_main]

use pando_fuzzing::targets::certificate_names;

libfuzzer_sys::fuzz_target!(|input: &[u8]| certificate_names::run(input));
