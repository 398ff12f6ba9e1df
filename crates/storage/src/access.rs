//! The modes of a call: reading or writing, waiting or not, claiming a key or not, isolated how far.

/// Whether a transaction may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads only: `put` and `delete` are [`InvalidInput`](crate::ErrorKind::InvalidInput).
    Read,
    /// Reads and writes.
    Write,
}

/// Whether other transactions may change what a transaction has read, before it commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// They may: two transactions that each read what the other writes both commit.
    Snapshot,
    /// They may not: what it reads is claimed. The transactions of this level have a serial order.
    Serializable,
}

/// Whether a call may wait for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockingMode {
    /// Answer from memory, or with [`WouldBlock`](crate::ErrorKind::WouldBlock). For threads that serve many
    /// clients.
    CachedOnly,
    /// Wait for the device where need be.
    MayBlock,
}

/// How a write keeps other writers of its key away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// By an intent on the key.
    Intent,
    /// By an intent on another key, as the caller vouches: see
    /// [`Transaction::put_blind`](crate::Transaction::put_blind).
    Blind,
}
