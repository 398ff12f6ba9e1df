//! The default engine: copy-on-write buffered trees with a write-ahead log.
//!
//! # The life of a write
//! 1. A transaction keeps it to itself; an intent keeps other writers of the key away ([`transaction`]).
//! 2. The commit appends one record to the log and puts the writes into the *buffers* of the trees' root partitions
//!    ([`commit`], [`core`]). From then on new snapshots see it. One that is larger than memory does both in parts
//!    ([`large_commit`]).
//! 3. A full buffer is frozen and flushed, in the background: large values into blocks of their own
//!    ([`tree::large_values`]), all else into *runs*, which wait in inner nodes until there is enough for
//!    a child, and from there into leaves, each of which is written anew elsewhere ([`merging`], [`tree::flush`]). A new
//!    version of the tree takes the place of the old. What is late or wanted by reads goes down in steps between ([`digesting`]),
//!    all of it where somebody asks for the smallest trees ([`compacting`]).
//!    Commits keep to the pace of all that ([`pressure`]).
//! 4. A checkpoint writes the inner nodes that are new, the catalog, the space map and the superblock, and lets go of the log
//!    before it ([`checkpoint`]).
//! 5. After a crash the superblock leads to the trees, and the log is replayed from where the superblock says ([`recovery`]).
//!
//! # The life of a read
//! Take the tree's view (no lock), look into the active buffer, into the frozen one, and go down to a page ([`tree::lookup`]),
//! past the filters of what waits on the way: one device read as a rule, since inner nodes, filters and leaf directories are
//! in memory ([`cache`]), as long as there is room for them ([`skeleton`]).
//!
//! # Invariants
//! - Nothing on disk is ever changed in place, but the two superblock slots: a version once written stays whole until nobody
//!   can reach it.
//! - For any key, timestamps descend from active buffer to frozen buffer, through the nodes from the root down, to the leaf.
//! - A commit's timestamp is the LSN of its log record; of a large one, the LSN of the last.
//! - The only things that change in memory while readers look on: a buffer (under its lock), a view (replaced as a whole),
//!   and the cache.
//!
//! # Map
//! `format` every byte of the tree's blocks · `tree` views, buffers, runs, flushes · `cache` pages in memory · `transaction`
//! snapshots and order of commits · `core` what all share · `space` extents, pointers, superblocks · `log` the write-ahead
//! log · `verify` the offline check · `backup` hot backups and their restore.
//!
//! # Range deletes
//! stand in a list beside the buffers and the nodes ([`tree::ranges`]): reads hide what they deleted, and background work takes it out
//! (`range_deletes`, [`tree::work_in`]).
#![warn(missing_docs)]

mod background;
mod backup;
mod base;
mod cache;
pub(crate) mod commit;
mod commit_order;
mod counters;
mod engine;
mod error;
pub(crate) mod format;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub(crate) mod log;
mod memory;
mod options;
mod range_deletes;
pub(crate) mod recovery;
#[cfg(all(test, shuttle))]
mod schedules;
pub(crate) mod space;
mod statistics;
mod store;
pub(crate) mod transaction;
pub(crate) mod tree;
mod verify;

pub use backup::{BackupError, BackupJob, BackupProgress, restore};
pub use base::FormatError;
pub use engine::Betree;
pub use error::{BetreeError, KeyText};
pub use log::LogCompression;
pub use options::{DirectIo, Options};
pub use verify::{Damage, TreeReport, VerifyReport, verify};
