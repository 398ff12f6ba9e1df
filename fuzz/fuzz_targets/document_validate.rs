//! Documents of strangers: no bytes make a walk panic, and what `validate` accepts can be walked, copied into
//! owned values and

#![no_main]

use pando_fuzzing::targets::document_validate;

libfuzzer_sys::fuzz_target!(|input: &[u8]| document_validate::run(input));
