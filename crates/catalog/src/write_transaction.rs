//! The transaction of statements that write documents: the engine's transaction, and beside it the deltas of
//! the counters.
//!
//! A load of 1,000 documents changes two counters 2,000 times. In the engine's write set each change would
//! cost as much as an index entry. So the deltas are summed here, and merged once at the commit.
//!
//! # Invariants
//! - The deltas are what the writes of the engine's transaction change. So [`WriteTransaction::rollback_to`]
//!   puts both back together.
//! - The engine's transaction has merged deltas only after [`WriteTransaction::write_counters`].

use std::sync::Arc;

use pando_storage::{CommitReceipt, Durability, Savepoint, StorageError, Ticket, Transaction, TreeId};

use crate::counters::{self, CounterKey, CounterKind};
use crate::sharing::Sharing;
use crate::store::{Store, TreeNumber};

/// A transaction that may write documents. It dereferences to the engine's transaction for reads.
pub struct WriteTransaction {
    transaction: Box<dyn Transaction>,
    /// The tree of counters.
    counters: TreeId,
    /// The tree of the records of sessions.
    sessions: TreeId,
    deltas: Deltas,
    /// Documents and bytes of the capped collection that it writes to, before its own writes.
    totals_before: Option<CollectionDelta>,
    /// In a shared store: the membership, and the epoch in which it has begun.
    begun_in: Option<(Arc<Sharing>, u64)>,
}

/// A point to come back to.
#[derive(Clone, Debug)]
pub struct WriteSavepoint {
    writes: Savepoint,
    deltas: Deltas,
}

/// The changes of counters by one transaction.
#[derive(Clone, Debug, Default)]
struct Deltas {
    /// Of the collection that was written to first, nearly always the only one. It stands apart so that a
    /// savepoint copies it without an allocation.
    first: Option<CollectionDelta>,
    others: Vec<CollectionDelta>,
    /// Of the other counters: surpluses and patches.
    further: Vec<CounterDelta>,
    /// Of partitions.
    partitions: Vec<CollectionDelta>,
    /// The first record of a capped collection that the transaction has not removed.
    first_kept: Option<(TreeNumber, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct CollectionDelta {
    collection: TreeNumber,
    documents: i64,
    bytes: i64,
}

#[derive(Clone, Copy, Debug)]
struct CounterDelta {
    kind: CounterKind,
    number: TreeNumber,
    amount: i64,
}

impl std::ops::Deref for WriteTransaction {
    type Target = dyn Transaction;

    fn deref(&self) -> &(dyn Transaction + 'static) {
        &*self.transaction
    }
}

impl WriteTransaction {
    /// A transaction that was begun in this epoch, if the store is shared.
    pub(crate) fn new(
        transaction: Box<dyn Transaction>,
        store: &Store,
        epoch: Option<u64>,
    ) -> WriteTransaction {
        let Store { counters, sessions, .. } = *store;
        let (deltas, totals_before) = (Deltas::default(), None);
        let begun_in = store.sharing.clone().zip(epoch);
        WriteTransaction { transaction, counters, sessions, deltas, totals_before, begun_in }
    }

    pub(crate) fn sessions_tree(&self) -> TreeId {
        self.sessions
    }

    /// The engine's transaction, to write to.
    pub(crate) fn engine(&mut self) -> &mut dyn Transaction {
        &mut *self.transaction
    }

    /// See [`Transaction::present_ticket`].
    pub fn present_ticket(&mut self, ticket: Option<Ticket>) {
        self.transaction.present_ticket(ticket);
    }

    /// Notes a change of the documents of a collection.
    pub(crate) fn count_documents(&mut self, collection: TreeNumber, documents: i64, bytes: i64) {
        let delta = self.deltas.of_collection(collection);
        delta.documents += documents;
        delta.bytes += bytes;
    }

    /// Notes documents of a collection that are patched without a read.
    pub(crate) fn count_patches(&mut self, collection: TreeNumber, patches: i64) {
        self.deltas.add(CounterKind::Patches, collection, patches);
    }

    /// Notes a change of the documents of a partition, by the number of its counters.
    pub(crate) fn count_in_partition(&mut self, partition: TreeNumber, documents: i64, bytes: i64) {
        let partitions = &mut self.deltas.partitions;
        match partitions.iter_mut().find(|delta| delta.collection == partition) {
            Some(delta) => {
                delta.documents += documents;
                delta.bytes += bytes;
            }
            None => partitions.push(CollectionDelta { collection: partition, documents, bytes }),
        }
    }

    /// Notes that an index has so many entries more than the collection has documents more.
    pub(crate) fn count_surplus(&mut self, index: TreeNumber, entries: i64) {
        self.deltas.add(CounterKind::Surplus, index, entries);
    }

    /// Documents and bytes of a capped collection with its own writes; `None` before
    /// [`begin_totals`](WriteTransaction::begin_totals).
    pub(crate) fn totals(&mut self, collection: TreeNumber) -> Option<(i64, i64)> {
        let before = self.totals_before.filter(|before| before.collection == collection)?;
        let own = self.deltas.of_collection(collection);
        Some((before.documents + own.documents, before.bytes + own.bytes))
    }

    /// Takes the counters of a capped collection at its snapshot. Gives the totals with its own writes.
    pub(crate) fn begin_totals(&mut self, collection: TreeNumber, documents: i64, bytes: i64) -> (i64, i64) {
        self.totals_before = Some(CollectionDelta { collection, documents, bytes });
        self.totals(collection).unwrap_or((documents, bytes))
    }

    /// The first record of a capped collection that it has not removed; `None` where it has removed none.
    pub(crate) fn first_kept(&self, collection: TreeNumber) -> Option<u64> {
        self.deltas.first_kept.filter(|(of, _)| *of == collection).map(|(_, record)| record)
    }

    /// Notes that it has removed all records of a capped collection before this one.
    pub(crate) fn keep_from(&mut self, collection: TreeNumber, record: u64) {
        self.deltas.first_kept = Some((collection, record));
    }

    /// A point for [`rollback_to`](WriteTransaction::rollback_to).
    pub fn savepoint(&mut self) -> WriteSavepoint {
        WriteSavepoint { writes: self.transaction.savepoint(), deltas: self.deltas.clone() }
    }

    /// Undoes every write since the savepoint. Intents taken since then stay with the transaction.
    pub fn rollback_to(&mut self, savepoint: WriteSavepoint) {
        self.transaction.rollback_to(savepoint.writes);
        self.deltas = savepoint.deltas;
    }

    /// Merges the deltas now, so that reads of counters by this transaction have its own writes.
    pub fn write_counters(&mut self) -> Result<(), StorageError> {
        let deltas = std::mem::take(&mut self.deltas);
        self.totals_before = None;
        for delta in deltas.first.iter().chain(&deltas.others) {
            self.merge(CounterKind::Documents, delta.collection, delta.documents)?;
            self.merge(CounterKind::Bytes, delta.collection, delta.bytes)?;
        }
        for delta in &deltas.partitions {
            self.merge(CounterKind::PartitionDocuments, delta.collection, delta.documents)?;
            self.merge(CounterKind::PartitionBytes, delta.collection, delta.bytes)?;
        }
        for delta in &deltas.further {
            self.merge(delta.kind, delta.number, delta.amount)?;
        }
        Ok(())
    }

    fn merge(&mut self, kind: CounterKind, number: TreeNumber, amount: i64) -> Result<(), StorageError> {
        counters::add(&mut *self.transaction, self.counters, &CounterKey::new(kind, number), amount)
    }

    /// Makes all writes visible at one timestamp, those of the counters too. See [`Transaction::commit`].
    pub fn commit(mut self, durability: Durability) -> Result<CommitReceipt, StorageError> {
        self.write_counters()?;
        if let Some((sharing, epoch)) = &self.begun_in {
            sharing.check_commit(*epoch)?;
        }
        self.transaction.commit(durability)
    }

    /// Discards all writes.
    pub fn rollback(self) {
        self.transaction.rollback();
    }
}

impl Deltas {
    fn add(&mut self, kind: CounterKind, number: TreeNumber, amount: i64) {
        if amount == 0 {
            return;
        }
        match self.further.iter_mut().find(|delta| delta.kind == kind && delta.number == number) {
            Some(delta) => delta.amount += amount,
            None => self.further.push(CounterDelta { kind, number, amount }),
        }
    }

    fn of_collection(&mut self, collection: TreeNumber) -> &mut CollectionDelta {
        let none = CollectionDelta { collection, documents: 0, bytes: 0 };
        let first = self.first.get_or_insert(none);
        if first.collection == collection {
            return first;
        }
        let at = self.others.iter().position(|delta| delta.collection == collection);
        let at = at.unwrap_or_else(|| {
            self.others.push(none);
            self.others.len() - 1
        });
        &mut self.others[at]
    }
}
