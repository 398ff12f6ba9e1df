//! Restore: makes a store from a backup.
//!
//! 1. Read the manifest, which names all files.
//! 2. Copy each file into `rocksdb.new`, and compare length and hash with the manifest's.
//! 3. Sync the folder and rename it. Only now there is a store.

use std::path::Path;

use pando_environment::Environment;
use pando_storage::{BackupExtent, BackupReport, Lsn, StorageError};

use super::manifest::Manifest;
use super::{Copy, FILES_FOLDER};
use crate::failure::{corrupt, environment_failed, invalid};
use crate::opening::DATA_FOLDER;
use crate::sync_mark::SyncMark;

/// RocksDB's folder until it is whole.
const UNFINISHED: &str = "rocksdb.new";

/// Makes a store in the folder `to` from a backup. Reports the moment of the backup, and the bytes of the new
/// store.
///
/// # Errors
/// The backup is unfinished or damaged, or of another version. The folder has a store. The device fails or is
/// full. The folder has no store then, and another call begins anew.
pub fn restore(environment: &Environment, backup: &Path, to: &Path) -> Result<BackupReport, StorageError> {
    let failed = |error| environment_failed("cannot restore the backup", error);
    let manifest = Manifest::read(environment, backup)?;
    let files = environment.files();
    files.create_dir(to).map_err(failed)?;
    let _lock = files.lock(to).map_err(failed)?;
    let (data, unfinished) = (to.join(DATA_FOLDER), to.join(UNFINISHED));
    if files.exists(&data).map_err(failed)? {
        return Err(invalid(format!("{} has a store: restore into another folder", to.display())));
    }
    files.create_dir(&unfinished).map_err(failed)?;
    for name in files.list(&unfinished).map_err(failed)? {
        files.remove(&unfinished.join(name)).map_err(failed)?;
    }
    let mut bytes = 0;
    for file in &manifest.files {
        let from = backup.join(FILES_FOLDER).join(&file.name);
        if !files.exists(&from).map_err(failed)? {
            return Err(corrupt(format!("the backup is damaged: {} is missing", from.display())));
        }
        let mut copy = Copy::begin(environment, &from, environment, &unfinished.join(&file.name))?;
        while copy.piece()? {}
        let (copied, hash) = (copy.at, copy.finish()?);
        if (copied, hash) != (file.bytes, file.hash) {
            let from = from.display();
            return Err(corrupt(format!(
                "the backup is damaged: {from} is not what was written; take another one"
            )));
        }
        bytes += copied;
    }
    files.sync_dir(&unfinished).map_err(failed)?;
    files.rename(&unfinished, &data).map_err(failed)?;
    files.sync_dir(to).map_err(failed)?;
    let (mark, _) = SyncMark::open(environment, to)?;
    mark.write(Lsn::new(manifest.moment.get()))?;
    Ok(BackupReport { moment: manifest.moment, extent: BackupExtent::Full, bytes })
}
