//! Pipelines of strangers: parsing and running over a few documents never panics, and every document that
//! comes out is sound.

#![no_main]

use pando_fuzzing::targets::pipeline;

libfuzzer_sys::fuzz_target!(|input: pipeline::Input| pipeline::run(input));
