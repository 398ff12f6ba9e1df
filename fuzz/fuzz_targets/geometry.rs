//! Geometry never panics, and an index of geometries loses no shape.

#![no_main]

use pando_fuzzing::targets::geometry;

libfuzzer_sys::fuzz_target!(|input: geometry::Input| geometry::run(input));
