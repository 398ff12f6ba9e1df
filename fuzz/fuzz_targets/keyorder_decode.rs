//! Key bytes of strangers: nothing panics, a key that decodes is as long as its parts, and its values encode
//! to a key that is

#![no_main]

use pando_fuzzing::targets::keyorder_decode;

libfuzzer_sys::fuzz_target!(|input: &[u8]| keyorder_decode::run(input));
