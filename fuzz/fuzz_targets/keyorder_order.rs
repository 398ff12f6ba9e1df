//! The order of key bytes is the order of the values: for whole documents, and for each pair of their values.

#![no_main]

use pando_fuzzing::targets::keyorder_order;

libfuzzer_sys::fuzz_target!(|input: keyorder_order::Input| keyorder_order::run(input));
