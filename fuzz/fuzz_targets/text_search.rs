//! Searches of strangers: two lines, the search and the text of a document. The parser of searches never
//! panics, and a document that is found has a score.

#![no_main]

use pando_fuzzing::targets::text_search;

libfuzzer_sys::fuzz_target!(|input: &str| text_search::run(input));
