//! Bulk loads: entries in order go straight into the pages of a new table.
//!
//! # Steps
//! 1. The tree has to be empty, and nobody may use it.
//! 2. WiredTiger's bulk cursor fills leaves one after the other, without the journal. Every snapshot sees the
//!    entries.
//! 3. For a durable load a checkpoint follows: the entries are in no journal.
//!
//! A table that ever had entries, or whose cursor somebody has open, is not *new* in the sense of the
//! library. It is filled by transactions ([`emulate::load`]).

use std::sync::Arc;

use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Engine, KeyRange, LoadDurability, SortedEntries, StorageError,
    TreeId, emulate,
};

use crate::engine::WiredTigerEngine;
use crate::failure::{library_failed, refused};
use crate::layout::stored_key;
use crate::library::{LibraryError, LibraryFault, Session};
use crate::store::Store;
use crate::trees::{SizeChange, Table};

/// The tree that is filled, and whether it has to survive a crash.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) tree: TreeId,
    pub(crate) durability: LoadDurability,
}

/// See [`Engine::load`].
pub(crate) fn load(
    engine: &WiredTigerEngine,
    store: &Store,
    request: Request,
    entries: &mut dyn SortedEntries,
) -> Result<u64, StorageError> {
    let Request { tree, durability } = request;
    check_empty(engine, tree)?;
    let table = store.trees.read().table(tree)?;
    match fill(store, &table, entries)? {
        Filled::Whole(count) => {
            if durability == LoadDurability::Durable {
                store.checkpoint()?;
            }
            Ok(count)
        }
        Filled::NotNew => emulate::load(engine, tree, entries, durability),
    }
}

/// The outcome of a bulk load.
enum Filled {
    /// All entries are in the table: so many.
    Whole(u64),
    /// The library takes no bulk load of this table, and no entry was asked for.
    NotNew,
}

fn fill(store: &Store, table: &Arc<Table>, entries: &mut dyn SortedEntries) -> Result<Filled, StorageError> {
    let _gate = store.gate.read();
    store.check_open()?;
    let mut session = store.sessions.take()?;
    let outcome = fill_by(&mut session, table, entries);
    store.sessions.put_back(session);
    outcome
}

fn fill_by(
    session: &mut Session,
    table: &Arc<Table>,
    entries: &mut dyn SortedEntries,
) -> Result<Filled, StorageError> {
    let failed = |error: LibraryError| library_failed("loading a tree", error);
    let mut cursor = match session.bulk_cursor(&table.uri) {
        Ok(cursor) => cursor,
        Err(error) if matches!(error.fault(), LibraryFault::InUse | LibraryFault::Invalid) => {
            return Ok(Filled::NotNew);
        }
        Err(error) => return Err(failed(error)),
    };
    let (mut last, mut sum): (Option<Vec<u8>>, SizeChange) = (None, SizeChange::default());
    while let Some((key, value)) = entries.next()? {
        if last.as_deref().is_some_and(|last| last >= key) {
            return Err(refused(format!("entry {} of a load of {} does not ascend", sum.entries, table.id)));
        }
        pando_storage::limits::check_key(key)?;
        pando_storage::limits::check_value(value)?;
        cursor.append(&stored_key(key), value).map_err(failed)?;
        let last = last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        sum.entries += 1;
        sum.bytes += (key.len() + value.len()) as i64;
    }
    cursor.finish().map_err(failed)?;
    table.add(sum);
    Ok(Filled::Whole(sum.entries as u64))
}

/// Refuses a tree that has entries.
fn check_empty(engine: &WiredTigerEngine, tree: TreeId) -> Result<(), StorageError> {
    let reader = engine.begin(Begin::READ)?;
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    match cursor.next(&*reader, BlockingMode::MayBlock)? {
        None => Ok(()),
        Some(_) => Err(refused(format!("{tree} has entries already and cannot be loaded"))),
    }
}
