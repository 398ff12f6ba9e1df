//! LMDB's file while it is open: the environment, its one table, and its meta pages.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use heed::types::Bytes as Raw;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithoutTls};
use pando_environment::{Access, Environment, File, OpenMode};
use pando_storage::{ErrorKind, KEY_BYTES_MAX, StorageError};

use crate::LmdbOptions;
use crate::failure::{environment_failed, lmdb_failed};
use crate::layout::PREFIX_BYTES;
use crate::recovery::MAP_BYTES_MIN;

/// The name that LMDB gives its file.
pub(crate) const DATA_FILE: &str = "data.mdb";

/// LMDB's one table.
pub(crate) type Table = Database<'static, Raw, Raw>;

/// A snapshot of LMDB that any thread may go on reading.
pub(crate) type Snapshot = RoTxn<'static, WithoutTls>;

/// See the module's head.
pub(crate) struct DataFile {
    pub(crate) table: Table,
    pub(crate) metas: MetaPages,
    pub(crate) env: Env<WithoutTls>,
}

/// The file before LMDB has read a page of the table: a damaged page could end the process.
pub(crate) struct UncheckedFile {
    pub(crate) metas: MetaPages,
    env: Env<WithoutTls>,
}

impl UncheckedFile {
    /// Opens the file of a folder; it is made where it does not exist.
    pub(crate) fn open(
        environment: &Environment,
        folder: &Path,
        options: LmdbOptions,
    ) -> Result<UncheckedFile, StorageError> {
        let env = open_environment(folder, options)?;
        if env.max_key_size() < PREFIX_BYTES + KEY_BYTES_MAX {
            let message = format!("this build of LMDB takes keys of {} bytes only", env.max_key_size());
            return Err(StorageError::new(ErrorKind::InvalidInput, message));
        }
        let seen = env.read_txn().map_err(|error| lmdb_failed("opening the store", error))?.id();
        // A transaction takes the newest number from LMDB's lock file, and `info` takes it from the data
        // file.
        if seen != env.info().last_txn_id {
            let message = "another process has LMDB's lock file `lock.mdb` of the folder open, for another data file: end it";
            return Err(StorageError::new(ErrorKind::Busy, message));
        }
        let metas = MetaPages::open(environment, &path_in(folder), &env)?;
        Ok(UncheckedFile { metas, env })
    }

    /// The file with its table, which is made where it does not exist.
    pub(crate) fn with_table(self) -> Result<DataFile, StorageError> {
        let table = open_table(&self.env)?;
        Ok(DataFile { table, metas: self.metas, env: self.env })
    }
}

impl DataFile {
    /// The newest state. `doing` says what failed.
    pub(crate) fn snapshot(&self, doing: &str) -> Result<Snapshot, StorageError> {
        self.env.clone().static_read_txn().map_err(|error| lmdb_failed(doing, error))
    }
}

/// The path of LMDB's file in a folder.
pub(crate) fn path_in(folder: &Path) -> PathBuf {
    folder.join(DATA_FILE)
}

/// Reads the two meta pages as they are in the kernel.
pub(crate) struct MetaPages {
    file: Arc<dyn File>,
    bytes: usize,
}

impl MetaPages {
    fn open(
        environment: &Environment,
        path: &Path,
        env: &Env<WithoutTls>,
    ) -> Result<MetaPages, StorageError> {
        let file = environment.files().open(path, OpenMode::ReadOnly, Access::Buffered);
        let file = file.map_err(|error| environment_failed("cannot open LMDB's file", error))?;
        Ok(MetaPages { file, bytes: 2 * env.unnamed_database_stat().page_size as usize })
    }

    /// LMDB's file.
    pub(crate) fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    pub(crate) fn copy(&self) -> Result<Vec<u8>, StorageError> {
        let mut metas = vec![0; self.bytes];
        let failed = |error| environment_failed("cannot read LMDB's meta pages", error);
        self.file.read_exact_at(&mut metas, 0).map_err(failed)?;
        Ok(metas)
    }
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

fn open_table(env: &Env<WithoutTls>) -> Result<Table, StorageError> {
    let failed = |error| lmdb_failed("opening the table", error);
    let writer = env.write_txn().map_err(failed)?;
    let created = env.create_databases_and_commit(writer, |opener, writer| {
        opener.create_database::<Raw, Raw>(writer, None).map(CommitOrAbort::<_, ()>::Commit)
    });
    let table = created.map_err(failed)?.commit();
    Ok(table.expect("the closure commits"))
}
