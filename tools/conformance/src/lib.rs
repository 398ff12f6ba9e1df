//! The storage contract as tests: the whole test file of a new engine.
