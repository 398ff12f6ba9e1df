//! Specifications of collations, and strings under them.

#![no_main]

use pando_fuzzing::targets::collation;

libfuzzer_sys::fuzz_target!(|input: collation::Input| collation::run(input));
