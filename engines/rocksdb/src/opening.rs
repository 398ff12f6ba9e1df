//! Opening a store: RocksDB's database with its column families, and the engine's own records.
//!
//! 1. Read the file `synced`. Refuse a folder in which table files are there and `CURRENT` is not: RocksDB
//!    would begin anew over them.
//! 2. List the column families. The name of each tells the options that it is opened with.
//! 3. Open the database, which replays its log.
//! 4. Refuse a database that ends before what was synced.
//! 5. Check the format, and read the tree records.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_environment::Environment;
use pando_storage::{ErrorKind, Lsn, StorageError};
use rocksdb::{ColumnFamilyDescriptor, DEFAULT_COLUMN_FAMILY_NAME, IteratorMode, Options};

use crate::failure::{corrupt, environment_failed, invalid, rocksdb_failed};
use crate::layout::{self, FORMAT, FORMAT_KEY, NEXT_TREE_KEY, TREE_KEY_PREFIX};
use crate::library::{Database, Family};
use crate::options::{RocksdbOptions, TreeSettings};
use crate::store::Families;
use crate::sync_mark::SyncMark;
use crate::trees::Trees;
use crate::tuning::Tuning;

/// RocksDB's folder in that of the store.
pub(crate) const DATA_FOLDER: &str = "rocksdb";

/// The checkpoint that a backup is copied from.
pub(crate) const CHECKPOINT_FOLDER: &str = "checkpoint";

/// RocksDB's file that names the newest manifest.
const CURRENT: &str = "CURRENT";

/// An opened store, before its background work begins.
pub(crate) struct OpenedStore {
    pub(crate) database: Arc<Database>,
    pub(crate) database_options: Options,
    pub(crate) tuning: Tuning,
    pub(crate) families: Families,
    pub(crate) trees: Trees,
    pub(crate) next_tree: u32,
    pub(crate) mark: SyncMark,
}

/// Opens the store in a folder that is locked.
pub(crate) fn open(
    environment: &Environment,
    folder: &Path,
    options: &RocksdbOptions,
) -> Result<OpenedStore, StorageError> {
    let data = folder.join(DATA_FOLDER);
    let (mark, synced) = SyncMark::open(environment, folder)?;
    let is_new = check_files(environment, &data, synced)?;
    remove_checkpoint(environment, folder)?;
    let tuning = Tuning::new(options)?;
    let mut database_options = tuning.database();
    database_options.create_if_missing(is_new);
    let settings = if is_new { Vec::new() } else { list_families(&database_options, &data)? };
    let descriptors = settings
        .iter()
        .map(|settings| ColumnFamilyDescriptor::new(settings.family_name(), tuning.family(settings)))
        .chain([ColumnFamilyDescriptor::new(DEFAULT_COLUMN_FAMILY_NAME, tuning.records())]);
    let database = Database::open_cf_descriptors(&database_options, &data, descriptors);
    let database = Arc::new(database.map_err(|error| cannot_open(&data, error))?);
    environment
        .files()
        .sync_dir(folder)
        .map_err(|error| environment_failed("cannot make the store", error))?;
    if database.latest_sequence_number() < synced.get() {
        return Err(corrupt(format!(
            "the log in {} is damaged: it ends at write {}, and writes up to {} were synced; restore a backup",
            data.display(),
            database.latest_sequence_number(),
            synced.get()
        )));
    }
    let mut families = BTreeMap::new();
    for settings in settings {
        let name = settings.family_name();
        let family = Family::open(&database, &name, settings)?;
        families.insert(name, Arc::new(family));
    }
    let (trees, next_tree) = read_records(&database, &families, is_new)?;
    Ok(OpenedStore { database, database_options, tuning, families, trees, next_tree, mark })
}

/// Whether the store is to be made. Refuses one that has lost its beginning.
fn check_files(environment: &Environment, data: &Path, synced: Lsn) -> Result<bool, StorageError> {
    let failed = |error| environment_failed("cannot look into the store", error);
    let names = match environment.files().exists(data).map_err(failed)? {
        true => environment.files().list(data).map_err(failed)?,
        false => Vec::new(),
    };
    if names.iter().any(|name| name == CURRENT) {
        return Ok(false);
    }
    if synced > Lsn::ZERO || names.iter().any(|name| name.ends_with(".sst")) {
        let folder = data.display();
        return Err(corrupt(format!(
            "the store in {folder} has lost its file {CURRENT}: put it back, or restore a backup"
        )));
    }
    Ok(true)
}

/// Removes the rest of a backup that was interrupted.
pub(crate) fn remove_checkpoint(environment: &Environment, folder: &Path) -> Result<(), StorageError> {
    let checkpoint = folder.join(CHECKPOINT_FOLDER);
    let failed = |error| environment_failed("cannot look for a checkpoint", error);
    if !environment.files().exists(&checkpoint).map_err(failed)? {
        return Ok(());
    }
    Database::destroy(&Options::default(), &checkpoint)
        .map_err(|error| rocksdb_failed("removing a checkpoint", error))
}

/// The options of each column family for trees.
fn list_families(options: &Options, data: &Path) -> Result<Vec<TreeSettings>, StorageError> {
    let names = Database::list_cf(options, data).map_err(|error| cannot_open(data, error))?;
    let names = names.iter().filter(|name| *name != DEFAULT_COLUMN_FAMILY_NAME);
    let settings = names.map(|name| {
        TreeSettings::of_family_name(name).ok_or_else(|| {
            let data = data.display();
            invalid(format!(
                "the column family `{name}` in {data} is of another program, or of a newer version of this one: open \
                 the store with the program that made it"
            ))
        })
    });
    settings.collect()
}

fn cannot_open(data: &Path, error: rocksdb::Error) -> StorageError {
    let failed = rocksdb_failed("opening the store", error);
    match failed.kind() {
        ErrorKind::Corrupt | ErrorKind::Io => {
            let message = format!(
                "cannot open {}: {failed}; mend the device, or restore a backup into another folder",
                data.display()
            );
            StorageError::with_source(failed.kind(), message, failed)
        }
        _ => failed,
    }
}

/// Reads the engine's own records, and gives the trees with the next tree's number. In a new store, writes
/// the first record.
fn read_records(
    database: &Arc<Database>,
    families: &Families,
    is_new: bool,
) -> Result<(Trees, u32), StorageError> {
    let failed = |error| rocksdb_failed("reading the tree records", error);
    match database.get(FORMAT_KEY).map_err(failed)?.as_deref().map(layout::read_u32) {
        // A process that ended between making the database and its first record left no other record.
        None if is_new || database.latest_sequence_number() == 0 => {
            database.put(FORMAT_KEY, FORMAT.to_be_bytes()).map_err(failed)?;
        }
        None => {
            let data: PathBuf = database.path().to_owned();
            let data = data.display();
            return Err(invalid(format!(
                "{data} is a store of RocksDB, and none of Pando: choose another folder"
            )));
        }
        Some(Some(FORMAT)) => {}
        Some(format) => {
            let message = format!("the store has the format {format:?}, this version reads {FORMAT}");
            return Err(invalid(message));
        }
    }
    let next_tree = match database.get(NEXT_TREE_KEY).map_err(failed)? {
        None => 1,
        Some(bytes) => {
            layout::read_u32(&bytes).ok_or_else(|| corrupt("the next tree's number makes no sense"))?
        }
    };
    let mut trees = Trees::default();
    let from = IteratorMode::From(TREE_KEY_PREFIX, rocksdb::Direction::Forward);
    for record in database.iterator(from) {
        let (key, value) = record.map_err(failed)?;
        if !key.starts_with(TREE_KEY_PREFIX) {
            break;
        }
        let tree = layout::tree_of_record_key(&key).zip(layout::read_tree_record(&value));
        let (id, (family, name)) = tree.ok_or_else(|| corrupt("a tree record makes no sense"))?;
        let family = families.get(family);
        let family =
            family.ok_or_else(|| corrupt(format!("the column family of the tree `{name}` is missing")))?;
        trees.insert(id, name, Arc::clone(family));
    }
    Ok((trees, next_tree))
}
