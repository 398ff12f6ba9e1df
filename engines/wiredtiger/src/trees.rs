//! The trees in memory: the table of each, and about how much lies in it.
//!
//! # Sizes
//! A commit adds what it has changed. A B-tree tells whether a key was there, since the write has to find its
//! place anyway. An LSM tree would have to read for that, so one write of [`SAMPLE`] looks, and the others
//! count as it did. Sizes are written to the records within a second, and are counted anew by a check.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use pando_storage::{Estimate, StorageError, TreeDescription, TreeId};

use crate::failure::{no_tree, refused};
use crate::layout::{TreeRecord, table_uri};
use crate::library::TableCursor;
use crate::options::TableType;

/// Of this many writes to an LSM tree one looks whether its key is there.
pub(crate) const SAMPLE: u64 = 16;

/// A tree's table, shared by all who use it.
pub(crate) struct Table {
    pub(crate) id: TreeId,
    pub(crate) name: String,
    pub(crate) uri: CString,
    pub(crate) table_type: TableType,
    entries: AtomicI64,
    bytes: AtomicI64,
    is_unsaved: AtomicBool,
    pub(crate) puts: Looks,
    pub(crate) deletes: Looks,
}

/// Writes of one kind to an LSM tree, of which every [`SAMPLE`]th looks.
pub(crate) struct Looks {
    pub(crate) writes: AtomicU64,
    /// The bytes of the entry that the last look found, or [`NOTHING`].
    pub(crate) last: AtomicI64,
}

/// A look that found no entry.
pub(crate) const NOTHING: i64 = -1;

impl Looks {
    const fn new() -> Looks {
        Looks { writes: AtomicU64::new(0), last: AtomicI64::new(NOTHING) }
    }
}

impl Table {
    pub(crate) fn new(id: TreeId, record: TreeRecord) -> Table {
        let TreeRecord { size, table_type, name } = record;
        Table {
            id,
            name,
            uri: table_uri(id),
            table_type,
            entries: AtomicI64::new(size.entries as i64),
            bytes: AtomicI64::new(size.bytes as i64),
            is_unsaved: AtomicBool::new(false),
            puts: Looks::new(),
            deletes: Looks::new(),
        }
    }

    /// The cursor of a session on this table. A B-tree's tells whether a key was there, an LSM tree's writes
    /// blindly.
    pub(crate) fn cursor(&self) -> TableCursor<'_> {
        let config: &CStr = match self.table_type {
            TableType::Btree => c"overwrite=false",
            TableType::Lsm => c"overwrite=true",
        };
        TableCursor { number: self.id.get(), uri: &self.uri, config }
    }

    pub(crate) fn size(&self) -> Estimate {
        let figure = |number: &AtomicI64| number.load(Ordering::Relaxed).max(0) as u64;
        Estimate { entries: figure(&self.entries), bytes: figure(&self.bytes) }
    }

    pub(crate) fn add(&self, change: SizeChange) {
        self.entries.fetch_add(change.entries, Ordering::Relaxed);
        self.bytes.fetch_add(change.bytes, Ordering::Relaxed);
        self.is_unsaved.store(true, Ordering::Release);
    }

    /// Corrects the size by what a count has found at its snapshot, keeping what commits have added since it
    /// began.
    pub(crate) fn correct(&self, before: Estimate, counted: Estimate) {
        self.add(SizeChange {
            entries: counted.entries as i64 - before.entries as i64,
            bytes: counted.bytes as i64 - before.bytes as i64,
        });
    }

    /// The record, if the stored one has another size.
    pub(crate) fn take_unsaved(&self) -> Option<TreeRecord> {
        self.is_unsaved.swap(false, Ordering::AcqRel).then(|| self.record())
    }

    /// The record could not be stored.
    pub(crate) fn set_unsaved(&self) {
        self.is_unsaved.store(true, Ordering::Release);
    }

    pub(crate) fn record(&self) -> TreeRecord {
        TreeRecord { size: self.size(), table_type: self.table_type, name: self.name.clone() }
    }
}

/// The entries and bytes that a commit adds to a tree, or takes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SizeChange {
    pub(crate) entries: i64,
    pub(crate) bytes: i64,
}

struct Tree {
    table: Arc<Table>,
    /// `Some`: dropped, and seen only by transactions up to this number.
    seen_up_to: Option<u64>,
}

/// Trees by number, with those that were dropped and whose tables are still there.
#[derive(Default)]
pub(crate) struct Trees {
    trees: BTreeMap<TreeId, Tree>,
}

impl Trees {
    pub(crate) fn insert(&mut self, table: Table) {
        self.trees.insert(table.id, Tree { table: Arc::new(table), seen_up_to: None });
    }

    /// Refuses a name that is in use.
    pub(crate) fn check_name_is_free(&self, name: &str) -> Result<(), StorageError> {
        if self.listed().any(|table| table.name == name) {
            return Err(refused(format!("there is a tree `{name}` already")));
        }
        Ok(())
    }

    /// The table of a tree that the transaction of this number sees.
    pub(crate) fn readable(&self, id: TreeId, transaction: u64) -> Result<Arc<Table>, StorageError> {
        let tree = self.trees.get(&id).ok_or_else(|| no_tree(id))?;
        match tree.seen_up_to {
            Some(last) if transaction > last => Err(no_tree(id)),
            Some(_) | None => Ok(Arc::clone(&tree.table)),
        }
    }

    /// The table of a tree that has not been dropped.
    pub(crate) fn table(&self, id: TreeId) -> Result<Arc<Table>, StorageError> {
        let tree = self.trees.get(&id).filter(|tree| tree.seen_up_to.is_none());
        tree.map(|tree| Arc::clone(&tree.table)).ok_or_else(|| no_tree(id))
    }

    /// Marks a tree as dropped for all but the transactions up to this number.
    pub(crate) fn drop_tree(&mut self, id: TreeId, youngest: u64) {
        if let Some(tree) = self.trees.get_mut(&id) {
            tree.seen_up_to = Some(youngest);
        }
    }

    /// Dropped trees that no live transaction sees.
    pub(crate) fn unseen(&self, oldest_live: Option<u64>) -> Vec<Arc<Table>> {
        let oldest = oldest_live.unwrap_or(u64::MAX);
        let unseen = self.trees.values().filter(|tree| tree.seen_up_to.is_some_and(|last| last < oldest));
        unseen.map(|tree| Arc::clone(&tree.table)).collect()
    }

    /// Whether tables of dropped trees are still there.
    pub(crate) fn has_dropped(&self) -> bool {
        self.trees.values().any(|tree| tree.seen_up_to.is_some())
    }

    /// Forgets a tree whose table is gone.
    pub(crate) fn forget(&mut self, id: TreeId) {
        self.trees.remove(&id);
    }

    /// The tables of trees that have not been dropped, by number.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.trees.values().filter(|tree| tree.seen_up_to.is_none()).map(|tree| &tree.table)
    }

    pub(crate) fn list(&self) -> Vec<TreeDescription> {
        self.listed().map(|table| TreeDescription { id: table.id, name: table.name.clone() }).collect()
    }
}
