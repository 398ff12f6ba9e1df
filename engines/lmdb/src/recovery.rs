//! Opening a store: recovery after a power cut, LMDB's environment, the engine's own records.
//!
//! 1. Read the mark of the durable state. If the file may be a mixture of states, write the mark's meta pages
//!    back.
//! 2. Open LMDB's environment. Read the engine's own records, which checks the format, and open the one
//!    table.
//! 3. Write a first mark, before any record: a store with records always has one.
//! 4. Remove the rest of trees whose removal was interrupted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use heed::types::Bytes as Raw;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RwTxn, WithoutTls};
use pando_environment::{Access, Environment, File, OpenMode};
use pando_storage::{ErrorKind, KEY_BYTES_MAX, StorageError, TreeId};

use crate::LmdbOptions;
use crate::durable_mark::{DurableMark, Ending, Mark};
use crate::failure::{corrupt, environment_failed, is_map_full, lmdb_failed};
use crate::layout::{self, FORMAT, FORMAT_KEY, NEXT_TREE_KEY, PREFIX_BYTES};
use crate::records::{self, Records};
use crate::trees::Trees;

/// LMDB's one table.
pub(crate) type Table = Database<'static, Raw, Raw>;

/// The name that LMDB gives its file.
pub(crate) const DATA_FILE: &str = "data.mdb";

/// Below this a map is not worth trying; all maps have a multiple of it.
pub(crate) const MAP_BYTES_MIN: usize = 1 << 20;

/// An opened store, before its background work begins.
pub(crate) struct OpenedStore {
    pub(crate) env: Env<WithoutTls>,
    pub(crate) table: Table,
    pub(crate) trees: Trees,
    pub(crate) durable: DurableMark,
    pub(crate) metas: MetaPages,
    pub(crate) data_path: PathBuf,
    /// Slots of the reader table that belonged to processes which had ended.
    pub(crate) stale_readers: u64,
}

/// Reads the two meta pages as they are in the kernel.
pub(crate) struct MetaPages {
    file: Arc<dyn File>,
    bytes: usize,
}

impl MetaPages {
    /// LMDB's file.
    pub(crate) fn file(&self) -> &dyn File {
        &*self.file
    }

    pub(crate) fn copy(&self) -> Result<Vec<u8>, StorageError> {
        let mut metas = vec![0; self.bytes];
        let failed = |error| environment_failed("cannot read LMDB's meta pages", error);
        self.file.read_exact_at(&mut metas, 0).map_err(failed)?;
        Ok(metas)
    }
}

pub(crate) fn open(
    environment: &Environment,
    folder: &Path,
    options: LmdbOptions,
) -> Result<OpenedStore, StorageError> {
    let data_path = folder.join(DATA_FILE);
    let (mut durable, mark) = DurableMark::open(environment, folder)?;
    if let Some(mark) = &mark
        && mark.needs_restoring(durable.boot())
    {
        restore(environment, &data_path, mark)?;
    }
    let env = open_environment(folder, options)?;
    if env.max_key_size() < PREFIX_BYTES + KEY_BYTES_MAX {
        let message = format!("this build of LMDB takes keys of {} bytes only", env.max_key_size());
        return Err(StorageError::new(ErrorKind::InvalidInput, message));
    }
    let failed = |error| environment_failed("cannot open LMDB's file", error);
    let file = environment.files().open(&data_path, OpenMode::ReadOnly, Access::Buffered).map_err(failed)?;
    let page_bytes = env.unnamed_database_stat().page_size as usize;
    let metas = MetaPages { file, bytes: 2 * page_bytes };
    let records = records::read(metas.file(), &metas.copy()?)?;
    if !records.is_new && mark.is_none() {
        return Err(corrupt("the file `durable` is missing: restore it with the others"));
    }
    let table = open_table(&env)?;
    env.force_sync().map_err(|error| lmdb_failed("syncing", error))?;
    durable.write(metas.copy()?, Ending::Open)?;
    environment.files().sync_dir(folder).map_err(failed)?;
    // Slots of processes that ended while another one had LMDB's lock file open.
    let stale_readers = env.clear_stale_readers();
    let stale_readers =
        stale_readers.map_err(|error| lmdb_failed("looking for readers that have ended", error))? as u64;
    loop {
        match mend(&env, table, &records) {
            Err(error) if is_map_full(&error) => grow(&env)?,
            outcome => break outcome?,
        }
    }
    let trees = records.trees;
    Ok(OpenedStore { env, table, trees, durable, metas, data_path, stale_readers })
}

/// Writes the meta pages of a mark back, so that LMDB opens the state whose pages are all on the device.
fn restore(environment: &Environment, data_path: &Path, mark: &Mark) -> Result<(), StorageError> {
    let failed = |error| environment_failed("cannot bring LMDB's file back to what is durable", error);
    let file = environment.files().open(data_path, OpenMode::Existing, Access::Buffered).map_err(failed)?;
    file.write_all_at(&mark.metas, 0).map_err(failed)?;
    file.sync_data().map_err(failed)
}

fn open_environment(folder: &Path, options: LmdbOptions) -> Result<Env<WithoutTls>, StorageError> {
    let mut map_bytes = options.map_bytes.next_multiple_of(MAP_BYTES_MIN);
    loop {
        let mut open = EnvOpenOptions::new().read_txn_without_tls();
        open.map_size(map_bytes).max_readers(options.readers_max);
        let flags = match options.readahead {
            true => EnvFlags::NO_SYNC,
            false => EnvFlags::NO_SYNC | EnvFlags::NO_READ_AHEAD,
        };
        // SAFETY: `NO_SYNC` gives up LMDB's own durability, which the durable mark brings back (see
        // `durable_mark`); the folder is locked for this process, and no other part of it touches LMDB's file
        // while the environment is open.
        let env = unsafe {
            open.flags(flags);
            open.open(folder)
        };
        match env {
            Ok(env) => return Ok(env),
            Err(heed::Error::Io(error))
                if error.kind() == std::io::ErrorKind::OutOfMemory && map_bytes > MAP_BYTES_MIN =>
            {
                map_bytes /= 2;
            }
            Err(error) => return Err(lmdb_failed("opening the store", error)),
        }
    }
}

/// Doubles the map of a store that nobody uses yet.
fn grow(env: &Env<WithoutTls>) -> Result<(), StorageError> {
    let bytes = env.info().map_size.saturating_mul(2);
    // SAFETY: the store is being opened, so that no transaction is active.
    unsafe { env.resize(bytes) }.map_err(|error| lmdb_failed("growing the map", error))
}

fn open_table(env: &Env<WithoutTls>) -> Result<Table, StorageError> {
    let failed = |error| lmdb_failed("opening the table", error);
    let writer = env.write_txn().map_err(failed)?;
    let created = env.create_databases_and_commit(writer, |opener, writer| {
        opener.create_database::<Raw, Raw>(writer, None).map(CommitOrAbort::<_, ()>::Commit)
    });
    let table = created.map_err(failed)?.commit();
    Ok(table.expect("the closure commits"))
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
