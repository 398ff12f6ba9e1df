//! The transaction: one snapshot, own writes over it, committed as a whole or not at all.

mod cursor;
pub(crate) mod emulate;

use bytes::Bytes;

pub use cursor::{Cursor, RunValues};

use crate::access::{BlockingMode, Claim};
use crate::batch::{Batch, BatchLimits, ScanEnd};
use crate::durability::{CommitReceipt, Durability};
use crate::error::StorageError;
use crate::identifiers::{Savepoint, SnapshotTimestamp, TransactionId, TreeId};
use crate::intents::Ticket;
use crate::key_range::{Direction, KeyRange};
use crate::merge::Merge;
use crate::statistics::Estimate;

/// A transaction. Any thread may go on with it; one at a time uses it.
///
/// # Reading
/// `get` and `scan` see the snapshot and this transaction's own writes over it. A
/// [`WouldBlock`](crate::ErrorKind::WouldBlock) leaves the transaction as it was: the call may be repeated
/// with `MayBlock`.
///
/// # Writing
/// Writes stay private until `commit`. `put` and `delete` take an intent on the key. They fail with
/// [`Conflict`](crate::ErrorKind::Conflict) where another live transaction has the intent, or where a commit
/// later than this snapshot changed the key. An engine may declare that it reports conflicts at commit
/// instead. After a conflict the transaction can only be rolled back. Where the error tells the
/// [contested key](StorageError::contested_key), rolling back to a savepoint before that write is enough.
///
/// # Claims of readers
/// Any write, a blind one included, also fails with [`Conflict`](crate::ErrorKind::Conflict) where a
/// serializable transaction has read the key. So does the commit, if that was read after the write. In a
/// serializable transaction a read may fail so, after it has written, and a write after it has read: a later
/// commit has changed what it read.
///
/// # Ending
/// `commit` or `rollback`; dropping a transaction rolls it back.
pub trait Transaction: Send {
    /// The newest commit that this transaction sees.
    fn snapshot(&self) -> SnapshotTimestamp;

    /// Its number among the intents, if the engine has such.
    fn id(&self) -> Option<TransactionId> {
        None
    }

    /// Claims further keys with the ticket of a statement that has waited for one, see
    /// [`Engine::intents`](crate::Engine::intents).
    fn present_ticket(&mut self, ticket: Option<Ticket>) {
        let _no_queues = ticket;
    }

    /// The value of a key.
    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError>;

    /// Tells of keys that [`get`](Transaction::get) is about to ask for. An engine that sends each request
    /// over a network may read all of them in one. Others leave the iterator alone, which derives the keys.
    ///
    /// The engine keeps the values until they are asked for, within a bound of its own. A caller tells of a
    /// thousand keys at most.
    fn expect_gets(
        &self,
        tree: TreeId,
        keys: &mut dyn Iterator<Item = Vec<u8>>,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        let _not_needed = (tree, keys, blocking);
        Ok(())
    }

    /// Whether each `get` of a key that was not [expected](Transaction::expect_gets) sends a request, so that
    /// it is worth while to look for keys ahead.
    fn sends_gets(&self) -> bool {
        false
    }

    /// Sets the value of a key, whether it was there or not.
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError>;

    /// Removes a key, whether it was there or not.
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError>;

    /// `put` without an intent. The caller vouches that an intent on another key (a document's primary key)
    /// keeps all other writers of this one away. An engine may treat it as `put`.
    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.put(tree, key, value)
    }

    /// `delete` without an intent, as [`put_blind`](Transaction::put_blind).
    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        self.delete(tree, key)
    }

    /// Applies an operator to the present value of the key without reading it, see [`Merge`]. The operator
    /// itself never fails.
    ///
    /// With [`Claim::Blind`] there is no intent. Concurrent merges of a key by several transactions all
    /// count, in the order of their commits. The caller vouches that a transaction that puts or deletes the
    /// key meanwhile does so without regard to its value. With [`Claim::Intent`] the merge is an update like
    /// `put`. A patch always is one.
    ///
    /// An engine that emulates it reads, which may block, and takes an intent in either case. A
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

    /// Fills `batch` (emptied first) with the entries of `range` in `direction`, up to `limits`, and reports
    /// whether there may be more. A caller goes on by narrowing the range past the last key:
    /// [`Cursor`](crate::Cursor) does that.
    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limits: BatchLimits,
        blocking: BlockingMode,
        batch: &mut Batch,
    ) -> Result<ScanEnd, StorageError>;

    /// Entries and bytes of a range, about; cheap, and never waits for the device beyond tree directories.
    fn estimate(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError>;

    /// Removes every key of the range that this transaction sees, with an intent on each as
    /// [`delete`](Transaction::delete) has. Keys that it writes into the range afterwards are there.
    ///
    /// An engine may do it by one message, and claim the whole range instead. Then it also conflicts with
    /// updates of keys within the range that it does not see. Blind writers are not kept away. The caller
    /// vouches that no other transaction writes into the range without an intent between this snapshot and
    /// the commit; such a write may be lost or stay.
    fn delete_range(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        emulate::delete_range(self.as_dyn_mut(), tree, range, blocking)
    }

    /// Whether its reads are claimed, so that a read of a key which many transactions write keeps all of them
    /// away.
    fn claims_reads(&self) -> bool {
        false
    }

    /// Whether it has writes of its own. Those that were undone may count.
    fn has_writes(&self) -> bool;

    /// Whether it has written so much that several smaller transactions are quicker. A caller whose writes
    /// need not be one transaction commits then, and goes on in another.
    fn is_large(&self) -> bool {
        false
    }

    /// A point for [`rollback_to`](Transaction::rollback_to): the number of writes so far.
    fn savepoint(&mut self) -> Savepoint;

    /// Undoes every write since the savepoint. Intents taken since then stay with the transaction.
    fn rollback_to(&mut self, savepoint: Savepoint);

    /// Makes all writes visible at one timestamp.
    ///
    /// - For [`Logged`](Durability::Logged) the log record is in the kernel when this returns.
    /// - For [`Synced`](Durability::Synced) it does not wait for the device: the caller hands the receipt to
    ///   [`Engine::when_durable`](crate::Engine::when_durable).
    ///
    /// After an error no write is committed, with one exception. Where the log's own device fails, the engine
    /// stops and the error is [`Closed`](crate::ErrorKind::Closed). The commit may then be visible, and may
    /// be there when the store is opened again.
    fn commit(self: Box<Self>, durability: Durability) -> Result<CommitReceipt, StorageError>;

    /// Discards all writes.
    fn rollback(self: Box<Self>);

    /// This transaction as a trait object, for the emulations.
    fn as_dyn(&self) -> &dyn Transaction;

    /// This transaction as a mutable trait object, for the emulations.
    fn as_dyn_mut(&mut self) -> &mut dyn Transaction;
}
