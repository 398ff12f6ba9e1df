//! All tests of this crate from outside, one program: each program of its own would be linked anew.

mod embedded;
mod page;
mod program;
mod suite;
mod support;
mod trouble;
mod workloads;
