//! The messages of a client that logs in: the first line is its first message, all that follows its last one.
//! A name that is read can be written so that it reads the same.

#![no_main]

use pando_fuzzing::targets::sasl_messages;

libfuzzer_sys::fuzz_target!(|input: &[u8]| sasl_messages::run(input));
