//! Logs of a damaged or forged store: records that are whole but say anything. The store is refused, or opens
//! and is sound.

#![no_main]

use pando_fuzzing::targets::betree_replay;

libfuzzer_sys::fuzz_target!(|input: &[u8]| betree_replay::run(input));
