//! Opening a store: recovery after a power cut, LMDB's environment, the engine's own records.
//!
//! 1. Read the mark of the durable state. If the file may be a mixture of states, write the mark's meta pages
//!    back.
//! 2. Remove what an interrupted compaction has left. Open LMDB's environment. Read the engine's own records,
//!    which checks the format, and open the one table.
//! 3. Write a first mark, before any record: a store with records always has one.
//! 4. Remove the rest of trees whose removal was interrupted.

use std::path::Path;

use heed::{Env, RwTxn, WithoutTls};
use pando_environment::{Access, Environment, OpenMode};
use pando_storage::{ErrorKind, StorageError, TreeId};

use crate::LmdbOptions;
use crate::compaction;
use crate::data_file::{DataFile, Table, UncheckedFile, path_in};
use crate::durable_mark::{DurableMark, Ending, Mark};
use crate::failure::{corrupt, environment_failed, is_map_full, lmdb_failed};
use crate::layout::{self, FORMAT, FORMAT_KEY, NEXT_TREE_KEY};
use crate::records::{self, Records};
use crate::trees::Trees;

/// Below this a map is not worth trying; all maps have a multiple of it.
pub(crate) const MAP_BYTES_MIN: usize = 1 << 20;

/// An opened store, before its background work begins.
pub(crate) struct OpenedStore {
    pub(crate) file: DataFile,
    pub(crate) trees: Trees,
    pub(crate) durable: DurableMark,
    /// Slots of the reader table that belonged to processes which had ended.
    pub(crate) stale_readers: u64,
}

pub(crate) fn open(
    environment: &Environment,
    folder: &Path,
    options: LmdbOptions,
) -> Result<OpenedStore, StorageError> {
    let (mut durable, mark) = DurableMark::open(environment, folder)?;
    if let Some(mark) = &mark
        && mark.needs_restoring(durable.boot())
    {
        restore(environment, &path_in(folder), mark)?;
    }
    compaction::remove_unfinished(environment, folder)?;
    let file = UncheckedFile::open(environment, folder, options)?;
    let records = records::read(&**file.metas.file(), &file.metas.copy()?)?;
    if !records.is_new && mark.is_none() {
        return Err(corrupt("the file `durable` is missing: restore it with the others"));
    }
    let file = file.with_table()?;
    file.env.force_sync().map_err(|error| lmdb_failed("syncing", error))?;
    durable.write(file.metas.copy()?, Ending::Open)?;
    let failed = |error| environment_failed("cannot open LMDB's file", error);
    environment.files().sync_dir(folder).map_err(failed)?;
    // Slots of processes that ended while another one had LMDB's lock file open.
    let stale_readers = file.env.clear_stale_readers();
    let stale_readers =
        stale_readers.map_err(|error| lmdb_failed("looking for readers that have ended", error))? as u64;
    loop {
        match mend(&file.env, file.table, &records) {
            Err(error) if is_map_full(&error) => grow(&file.env)?,
            outcome => break outcome?,
        }
    }
    Ok(OpenedStore { file, trees: records.trees, durable, stale_readers })
}

/// Writes the meta pages of a mark back, so that LMDB opens the state whose pages are all on the device.
fn restore(environment: &Environment, data_path: &Path, mark: &Mark) -> Result<(), StorageError> {
    let failed = |error| environment_failed("cannot bring LMDB's file back to what is durable", error);
    let file = environment.files().open(data_path, OpenMode::Existing, Access::Buffered).map_err(failed)?;
    file.write_all_at(&mark.metas, 0).map_err(failed)?;
    file.sync_data().map_err(failed)
}

/// Doubles the map of a store that nobody uses yet.
fn grow(env: &Env<WithoutTls>) -> Result<(), StorageError> {
    let bytes = env.info().map_size.saturating_mul(2);
    // SAFETY: the store is being opened, so that no transaction is active.
    unsafe { env.resize(bytes) }.map_err(|error| lmdb_failed("growing the map", error))
}

/// Writes the first record of a new store, and removes the entries of trees that were being dropped.
fn mend(env: &Env<WithoutTls>, table: Table, records: &Records) -> Result<(), StorageError> {
    let failed = |error| lmdb_failed("opening the store", error);
    if !records.is_new && records.leftovers.is_empty() {
        return Ok(());
    }
    let mut writer = env.write_txn().map_err(failed)?;
    if records.is_new {
        table.put(&mut writer, FORMAT_KEY, &FORMAT.to_be_bytes()).map_err(failed)?;
    }
    for tree in &records.leftovers {
        let (lower, upper) = records::range_of(*tree);
        table.delete_range(&mut writer, &(as_slice(&lower), as_slice(&upper))).map_err(failed)?;
    }
    writer.commit().map_err(failed)
}

/// The number for a new tree, taken from the record that keeps it from being used again.
pub(crate) fn take_tree_number(table: Table, writer: &mut RwTxn<'_>) -> Result<TreeId, StorageError> {
    let failed = |error| lmdb_failed("numbering a tree", error);
    let next = match table.get(writer, NEXT_TREE_KEY).map_err(failed)? {
        None => 1,
        Some(bytes) => {
            layout::read_u32(bytes).ok_or_else(|| corrupt("the next tree's number makes no sense"))?
        }
    };
    let after = next.checked_add(1);
    let after =
        after.ok_or_else(|| StorageError::new(ErrorKind::Busy, "all numbers for trees have been used"))?;
    table.put(writer, NEXT_TREE_KEY, &after.to_be_bytes()).map_err(failed)?;
    Ok(TreeId::new(next))
}

/// A bound that borrows its key.
pub(crate) fn as_slice(bound: &std::ops::Bound<Vec<u8>>) -> std::ops::Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
