//! The default engine: copy-on-write Bε-trees with a write-ahead log.
//!
//! ```text
//!  commit --> log record --> active buffer             read: view of the tree, newest version first
//!                                | freeze                 1. active buffer
//!                                v                        2. frozen buffer
//!                           frozen buffer                 3. slices of each node on the way down
//!                                | flush                  4. one page of a leaf
//!                                v
//!             inner nodes, with runs pending in slices    memory, then blocks
//!                                | flush
//!                                v
//!                      leaves (directory + pages)         blocks of data.0000
//! ```
//!
//! # The life of a write
//! 1. A transaction keeps its writes private (`pando_storage::SnapshotTransaction`, over the engine's half in
//!    [`transaction`]). Each update first claims an *intent* on its key (`pando_storage::Intents`), which
//!    keeps other writers away.
//! 2. The commit appends one record to the log, puts the writes into the active *buffers* of the trees, and
//!    publishes them ([`commit`], [`commit_order`]). From then on new snapshots see it. A commit that is too
//!    large for one record does this in parts ([`commit::large_commit`]).
//! 3. A full buffer is frozen and flushed in the background ([`background::buffer_flush`], [`tree::flush`]).
//!    Its messages become *runs*, which are pending in inner nodes, or rewrite leaves elsewhere. Large values
//!    get blocks of their own. A new version of the tree takes the place of the old one.
//! 4. Later flushes take pending messages further down, where a child has enough of them. Messages that a
//!    step leaves over go down in steps of their own ([`background::partial_flush`]). Commits are slowed down
//!    if flushes fall behind ([`background::back_pressure`]).
//! 5. A checkpoint writes new inner nodes, the catalog, the space map and the superblock, and releases the
//!    log before them ([`background::checkpointer`], [`space`]).
//! 6. After a crash, the superblock leads to the trees, and the log is replayed from the superblock's
//!    position ([`recovery`]).
//!
//! # The life of a read
//! 1. Take the tree's view without a lock: one consistent set of buffers, range deletes and nodes.
//! 2. Look into the active buffer, then into the frozen buffer. The first version that the snapshot sees is
//!    the answer. Versions older than a range delete that the snapshot sees are deleted. A merge operator is
//!    kept until the value below it is found.
//! 3. Go down the nodes. At each node the filters of the child's slices tell which slices may have the key.
//! 4. Read one page of the leaf ([`tree::lookup`]). Inner nodes, filters and leaf directories are usually in
//!    memory ([`cache`]). So a lookup costs one device read as a rule, and none if the page is cached.
//! 5. If the reader must not block and a block is missing, the read returns `WouldBlock` with the block to
//!    read. The event loop reads it and asks again.
//!
//! # A page whose checksum is wrong, step by step
//! 1. `space/block_reader.rs` compares the bytes with the checksum in the pointer. On a mismatch it reports
//!    which block it found there. It returns no bytes.
//! 2. The cache keeps nothing of the block ([`cache`]).
//! 3. `tree/lookup.rs` and `tree/scan.rs` add the tree and the range of keys that need the block
//!    ([`BetreeError::Range`]). The caller gets `ErrorKind::Corrupt`.
//! 4. All other keys stay readable. A flush that needs the block fails and is tried again. Commits go on
//!    until the write buffers are full; then they fail with [`BetreeError::Stalled`].
//! 5. A read that must not block drops the bad bytes. The request then reads again on a thread that may
//!    block, which reports the error.
//! 6. There is no repair and no quarantine. [`verify()`] lists the damage; a backup restores the store
//!    ([`restore`]).
//!
//! # Conflicts
//! The first updater of a key wins. A conflict is noticed at the update, in
//! `pando_storage::SnapshotTransaction` (crates/storage/src/snapshot_transaction.rs), where the claim of an
//! intent fails. The table of intents is crates/storage/src/intents.rs. A blind write claims no intent. A
//! commit does not fail because of conflicts.
//!
//! # Where memory is limited
//! The limit is [`Options::cache_bytes`]. `background/memory_sharing.rs` has the table of everything that
//! counts against it, and shares it out once a second:
//!
//! | consumer | limited in |
//! |---|---|
//! | write buffers | `background/back_pressure.rs` and `flush_scheduler.rs`, by flushes and waits |
//! | write sets of transactions | `pando_storage::spill`: they go to files |
//! | resident inner nodes and filters | `memory/resident_limit.rs` |
//! | working memory, waiting cursors, lent memory | `memory/accounts.rs` |
//! | pages and directories | `cache/page_cache.rs`: they get the rest |
//!
//! # Invariants
//! - Blocks are immutable. On disk only the two superblock slots are overwritten, in turn, and log
//!   segments are recycled after their release. A version, once written, stays whole until no reader and no
//!   superblock reaches it.
//! - For any key, timestamps descend from the active buffer to the frozen buffer, through the nodes from the
//!   root down, to the leaf.
//! - A commit's timestamp is the LSN of its log record; of a large commit, the LSN of its last record.
//! - Only three things change in memory while readers look on: a buffer (under its lock), a view (replaced as
//!   a whole), and the cache.
//! - A range delete is kept in the view's list until all nodes and leaves have it ([`range_deletes`]).
//!
//! # Map
//! A room uses only rooms below it.
//!
//! | room | content |
//! |---|---|
//! | [`engine`] | the storage contract's engine; bulk loads |
//! | [`transaction`], [`recovery`], [`backup`] | snapshots; opening a store; hot backups and restore |
//! | [`verify`](mod@verify), [`statistics`] | the check of a whole store; its statistics |
//! | [`store`] | an open store: its parts, put together |
//! | [`commit`] | commits, small and large |
//! | [`background`] | flush scheduling, back-pressure, checkpoints, relocation, sharing of memory |
//! | [`commit_order`] | the commit gate, publication, snapshots |
//! | [`tree`] | views, buffers, nodes, runs, lookups, scans, flushes of one tree |
//! | [`cache`] | blocks by pointer, from memory or from the device |
//! | [`options`], [`counters`] | options and settings; counters of an open store |
//! | [`error`] | the engine's errors |
//! | [`format`](mod@format) | every block of a tree and every log record, byte by byte |
//! | [`range_deletes`] | lists of range deletes |
//! | [`space`] | the data file: blocks, extents, space map, superblock |
//! | [`log`] | the write-ahead log |
//! | [`memory`] | accounts, object pool, memory of pages, limit on resident nodes |
//! | [`base`] | ids, addresses, pointers, field encoding |
//!
//! # Allowed arrows between the rooms
//! ```arrows
//! engine -> backup, commit_order, error, format, log, options, range_deletes, recovery, space, statistics
//! engine -> store, transaction, tree, verify
//! backup -> error, format, log, space, store, tree
//! recovery -> commit, error, format, log, options, range_deletes, space, store, tree
//! statistics -> error, space, store, tree
//! transaction -> commit, commit_order, error, range_deletes, store, tree
//! verify -> error, format, log, space, store, tree
//! store -> background, commit, commit_order, counters, error, options, space, tree
//! commit -> background, commit_order, counters, error, format, log, options, range_deletes, tree
//! background -> commit_order, counters, error, format, options, range_deletes, space, tree
//! commit_order -> error, log, range_deletes, tree
//! tree -> cache, error, format, options, range_deletes, space
//! options -> error, format, log, space
//! cache -> error, space
//! error -> log, space
//! format -> range_deletes
//! leaves: base, memory
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
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

pub use backup::{BackupError, BackupJob, BackupProgress, restore, restore_encrypted};
pub use base::FormatError;
pub use engine::Betree;
pub use error::{BetreeError, KeyText};
pub use log::LogCompression;
pub use options::{DirectIo, Options};
pub use space::{DataKeys, rotate_keys};
pub use verify::{Damage, KeptEntry, TreeReport, VerifyReport, verify, verify_keeping};
