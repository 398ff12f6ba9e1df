//! Frames of strangers: any bytes are framed, decoded and decompressed without a panic, and what was decoded
//! can be written again

#![no_main]

use pando_fuzzing::targets::wire_message;

libfuzzer_sys::fuzz_target!(|input: &[u8]| wire_message::run(input));
