//! The folder for the layers of all transactions of a store, and the memory that their writes may take
//! together.
//!
//! Each layer is a file of its own, written through the page cache and never synced. It is removed with its
//! transaction. No transaction outlives its process, so opening the store removes all files that are left.

use pando_environment::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_environment::{Environment, EnvironmentError, File};

use crate::error::{ErrorKind, StorageError};
use crate::memory::MemoryAccount;

/// The smallest memory that a transaction is left before its writes go out while all together have too much.
const SHARE_MIN: usize = 256 << 10;
/// Raw bytes of a page of a layer.
const PAGE_BYTES: usize = 32 << 10;
/// A transaction checks the common budget each time that it took this many bytes more.
const LOOK_BYTES: usize = 64 << 10;

/// Counts since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillFigures {
    /// Memory that the writes of all transactions take now.
    pub memory_bytes: u64,
    /// Memory that indexes and filters of layers take now.
    pub layer_memory_bytes: u64,
    /// Bytes of layers on the device now.
    pub spilled_bytes: u64,
    /// Layers that were written.
    pub layers: u64,
    /// Bytes that were written to layers, as they stand there.
    pub written_bytes: u64,
    /// Bytes that were read back.
    pub read_bytes: u64,
}

/// See the module's head.
pub struct SpillSpace {
    environment: Environment,
    folder: PathBuf,
    budget: AtomicUsize,
    memory: AtomicUsize,
    /// Of layers: it does not count against the budget, for putting out more would only make it more.
    pub(super) layer_memory: MemoryAccount,
    next_file: AtomicU64,
    spilled: AtomicU64,
    layers: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
}

impl SpillSpace {
    /// The layers of a store, in a folder of their own. Files that an earlier process left there are removed.
    /// The folder is made when it is needed.
    ///
    /// # Errors
    /// The folder cannot be looked into.
    pub fn open(
        environment: &Environment,
        folder: &Path,
        budget: usize,
    ) -> Result<Arc<SpillSpace>, StorageError> {
        let files = environment.files();
        if files.exists(folder).map_err(failed)? {
            for name in files.list(folder).map_err(failed)? {
                files.remove(&folder.join(name)).map_err(failed)?;
            }
        }
        Ok(Arc::new(SpillSpace {
            environment: environment.clone(),
            folder: folder.to_owned(),
            budget: AtomicUsize::new(budget),
            memory: AtomicUsize::new(0),
            layer_memory: MemoryAccount::default(),
            next_file: AtomicU64::new(1),
            spilled: AtomicU64::new(0),
            layers: AtomicU64::new(0),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
        }))
    }

    /// Bytes of memory that the writes of all transactions may take.
    pub fn budget(&self) -> usize {
        self.budget.load(Ordering::Relaxed)
    }

    /// Changes the budget; transactions keep to it from their next writes on.
    pub fn set_budget(&self, bytes: usize) {
        self.budget.store(bytes, Ordering::Relaxed);
    }

    /// Present sizes, and counts since the store was opened.
    pub fn figures(&self) -> SpillFigures {
        SpillFigures {
            memory_bytes: self.memory.load(Ordering::Relaxed) as u64,
            layer_memory_bytes: self.layer_memory.bytes() as u64,
            spilled_bytes: self.spilled.load(Ordering::Relaxed),
            layers: self.layers.load(Ordering::Relaxed),
            written_bytes: self.written.load(Ordering::Relaxed),
            read_bytes: self.read.load(Ordering::Relaxed),
        }
    }

    /// Counts the memory of a transaction anew.
    pub(super) fn recount(&self, before: usize, now: usize) {
        if now >= before {
            self.memory.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.memory.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    /// Whether a transaction that has `own` bytes in memory, which are counted, has to spill them.
    pub(super) fn is_too_much(&self, own: usize) -> bool {
        let budget = self.budget();
        self.memory.load(Ordering::Relaxed) > budget && own >= SHARE_MIN.min(budget / 4)
    }

    /// How much a transaction may take before it checks the common budget.
    pub(super) fn look_bytes(&self) -> usize {
        LOOK_BYTES.min(self.budget() / 8).max(1)
    }

    /// Raw bytes of a page.
    pub(super) fn page_bytes(&self) -> usize {
        PAGE_BYTES.min(self.budget() / 4).max(64)
    }

    /// A new file.
    pub(super) fn create(self: &Arc<SpillSpace>) -> Result<SpillFile, StorageError> {
        let files = self.environment.files();
        files.create_dir(&self.folder).map_err(failed)?;
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{number:08}.layer"));
        let file = files.open_temporary(&path).map_err(failed)?;
        self.layers.fetch_add(1, Ordering::Relaxed);
        Ok(SpillFile { space: Arc::clone(self), file, path, length: 0 })
    }
}

impl std::fmt::Debug for SpillSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SpillSpace({}, {:?})", self.folder.display(), self.figures())
    }
}

/// A file of a layer, removed when it is dropped.
pub(super) struct SpillFile {
    space: Arc<SpillSpace>,
    file: Arc<dyn File>,
    path: PathBuf,
    length: u64,
}

impl SpillFile {
    /// Bytes so far.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Appends bytes. After an error the file is of no more use.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.file.write_all_at(bytes, self.length).map_err(failed)?;
        self.length += bytes.len() as u64;
        self.space.spilled.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.space.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn read(&self, bytes: &mut [u8], offset: u64) -> Result<(), StorageError> {
        self.space.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.read_exact_at(bytes, offset).map_err(failed)
    }

    /// The error of bytes that are not what was written.
    pub(super) fn damaged(&self, offset: u64) -> StorageError {
        let message = format!(
            "{} has other bytes at {offset} than a transaction wrote there: roll back, and look after the device",
            self.path.display()
        );
        StorageError::new(ErrorKind::Corrupt, message)
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.space.spilled.fetch_sub(self.length, Ordering::Relaxed);
        // One that stays is removed when the store is opened again.
        let _removed = self.space.environment.files().remove(&self.path);
    }
}

fn failed(error: EnvironmentError) -> StorageError {
    let message = format!("writes of a large transaction cannot be put aside: {error}; roll back");
    StorageError::with_source(ErrorKind::Io, message, error)
}
