//! A transaction: one snapshot, its own writes on top, all or nothing at the end.

use bytes::Bytes;

use crate::{
    Batch, BatchLimits, Claim, CommitReceipt, Direction, Durability, Estimate, KeyRange, Merge, ScanEnd,
    SnapshotTimestamp, StorageError, TreeId, emulate,
};

/// Whether a call may wait for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockingMode {
    /// Answer from memory, or with [`WouldBlock`](crate::ErrorKind::WouldBlock). For threads that serve many clients.
    CachedOnly,
    /// Wait for the device where need be.
    MayBlock,
}

/// A transaction. Any thread may go on with it; one at a time uses it.
///
/// # Reading
/// `get`, `get_many` and `scan` see the snapshot and this transaction's own writes over it. A
/// [`WouldBlock`](crate::ErrorKind::WouldBlock) leaves the transaction as it was: the call may be repeated with `MayBlock`.
///
/// # Writing
/// Writes stay private until `commit`. `put` and `delete` take an intent on the key: where another live transaction has it,
/// or a commit later than this snapshot changed it, they fail with [`Conflict`](crate::ErrorKind::Conflict), unless the engine
/// declares that it tells at commit. After a conflict the transaction can only be rolled back.
///
/// # Ending
/// `commit` or `rollback`; dropping a transaction rolls it back.
pub trait Transaction: Send {
    /// What this transaction sees.
    fn snapshot(&self) -> SnapshotTimestamp;

    /// The value of a key.
    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError>;

    /// The values of many keys, in the order of the keys. One that is not cached makes the whole call
    /// [`WouldBlock`](crate::ErrorKind::WouldBlock) if the caller must not block.
    fn get_many(
        &self,
        tree: TreeId,
        keys: &[&[u8]],
        blocking: BlockingMode,
    ) -> Result<Vec<Option<Bytes>>, StorageError> {
        emulate::get_many(self.as_dyn(), tree, keys, blocking)
    }

    /// Sets the value of a key, whether it was there or not.
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError>;

    /// Removes a key, whether it was there or not.
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError>;

    /// `put` without an intent: the caller vouches that an intent on another key (a document's primary key) keeps all other
    /// writers of this one away. Engines that take no advantage of it treat it as `put`.
    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.put(tree, key, value)
    }

    /// `delete` without an intent, as [`put_blind`](Transaction::put_blind).
    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        self.delete(tree, key)
    }

    /// Applies an operator to whatever value the key has, without reading it, and leaves what becomes of it. What that is stands in
    /// [`Merge`]; it is never an error.
    ///
    /// With [`Claim::Blind`] there is no intent: merges of a key by several transactions at once all count, in the order of their commits.
    /// The caller vouches that whoever puts or deletes the key meanwhile does so without regard to its value. With [`Claim::Intent`] it is
    /// an update as `put` is. An engine that emulates it reads, which may block, and takes an intent in any case; a
    /// [`WouldBlock`](crate::ErrorKind::WouldBlock) then leaves the transaction as it was.
    fn merge(
        &mut self,
        tree: TreeId,
        key: &[u8],
        merge: Merge<'_>,
        claim: Claim,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        let _an_intent_in_any_case = claim;
        emulate::merge(self.as_dyn_mut(), tree, key, merge, blocking)
    }

    /// Fills `batch` (emptied first) with the entries of `range` in `direction`, up to `limits`, and says whether there
    /// may be more. A caller goes on by narrowing the range past the last key: [`Cursor`](crate::Cursor) does that.
    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limits: BatchLimits,
        blocking: BlockingMode,
        batch: &mut Batch,
    ) -> Result<ScanEnd, StorageError>;

    /// Roughly how much lies in a range; cheap, never waits for the device beyond tree directories.
    fn estimate(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError>;

    /// Removes every key of the range that this transaction sees, with an intent on each as [`delete`](Transaction::delete) has. What it
    /// writes into the range afterwards is there.
    ///
    /// An engine may do it by one message, and claim the whole range instead: then it also conflicts with updates of keys within that it
    /// does not see. Blind writers are not kept away: the caller vouches that nobody else writes into the range without an intent
    /// between this snapshot and the commit; what somebody does, may be lost or stay.
    fn delete_range(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        emulate::delete_range(self.as_dyn_mut(), tree, range, blocking)
    }

    /// A point to come back to by [`rollback_to`](Transaction::rollback_to): the number of writes so far.
    fn savepoint(&mut self) -> Savepoint;

    /// Undoes every write since the savepoint. Intents taken since stay with the transaction.
    fn rollback_to(&mut self, savepoint: Savepoint);

    /// Makes all writes visible at one timestamp. For [`Logged`](Durability::Logged) the log record is in the kernel when this
    /// returns. For [`Synced`](Durability::Synced) it does not wait for the device: the receipt goes to
    /// [`Engine::when_durable`](crate::Engine::when_durable). An error means that nothing was written, but for one: where the log's own
    /// device fails the engine is stopped, the error is [`Closed`](crate::ErrorKind::Closed), and the commit may be seen, and may be there when the store
    /// is opened again.
    fn commit(self: Box<Self>, durability: Durability) -> Result<CommitReceipt, StorageError>;

    /// Forgets all writes.
    fn rollback(self: Box<Self>);

    /// This transaction as a trait object, for the emulations.
    fn as_dyn(&self) -> &dyn Transaction;

    /// This transaction as a mutable trait object, for the emulations.
    fn as_dyn_mut(&mut self) -> &mut dyn Transaction;
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
