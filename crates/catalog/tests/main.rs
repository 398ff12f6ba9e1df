//! All tests of this crate from outside, one program: each program of its own would be linked anew.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod bulk_loads;
mod capped;
mod counted;
mod counter_crashes;
mod counters;
mod documents_and_entries;
mod hooked_engine;
mod index_builds;
mod index_kinds;
mod index_scans;
mod partition_schedules;
mod replacements;
mod session_transactions;
mod sharing;
mod things;
mod truncations;
mod undetermined_commits;
