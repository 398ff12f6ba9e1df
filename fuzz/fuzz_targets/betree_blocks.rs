//! Blocks and log records of a damaged store: nothing that a decoder is given makes it panic, or believe what
//! cannot be.

#![no_main]

use pando_fuzzing::targets::betree_blocks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| betree_blocks::run(input));
