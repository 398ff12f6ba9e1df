//! The private writes of a transaction that may be larger than memory.
//!
//! # Terms
//! - *Layer*: writes that left memory at one time, sorted by tree and key, in a file of their own
//!   ([`SpillSpace`]).
//! - *Number* of a write: how many the transaction had made before it. A savepoint is a number.
//!
//! # Algorithm
//! 1. Writes collect in a [`WriteSet`]. When all transactions of the store together hold more than the
//!    budget, the one that writes next turns its own set into a layer and begins an empty one.
//! 2. A get asks memory, then the layers, newest first. A filter in memory skips layers that do not have the
//!    key. A scan merges memory, layers and engine ([`own`]).
//! 3. A write that a later one covers goes into the layer only if a savepoint lies between the two. A
//!    rollback drops the layers after the savepoint. A layer with writes on both sides of it gets a *limit*,
//!    and shows only those before it.
//! 4. When there are [`MERGED_LAYERS`] layers that were merged equally often, one layer takes their place.
//! 5. A commit reads everything once, in order, each key's newest write ([`SpillingWrites::merged`]).
//!
//! # Memory
//! The budget bounds the writes in memory, plus a small share for each transaction beyond it. Of a layer
//! there stay in memory a filter of 1.25 bytes a write, the last key of each page of 32 KiB, and one page.
//!
//! # Failures
//! Where the device fails, for example because it is full, the write that would have caused a layer is
//! refused. The transaction is as it was before.

mod layer;
mod merged;
mod own;
mod page;
mod space;

use std::sync::Arc;

use layer::{Layer, LayerWriter};
use own::SpilledOwn;
use page::Numbered;

use crate::access::{BlockingMode, Claim};
use crate::batch::{Batch, BatchLimits, ScanEnd};
use crate::error::{ErrorKind, StorageError};
use crate::identifiers::{Savepoint, TreeId};
use crate::key_range::{Direction, KeyRange};
use crate::merge::Merge;
use crate::write_set::OverOwn;
use crate::write_set::overlay::{BaseScan, Wanted, scan_over};
use crate::write_set::{Change, Write, WriteSet};

pub use merged::MergedWrites;
pub use space::{SpillFigures, SpillSpace};

/// This many layers that were merged equally often are merged into one.
const MERGED_LAYERS: usize = 64;

/// The private writes of one transaction. See the module's head. Without a space (the default) they stay in
/// memory.
pub struct SpillingWrites {
    /// `None`: writes never leave memory.
    space: Option<Arc<SpillSpace>>,
    memory: WriteSet,
    /// Oldest first.
    layers: Vec<Layer>,
    /// The number of the first write in memory.
    spilled: usize,
    /// Numbers that lie in memory and may be rolled back to, ascending.
    savepoints: Vec<usize>,
    /// Memory that the space knows of.
    counted: usize,
    /// Memory from which on it looks at the budget again.
    look_at: usize,
}

impl SpillingWrites {
    /// No writes yet; they may leave memory for this space.
    pub fn new(space: &Arc<SpillSpace>) -> SpillingWrites {
        SpillingWrites::with_space(Some(Arc::clone(space)))
    }

    fn with_space(space: Option<Arc<SpillSpace>>) -> SpillingWrites {
        SpillingWrites {
            look_at: space.as_ref().map_or(usize::MAX, |space| space.look_bytes()),
            space,
            memory: WriteSet::new(),
            layers: Vec::new(),
            spilled: 0,
            savepoints: Vec::new(),
            counted: 0,
        }
    }

    /// Adds a write as it is. Merges come by [`SpillingWrites::merge`].
    ///
    /// # Errors
    /// The device refused what had to go out of memory: then this write was not made, and all before it stay.
    pub fn write(&mut self, write: Write<'_>) -> Result<(), StorageError> {
        if self.memory.memory() >= self.look_at {
            self.look()?;
        }
        self.memory.write(write);
        Ok(())
    }

    /// As [`WriteSet::merge`]: the latest write alone decides the key, wherever the writes before it are.
    ///
    /// # Errors
    /// Those of [`SpillingWrites::write`], of [`SpillingWrites::latest`] and of [`WriteSet::merge`]. The set
    /// is as it was.
    pub fn merge(
        &mut self,
        tree: TreeId,
        key: &[u8],
        merge: Merge<'_>,
        claim: Claim,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        let over_own = self.latest(tree, key, blocking, |own| OverOwn::new(Some(own), merge))?;
        let over_own = over_own.unwrap_or_else(|| OverOwn::new(None, merge))?;
        self.write(Write { tree, key, change: over_own.change(), claim })
    }

    /// The latest write of a key, read by `read`; `None` if there is none.
    ///
    /// # Errors
    /// [`WouldBlock`](crate::ErrorKind::WouldBlock) where it has to be read from the device, and the caller
    /// must not block.
    pub fn latest<T>(
        &self,
        tree: TreeId,
        key: &[u8],
        blocking: BlockingMode,
        read: impl Fn(Change<'_>) -> T,
    ) -> Result<Option<T>, StorageError> {
        if let Some(write) = self.memory.latest(tree, key) {
            return Ok(Some(read(write.change)));
        }
        for layer in self.layers.iter().rev() {
            let found = layer.get(tree, key, blocking, |entry| read(entry.write.change))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// As [`WriteSet::scan_over`].
    ///
    /// # Errors
    /// Those of `base`, and [`WouldBlock`](crate::ErrorKind::WouldBlock) as for [`SpillingWrites::latest`].
    #[allow(clippy::too_many_arguments, reason = "those of Transaction::scan, and the engine's own scan")]
    pub fn scan_over(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limits: BatchLimits,
        blocking: BlockingMode,
        batch: &mut Batch,
        base: &mut BaseScan<'_>,
    ) -> Result<ScanEnd, StorageError> {
        if self.layers.is_empty() {
            return self.memory.scan_over(tree, range, direction, limits, batch, base);
        }
        batch.clear();
        if range.is_empty() {
            return Ok(ScanEnd::Done);
        }
        let order = self.memory.order_of(tree);
        let memory = self.memory.own(&order, range, direction);
        let own = SpilledOwn::new(memory, &self.layers, tree, range, direction, blocking)?;
        scan_over(own, Wanted { range, direction, limits }, batch, base)
    }

    /// All writes, if they are in memory.
    pub fn in_memory(&self) -> Option<&WriteSet> {
        self.layers.is_empty().then_some(&self.memory)
    }

    /// The latest write of each key, by tree and key. May be read again and again.
    ///
    /// # Errors
    /// The device refused to read.
    pub fn merged(&self) -> Result<MergedWrites<'_>, StorageError> {
        MergedWrites::new(self.memory_versions(), &self.layers)
    }

    /// Writes so far, covered ones too.
    pub fn len(&self) -> usize {
        self.spilled + self.memory.len()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys written, about: one that lies in several layers counts more than once.
    pub fn keys(&self) -> usize {
        self.memory.keys() + self.layers.iter().map(|layer| layer.entries).sum::<usize>()
    }

    /// Bytes of keys and values, covered ones too, but not those that went out of memory after they were
    /// covered.
    pub fn bytes(&self) -> usize {
        self.memory.bytes() + self.layers.iter().map(|layer| layer.content_bytes).sum::<usize>()
    }

    /// Bytes of memory that the writes take, about.
    pub fn memory(&self) -> usize {
        self.memory.memory() + self.layers.iter().map(Layer::memory).sum::<usize>()
    }

    /// A point to come back to.
    pub fn savepoint(&mut self) -> Savepoint {
        let number = self.len();
        let may_spill = self.space.is_some() && !self.memory.is_empty();
        if may_spill && self.savepoints.last() != Some(&number) {
            self.savepoints.push(number);
        }
        Savepoint::new(number)
    }

    /// Forgets every write since the savepoint. One that lies ahead (made before an earlier rollback) changes
    /// nothing.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        let number = savepoint.writes();
        while self.savepoints.last().is_some_and(|last| *last > number) {
            self.savepoints.pop();
        }
        if number >= self.spilled {
            self.memory.rollback_to(Savepoint::new(number - self.spilled));
            return;
        }
        self.memory.clear();
        self.layers.retain(|layer| layer.first < number);
        if let Some(last) = self.layers.last_mut() {
            last.limit = last.limit.min(number);
        }
        self.spilled = number;
    }

    /// Counts what is in memory, and puts it out if all transactions together have too much.
    fn look(&mut self) -> Result<(), StorageError> {
        let Some(space) = self.space.clone() else { return Ok(()) };
        let own = self.memory.memory();
        space.recount(self.counted, own);
        self.counted = own;
        if space.is_too_much(own) {
            self.spill(&space)?;
        }
        self.look_at = self.counted + space.look_bytes();
        Ok(())
    }

    /// Puts all that is in memory into a layer.
    fn spill(&mut self, space: &Arc<SpillSpace>) -> Result<(), StorageError> {
        let end = self.len();
        let layer = {
            let writes = self.memory_versions();
            let mut writer = LayerWriter::new(space, writes.len(), self.spilled..end, 0)?;
            writes.iter().try_for_each(|entry| writer.push(entry))?;
            writer.finish()?
        };
        self.layers.push(layer);
        self.spilled = end;
        self.memory = WriteSet::new();
        self.savepoints.clear();
        space.recount(self.counted, 0);
        self.counted = 0;
        match self.merge_layers(space) {
            // The layers stay as they are, and are merged when there is room.
            Err(error) if error.kind() == ErrorKind::Io => Ok(()),
            outcome => outcome,
        }
    }

    /// The writes in memory in the order of a layer, without covered ones that no savepoint can bring back.
    fn memory_versions(&self) -> Vec<Numbered<'_>> {
        let numbered = self.memory.versions().zip(self.spilled..);
        let mut versions: Vec<Numbered<'_>> =
            numbered.map(|(write, number)| Numbered { number, write }).collect();
        versions.sort_unstable_by(Numbered::order);
        let mut newer: Option<Numbered<'_>> = None;
        versions.retain(|version| {
            let covering = newer.replace(*version).filter(|newer| {
                (newer.write.tree, newer.write.key) == (version.write.tree, version.write.key)
            });
            covering.is_none_or(|covering| {
                let next = self.savepoints.partition_point(|number| *number <= version.number);
                self.savepoints.get(next).is_some_and(|number| *number <= covering.number)
            })
        });
        versions
    }

    /// Merges the newest layers, if there are enough that were merged equally often.
    fn merge_layers(&mut self, space: &Arc<SpillSpace>) -> Result<(), StorageError> {
        loop {
            let Some(level) = self.layers.last().map(|layer| layer.level) else { return Ok(()) };
            let from = self.layers.iter().rposition(|layer| layer.level != level).map_or(0, |at| at + 1);
            if self.layers.len() - from < MERGED_LAYERS {
                return Ok(());
            }
            let layers = &self.layers[from..];
            let writes = layers.iter().map(|layer| layer.entries).sum();
            let numbers = layers[0].first..self.spilled;
            let mut writer = LayerWriter::new(space, writes, numbers, level + 1)?;
            let mut merged = MergedWrites::new(Vec::new(), layers)?;
            while let Some(entry) = merged.next_version()? {
                writer.push(&entry)?;
            }
            drop(merged);
            let layer = writer.finish()?;
            self.layers.truncate(from);
            self.layers.push(layer);
        }
    }
}

impl Default for SpillingWrites {
    fn default() -> SpillingWrites {
        SpillingWrites::with_space(None)
    }
}

impl Drop for SpillingWrites {
    fn drop(&mut self) {
        if let Some(space) = &self.space {
            space.recount(self.counted, 0);
        }
    }
}

impl std::fmt::Debug for SpillingWrites {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SpillingWrites({} writes, {} layers, {:?})", self.len(), self.layers.len(), self.memory)
    }
}

#[cfg(test)]
mod tests;
