//! All tests of this crate from outside, one program: each program of its own would be linked anew.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod corpus;
mod explain;
mod expressions;
mod extended_json;
mod filters;
mod group_ends;
mod hostile_specifications;
mod interruptions;
mod intersections;
mod newer_expressions;
mod optimiser;
mod pipelines;
mod plans;
mod projections;
mod random_filters;
mod random_pipelines;
mod reluctant;
mod runs;
mod sorts;
mod store;
mod updates;
