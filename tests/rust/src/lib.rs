//! An empty library: the package exists for the tests in `tests/`.
