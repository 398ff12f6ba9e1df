//! A transaction that would block at every third read that must not block, as one whose pages are partly on
//! the device; on request one of an engine that sends each read over a network.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use pando_catalog::{
    BlockingMode, Bytes, CommitReceipt, Direction, Durability, Estimate, KeyRange, Savepoint,
    SnapshotTimestamp, StorageError, Transaction,
};
use pando_storage::{Batch, BatchLimits, ScanEnd, TreeId};

/// Another transaction, and how many reads that must not block there have been.
pub struct Reluctant {
    inner: Box<dyn Transaction>,
    reads: Cell<u32>,
    network: Network,
    /// Keys that it was told of, and that it was not asked for.
    expected: RefCell<HashSet<Vec<u8>>>,
    /// Gets of one key that it was not told of.
    lone_gets: Cell<u32>,
    /// Times that it was told of keys.
    requests: Cell<u32>,
}

/// Whether reads are requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    None,
    Between,
}

impl Reluctant {
    pub fn new(inner: Box<dyn Transaction>) -> Reluctant {
        Reluctant::over(Network::None, inner)
    }

    pub fn over(network: Network, inner: Box<dyn Transaction>) -> Reluctant {
        let (reads, lone_gets, requests) = Default::default();
        Reluctant { inner, reads, network, expected: RefCell::default(), lone_gets, requests }
    }

    /// Gets of keys that it was not told of.
    pub fn lone_gets(&self) -> u32 {
        self.lone_gets.get()
    }

    /// Times that it was told of keys.
    pub fn requests(&self) -> u32 {
        self.requests.get()
    }

    fn read(&self, blocking: BlockingMode) -> Result<(), StorageError> {
        self.reads.set(self.reads.get() + 1);
        if blocking == BlockingMode::CachedOnly && self.reads.get().is_multiple_of(3) {
            return Err(StorageError::would_block());
        }
        Ok(())
    }
}

impl Transaction for Reluctant {
    fn snapshot(&self) -> SnapshotTimestamp {
        self.inner.snapshot()
    }

    fn get(&self, tree: TreeId, key: &[u8], blocking: BlockingMode) -> Result<Option<Bytes>, StorageError> {
        self.read(blocking)?;
        if !self.expected.borrow_mut().remove(key) {
            self.lone_gets.set(self.lone_gets.get() + 1);
        }
        self.inner.get(tree, key, BlockingMode::MayBlock)
    }

    fn expect_gets(
        &self,
        _tree: TreeId,
        keys: &mut dyn Iterator<Item = Vec<u8>>,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        if self.network == Network::None {
            return Ok(());
        }
        self.read(blocking)?;
        self.requests.set(self.requests.get() + 1);
        self.expected.replace(keys.collect());
        assert!(self.expected.borrow().len() <= 1_000, "too many keys of one request");
        Ok(())
    }

    fn sends_gets(&self) -> bool {
        self.network == Network::Between
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.inner.put(tree, key, value)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<(), StorageError> {
        self.inner.delete(tree, key)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limits: BatchLimits,
        blocking: BlockingMode,
        batch: &mut Batch,
    ) -> Result<ScanEnd, StorageError> {
        self.read(blocking)?;
        self.inner.scan(tree, range, direction, limits, BlockingMode::MayBlock, batch)
    }

    fn estimate(
        &self,
        tree: TreeId,
        range: &KeyRange,
        blocking: BlockingMode,
    ) -> Result<Estimate, StorageError> {
        self.read(blocking)?;
        self.inner.estimate(tree, range, BlockingMode::MayBlock)
    }

    fn has_writes(&self) -> bool {
        self.inner.has_writes()
    }

    fn is_large(&self) -> bool {
        self.inner.is_large()
    }

    fn savepoint(&mut self) -> Savepoint {
        self.inner.savepoint()
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.inner.rollback_to(savepoint);
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<CommitReceipt, StorageError> {
        self.inner.commit(durability)
    }

    fn rollback(self: Box<Self>) {
        self.inner.rollback();
    }

    fn as_dyn(&self) -> &dyn Transaction {
        self
    }

    fn as_dyn_mut(&mut self) -> &mut dyn Transaction {
        self
    }
}
