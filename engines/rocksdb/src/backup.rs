//! Online backup: a checkpoint of RocksDB at one commit, copied file by file.
//!
//! # Steps
//! 1. Flush, so that step 2 has little to write. Commits go on.
//! 2. With the writer's turn taken, make a *checkpoint*: a folder beside the data with hard links to its
//!    table files. The newest commit is the moment of the backup. Commits wait for some milliseconds.
//! 3. Copy the files of the checkpoint as a [`FileBackup`](pando_storage::FileBackup). Table files never
//!    change, so commits and compactions go on.
//! 4. Remove the checkpoint.

use std::path::Path;

use pando_environment::Environment;
use pando_storage::{
    BackupReport, BackupRequest, CommitTimestamp, FileBackup, FileBackups, Lsn, StorageError,
};
use rocksdb::checkpoint::Checkpoint;

use crate::failure::{environment_failed, rocksdb_failed};
use crate::opening::{CHECKPOINT_FOLDER, DATA_FOLDER, remove_checkpoint};
use crate::store::Store;
use crate::sync_mark::SyncMark;

const BACKUPS: FileBackups =
    FileBackups { engine: "rocksdb", manifest: "MANIFEST.rocksdb", data_folder: DATA_FOLDER };

/// Makes a backup. `own` is where the store lies, the request's environment where the backup goes.
pub(crate) fn make(
    store: &Store,
    own: &Environment,
    request: &BackupRequest<'_>,
) -> Result<BackupReport, StorageError> {
    let _turn = store.backup_turn.lock();
    let backup = BACKUPS.begin(request)?;
    remove_checkpoint(own, &store.folder)?;
    store.flush()?;
    let outcome =
        store.make_checkpoint().and_then(|moment| copy_checkpoint(store, own, backup, request, moment));
    let removed = remove_checkpoint(own, &store.folder);
    let report = outcome?;
    removed.map(|()| report)
}

impl Store {
    /// Makes a checkpoint beside the data, and gives the last commit in it.
    fn make_checkpoint(&self) -> Result<CommitTimestamp, StorageError> {
        let _writer = self.writer.lock();
        self.check_open()?;
        let moment = self.newest.read().timestamp().get();
        Checkpoint::new(&self.database)
            .and_then(|checkpoint| checkpoint.create_checkpoint(self.folder.join(CHECKPOINT_FOLDER)))
            .map_err(|error| rocksdb_failed("making a checkpoint", error))?;
        Ok(CommitTimestamp::new(moment))
    }
}

fn copy_checkpoint(
    store: &Store,
    own: &Environment,
    mut backup: FileBackup,
    request: &BackupRequest<'_>,
    moment: CommitTimestamp,
) -> Result<BackupReport, StorageError> {
    let from = store.folder.join(CHECKPOINT_FOLDER);
    let names = own.files().list(&from);
    for name in names.map_err(|error| environment_failed("cannot read the checkpoint", error))? {
        backup.copy(own, &from.join(&name), &name, request)?;
    }
    backup.finish(moment, request)
}

/// Makes a store in the folder `to` from a backup; see [`FileBackups::restore`].
pub fn restore(environment: &Environment, backup: &Path, to: &Path) -> Result<BackupReport, StorageError> {
    let report = BACKUPS.restore(environment, backup, to)?;
    let (mark, _) = SyncMark::open(environment, to)?;
    mark.write(Lsn::new(report.moment.get()))?;
    Ok(report)
}
