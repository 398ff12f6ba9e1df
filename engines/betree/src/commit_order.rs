//! The order of commits: the gate that they pass, the end of the log, and the moment when they become
//! visible.
//!
//! 1. A commit enters the [gate](CommitGate), gets its LSN from the log, and puts its writes into the
//!    buffers.
//! 2. The [publisher](Publisher) makes commits visible in the order of their timestamps, without holes.
//! 3. [Snapshots](snapshots::Snapshots) keep what live transactions see; [`Visibility`] knows the oldest of
//!    them.
//! 4. [`LargeCommits`] knows the commits that reach the log in parts.

mod commit_gate;
mod large_commits;
mod publisher;
mod snapshots;
mod visibility;

pub(crate) use commit_gate::CommitGate;
pub(crate) use large_commits::LargeCommits;
pub(crate) use publisher::Publisher;
pub(crate) use snapshots::Live;
#[cfg(all(test, shuttle))]
pub(crate) use snapshots::Snapshots;
pub(crate) use visibility::Visibility;

#[cfg(all(test, shuttle))]
mod schedules;
