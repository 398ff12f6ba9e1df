//! The numbers of the contract, each its own type so that the compiler refuses to mix them.

use std::fmt;
use std::num::NonZeroU64;

/// A tree, as its engine numbers it. Never reused within a store, so that a dropped tree's number stays dead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(u32);

impl TreeId {
    /// The tree of this number.
    pub const fn new(number: u32) -> TreeId {
        TreeId(number)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tree-{}", self.0)
    }
}

impl fmt::Display for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A place in the write-ahead log: grows with every record, and never comes back after a restart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(u64);

impl Lsn {
    /// Before the first record.
    pub const ZERO: Lsn = Lsn(0);
    /// After every record.
    pub const MAX: Lsn = Lsn(u64::MAX);

    /// The place of this number.
    pub const fn new(number: u64) -> Lsn {
        Lsn(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The place after this one.
    ///
    /// # Panics
    /// At the end of the number space, which a store does not reach at a billion records a second for 500
    /// years.
    #[must_use]
    pub fn next(self) -> Lsn {
        Lsn(self.0.checked_add(1).expect("the LSN space of 64 bits does not run out"))
    }
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lsn-{}", self.0)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// When a transaction committed: a logical time, strictly increasing with each commit of a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CommitTimestamp(u64);

impl CommitTimestamp {
    /// Before the first commit.
    pub const ZERO: CommitTimestamp = CommitTimestamp(0);

    /// The commit of this number.
    pub const fn new(number: u64) -> CommitTimestamp {
        CommitTimestamp(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The commit after this one.
    ///
    /// # Panics
    /// At the end of the number space.
    #[must_use]
    pub fn next(self) -> CommitTimestamp {
        CommitTimestamp(self.0.checked_add(1).expect("the timestamp space of 64 bits does not run out"))
    }
}

impl fmt::Debug for CommitTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "commit-{}", self.0)
    }
}

/// The newest commit that a transaction sees; it sees all earlier ones, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SnapshotTimestamp(u64);

impl SnapshotTimestamp {
    /// The empty store.
    pub const ZERO: SnapshotTimestamp = SnapshotTimestamp(0);
    /// A snapshot that sees everything there is: for readers that want the newest version whatever its time.
    pub const MAX: SnapshotTimestamp = SnapshotTimestamp(u64::MAX);

    /// The snapshot that ends with the commit of this number.
    pub const fn new(number: u64) -> SnapshotTimestamp {
        SnapshotTimestamp(number)
    }

    /// The snapshot of a reader that begins just after this commit.
    pub const fn after(commit: CommitTimestamp) -> SnapshotTimestamp {
        SnapshotTimestamp(commit.0)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether this snapshot contains that commit.
    pub const fn sees(self, commit: CommitTimestamp) -> bool {
        commit.0 <= self.0
    }
}

impl fmt::Debug for SnapshotTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "snapshot-{}", self.0)
    }
}

/// A point within a transaction's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(usize);

impl Savepoint {
    /// The savepoint after this many writes.
    pub const fn new(writes: usize) -> Savepoint {
        Savepoint(writes)
    }

    /// Writes before it.
    pub const fn writes(self) -> usize {
        self.0
    }
}

/// A transaction as its engine numbers it; never zero, never reused while the engine is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(NonZeroU64);

impl TransactionId {
    /// The transaction of this number.
    ///
    /// # Panics
    /// For zero, which means nobody.
    pub const fn new(number: u64) -> TransactionId {
        match NonZeroU64::new(number) {
            Some(number) => TransactionId(number),
            None => panic!("transactions are numbered from one"),
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}
