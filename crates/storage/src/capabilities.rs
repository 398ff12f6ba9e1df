//! Capabilities: an engine's declarations about itself, as plain data. The conformance suite checks every
//! claim.

use std::time::Duration;

/// When the loser of two transactions that update one key learns of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictTime {
    /// The second `put` or `delete` fails at once.
    AtUpdate,
    /// `commit` fails.
    AtCommit,
}

/// Whether transactions may begin at a past snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// Only the newest snapshot can be begun at.
    NewestOnly,
    /// A past snapshot can be begun at for as long as some live transaction keeps it.
    WhileHeld,
}

/// The abilities of an engine. Callers do not branch on them: where an engine lacks one,
/// [`emulate`](crate::emulate) stands in. They are for the conformance suite and for people. One caller does:
/// an emulated range delete of a whole tree has no bound, so the catalog deletes in steps there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// When the loser of a conflict learns of it.
    pub conflicts: ConflictTime,
    /// Whether past snapshots can be begun at.
    pub history: History,
    /// Whether commits survive the end of the process.
    pub durable: Persistence,
    /// Whether a [`CachedOnly`](crate::BlockingMode::CachedOnly) read of cached data answers at once.
    pub cached_reads: CachedReads,
    /// Whether merges of one key by several transactions at once all count.
    pub merges: Merging,
    /// How a range of keys is deleted.
    pub range_deletes: RangeDeletes,
    /// Where estimates of ranges come from.
    pub estimates: EstimateOrigin,
    /// Whether transactions can be serializable.
    pub read_claims: ReadClaiming,
    /// Whether other processes may have the same store open.
    pub sharing: Sharing,
    /// Whether trees are compacted while transactions live.
    pub compacting: Compacting,
}

/// Whether [`Engine::compact`](crate::Engine::compact) goes on beside transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compacting {
    /// It does, and blocks its caller only.
    BesideTransactions,
    /// It waits until no transaction is live, as long as the engine says, and others wait for it. Where some
    /// go on, it fails as [`Busy`](crate::ErrorKind::Busy).
    WithoutTransactions,
}

/// The longest that a commit to a shared store takes, from its call on. After that nothing of it is sent any
/// more. Servers rest on it when they hold another one for dead.
pub const SHARED_COMMIT_MAX: Duration = Duration::from_secs(16);

/// Whether several servers may have one store open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One process has it.
    Exclusive,
    /// Several may have it. Transactions of all of them conflict as those of one do, at the commit at the
    /// latest, and blind merges of all count. It claims no reads.
    /// [`Engine::list_trees`](crate::Engine::list_trees) also knows the trees that others have made.
    Shared,
}

/// Whether an engine claims what serializable transactions read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadClaiming {
    /// Keys and ranges, absent keys included.
    Ranges,
    /// Not at all: a serializable transaction cannot begin.
    None,
}

/// How [`Transaction::delete_range`](crate::Transaction::delete_range) is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeDeletes {
    /// By one message, where the range is worth it: without a read, and without a write for each key. The
    /// whole range is claimed, so that it conflicts with updates of keys within that nobody has seen, too.
    OneMessage,
    /// By the emulation: a scan, and a delete with an intent for each key.
    Emulated,
}

/// Where [`Transaction::estimate`](crate::Transaction::estimate) has its numbers for a part of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EstimateOrigin {
    /// From the sizes of pages: each estimate is cheap, and about right.
    Pages,
    /// From a scan of the first entries, and a share that is assumed beyond them.
    FirstEntries,
}

/// How [`Transaction::merge`](crate::Transaction::merge) without an intent is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merging {
    /// No read, and no conflict of one merge with another: all of them count.
    Blind,
    /// By the emulation: a get, and a put with an intent.
    Emulated,
}

/// Whether data outlives the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// Gone with the engine.
    Volatile,
    /// There after close and open, and after a crash as far as acknowledged.
    Durable,
}

/// Whether the engine can tell cached from uncached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachedReads {
    /// It answers from its cache, and says `WouldBlock` only where a page must come from the device.
    Told,
    /// It cannot tell, and answers `WouldBlock` to every read that must not block.
    NotTold,
}
