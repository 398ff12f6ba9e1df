//! Statistics of an open store.

mod engine_statistics;
mod traffic;
