//! Blocks and log records of a damaged store: nothing that a decoder is given makes it panic, or believe what cannot be.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pando_betree::fuzzing::decode_all(bytes));
