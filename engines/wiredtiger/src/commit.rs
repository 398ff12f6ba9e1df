//! The commit of a write set.
//!
//! # Steps
//! 1. A WiredTiger transaction begins, at the isolation *read committed*. It takes the deleted ranges, then
//!    the puts and deletes, by tree and key. Many commits do so at once: the intents keep two of them from
//!    one key.
//! 2. Under the lock `order` it takes the merges, each over the newest committed value, and is committed.
//!    This gives the commit its number. WiredTiger has its log record then, in memory.
//! 3. Outside of the lock the log is handed to the kernel, if the durability asks for it. One write serves
//!    all who wait.
//!
//! # Why read committed
//! WiredTiger's own check for conflicts compares with the snapshot of the writing transaction. That snapshot
//! is not the one that the user's transaction reads, so the check would say nothing. It would only refuse
//! merges of a hot key, which the lock has put in order.
//!
//! # Invariants
//! - Commits become visible, and enter the log, in the order of their numbers.
//! - While a merge is read and written, no other transaction has an uncommitted value of its key.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pando_storage::{
    Change, Claims, CommitReceipt, CommitTimestamp, DeletedRange, Direction, Durability, ErrorKind, Estimate,
    KeyRange, Lsn, StorageError, TreeId, Write, WriteSet,
};

use crate::failure::library_failed;
use crate::layout::stored_key;
use crate::library::{Cursor, Inserted, LibraryError, LibraryFault, Session};
use crate::options::TableType;
use crate::store::Store;
use crate::trees::{Looks, NOTHING, SAMPLE, SizeChange, Table};

/// All that the store needs for a commit.
pub(crate) struct Commit<'t> {
    pub(crate) writes: &'t WriteSet,
    pub(crate) ranges: &'t [DeletedRange],
    pub(crate) claims: &'t Claims,
    pub(crate) durability: Durability,
}

/// Attempts of a commit that WiredTiger rolls back, because its cache has no room.
const ATTEMPTS_MAX: usize = 4;

/// A transaction that writes; see the module's head.
pub(crate) const BEGIN_WRITING: &CStr = c"isolation=read-committed";
/// A commit that leaves its log record in memory.
pub(crate) const COMMIT: &CStr = c"sync=off";
/// Hands the log to the kernel.
pub(crate) const FLUSH: &CStr = c"sync=off";
/// Brings the log to the device.
pub(crate) const SYNC: &CStr = c"sync=on";

/// The share of a tree that a range is taken for whose entries nobody has counted, as
/// [`emulate::estimate`](pando_storage::emulate::estimate) has it.
const RANGE_SHARE: i64 = 3;

impl Store {
    /// Makes a commit.
    pub(crate) fn commit(&self, commit: &Commit<'_>) -> Result<CommitReceipt, StorageError> {
        let _gate = self.gate.read();
        self.check_open()?;
        self.reserve_numbers()?;
        let mut attempt = 1;
        loop {
            let mut session = self.sessions.take()?;
            let outcome = self.try_commit(&mut session, commit);
            match outcome {
                Ok(receipt) => {
                    let flushed = match commit.durability {
                        Durability::None => Ok(()),
                        Durability::Logged | Durability::Synced => session.flush_log(FLUSH),
                    };
                    self.sessions.put_back(session);
                    self.sync_state.committed(self.clock.monotonic());
                    return flushed.map(|()| receipt).map_err(|error| self.log_failed(error));
                }
                Err(CommitFault::Library(error))
                    if error.fault() == LibraryFault::Rollback && attempt < ATTEMPTS_MAX =>
                {
                    session.rollback();
                    self.sessions.put_back(session);
                    attempt += 1;
                }
                Err(fault) => {
                    session.rollback();
                    self.sessions.put_back(session);
                    return Err(fault.into_error());
                }
            }
        }
    }

    fn try_commit(&self, session: &mut Session, commit: &Commit<'_>) -> Result<CommitReceipt, CommitFault> {
        session.begin(BEGIN_WRITING)?;
        let mut changes = Changes::new(self);
        for deleted in commit.ranges {
            changes.truncate(session, deleted)?;
        }
        let writes = commit.writes.sorted();
        let (merges, others): (Vec<&Write<'_>>, Vec<&Write<'_>>) =
            writes.iter().partition(|write| matches!(write.change, Change::Merge(_)));
        changes.apply(session, &others)?;
        let order = self.order.lock();
        changes.apply(session, &merges)?;
        let number = self.newest.load(Ordering::Acquire) + 1;
        let timestamp = CommitTimestamp::new(number);
        // Settled before anyone can see the commit; should it fail, the number is given out again.
        commit.claims.commit(&self.intents, timestamp);
        let committed = {
            let _changing = self.visibility.change();
            session.commit(COMMIT).inspect(|()| self.newest.store(number, Ordering::Release))
        };
        drop(order);
        committed?;
        changes.count();
        Ok(CommitReceipt { timestamp, lsn: Lsn::new(number) })
    }
}

/// Why a commit was not made.
enum CommitFault {
    Library(LibraryError),
    Storage(StorageError),
}

impl CommitFault {
    fn into_error(self) -> StorageError {
        match self {
            CommitFault::Storage(error) => error,
            CommitFault::Library(error) if error.is_for_room() => {
                let message = "WiredTiger's cache has no room for the writes of this transaction: retry, write less in one \
                               transaction, or make the cache larger";
                StorageError::with_source(ErrorKind::Busy, message, error)
            }
            CommitFault::Library(error) => library_failed("committing", error),
        }
    }
}

impl From<LibraryError> for CommitFault {
    fn from(error: LibraryError) -> CommitFault {
        CommitFault::Library(error)
    }
}

/// The changes of one commit, tree by tree.
struct Changes<'s> {
    store: &'s Store,
    trees: BTreeMap<TreeId, (Arc<Table>, SizeChange)>,
}

impl<'s> Changes<'s> {
    fn new(store: &'s Store) -> Changes<'s> {
        Changes { store, trees: BTreeMap::new() }
    }

    /// The table of a tree; a tree that was dropped meanwhile fails the commit.
    fn table(&mut self, tree: TreeId) -> Result<Arc<Table>, CommitFault> {
        if let Some((table, _)) = self.trees.get(&tree) {
            return Ok(Arc::clone(table));
        }
        let table = self.store.trees.read().table(tree).map_err(CommitFault::Storage)?;
        self.trees.insert(tree, (Arc::clone(&table), SizeChange::default()));
        Ok(table)
    }

    fn add(&mut self, tree: TreeId, change: SizeChange) {
        if let Some((_, sum)) = self.trees.get_mut(&tree) {
            sum.entries += change.entries;
            sum.bytes += change.bytes;
        }
    }

    /// Shows the new sizes.
    fn count(&self) {
        self.trees.values().for_each(|(table, change)| table.add(*change));
    }

    fn truncate(&mut self, session: &mut Session, deleted: &DeletedRange) -> Result<(), CommitFault> {
        let table = self.table(deleted.tree)?;
        let size = table.size();
        truncate(session, &table, &deleted.range)?;
        let is_whole = matches!(&deleted.range.lower, Bound::Included(key) if key.is_empty())
            && deleted.range.upper == Bound::Unbounded;
        self.add(deleted.tree, removed(size, is_whole));
        Ok(())
    }

    fn apply(&mut self, session: &mut Session, writes: &[&Write<'_>]) -> Result<(), CommitFault> {
        for of_tree in writes.chunk_by(|one, other| one.tree == other.tree) {
            let tree = of_tree[0].tree;
            let table = self.table(tree)?;
            let mut cursor = session.cursor(&table.cursor())?;
            let mut sum = SizeChange::default();
            for write in of_tree {
                let change = apply_write(&mut cursor, &table, write)?;
                sum.entries += change.entries;
                sum.bytes += change.bytes;
            }
            drop(cursor);
            self.add(tree, sum);
        }
        Ok(())
    }
}

/// The entries and bytes that a truncated range takes away, about.
fn removed(size: Estimate, is_whole: bool) -> SizeChange {
    let share = if is_whole { 1 } else { RANGE_SHARE };
    SizeChange { entries: -(size.entries as i64) / share, bytes: -(size.bytes as i64) / share }
}

/// Removes the keys of a range, which has a lower end that belongs to it, and an upper one that does not.
fn truncate(session: &mut Session, table: &Table, range: &KeyRange) -> Result<(), LibraryError> {
    let lower = match &range.lower {
        Bound::Included(key) | Bound::Excluded(key) => stored_key(key).into_owned(),
        Bound::Unbounded => stored_key(&[]).into_owned(),
    };
    let upper = match &range.upper {
        Bound::Included(key) | Bound::Excluded(key) => stored_key(key).into_owned(),
        Bound::Unbounded => return session.truncate(&table.uri, &lower, None),
    };
    // WiredTiger wants the last key that goes.
    let last = {
        let mut cursor = session.cursor(&table.cursor())?;
        let is_below = match cursor.find_near(&upper)? {
            None => false,
            Some(std::cmp::Ordering::Less) => true,
            Some(_) => cursor.step(Direction::Backward)?,
        };
        if is_below { Some(cursor.key()?.to_vec()) } else { None }
    };
    match last {
        Some(last) if last >= lower => session.truncate(&table.uri, &lower, Some(&last)),
        _ => Ok(()),
    }
}

fn entry_bytes(key: &[u8], value: usize) -> i64 {
    (key.len() + value) as i64
}

fn apply_write(
    cursor: &mut Cursor<'_>,
    table: &Table,
    write: &Write<'_>,
) -> Result<SizeChange, LibraryError> {
    let key = stored_key(write.key);
    match (write.change, table.table_type) {
        (Change::Merge(merges), _) => {
            let old = if cursor.find(&key)? { Some(cursor.value()?.to_vec()) } else { None };
            let Some(new) = merges.apply(old.as_deref()) else {
                return Ok(SizeChange { entries: 0, bytes: 0 });
            };
            put_over(cursor, table, &key, &new, old.is_some())?;
            let before = old.as_ref().map_or(0, |old| entry_bytes(write.key, old.len()));
            Ok(SizeChange {
                entries: i64::from(old.is_none()),
                bytes: entry_bytes(write.key, new.len()) - before,
            })
        }
        (Change::Put(value), TableType::Btree) => {
            if cursor.insert(&key, value)? == Inserted::New {
                return Ok(SizeChange { entries: 1, bytes: entry_bytes(write.key, value.len()) });
            }
            let old = if cursor.find(&key)? { cursor.value()?.len() } else { 0 };
            cursor.update(&key, value)?;
            Ok(SizeChange { entries: 0, bytes: value.len() as i64 - old as i64 })
        }
        (Change::Delete, TableType::Btree) => {
            if !cursor.find(&key)? {
                return Ok(SizeChange::default());
            }
            let old = entry_bytes(write.key, cursor.value()?.len());
            cursor.remove(&key)?;
            Ok(SizeChange { entries: -1, bytes: -old })
        }
        (Change::Put(value), TableType::Lsm) => {
            let old = look(cursor, &table.puts, write.key, &key)?;
            cursor.insert(&key, value)?;
            let new = entry_bytes(write.key, value.len());
            Ok(match old {
                Some(old) => SizeChange { entries: 0, bytes: new - old },
                None => SizeChange { entries: 1, bytes: new },
            })
        }
        (Change::Delete, TableType::Lsm) => {
            let old = look(cursor, &table.deletes, write.key, &key)?;
            cursor.remove(&key)?;
            Ok(old.map_or(SizeChange::default(), |old| SizeChange { entries: -1, bytes: -old }))
        }
    }
}

/// Puts a value of which is known whether it replaces one.
fn put_over(
    cursor: &mut Cursor<'_>,
    table: &Table,
    key: &[u8],
    value: &[u8],
    is_there: bool,
) -> Result<(), LibraryError> {
    if is_there && table.table_type == TableType::Btree {
        return cursor.update(key, value);
    }
    cursor.insert(key, value).map(|_inserted| ())
}

/// The bytes of the entry that a write to an LSM tree replaces, about: every [`SAMPLE`]th write looks.
fn look(
    cursor: &mut Cursor<'_>,
    looks: &Looks,
    key: &[u8],
    stored: &[u8],
) -> Result<Option<i64>, LibraryError> {
    if looks.writes.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLE) {
        let found = if cursor.find(stored)? { entry_bytes(key, cursor.value()?.len()) } else { NOTHING };
        looks.last.store(found, Ordering::Relaxed);
    }
    let last = looks.last.load(Ordering::Relaxed);
    Ok((last != NOTHING).then_some(last))
}
