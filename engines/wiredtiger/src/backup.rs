//! Online backup: the files of a checkpoint and of the journal behind it, which WiredTiger keeps as they are
//! while its backup cursor is open.
//!
//! # Steps
//! 1. A checkpoint, so that little of the journal is to be copied. Commits go on.
//! 2. The lock `order` keeps commits away. The journal goes to the device, and the backup cursor is opened:
//!    it names the files. The last commit by then is the moment of the backup.
//! 3. The newest file of the journal is copied, the only one that commits write to. Then commits go on.
//! 4. The other files are copied as a [`FileBackup`](pando_storage::FileBackup). WiredTiger writes to the
//!    files of tables meanwhile, but not over the blocks of that checkpoint, and it neither drops tables nor
//!    removes files of the journal.
//!
//! A restored store replays the journal from the checkpoint to its end, which is the moment. Its trees keep
//! the options that they were made with. A process that is killed meanwhile leaves `WiredTiger.backup` in the
//! store: the next start reads the tables from there, and replays the journal.

use std::path::Path;
use std::sync::atomic::Ordering;

use pando_environment::Environment;
use pando_storage::{BackupReport, BackupRequest, CommitTimestamp, FileBackup, FileBackups, StorageError};
use parking_lot::MutexGuard;

use crate::commit::SYNC;
use crate::layout::FOLDER;
use crate::store::Store;

const BACKUPS: FileBackups =
    FileBackups { engine: "wiredtiger", manifest: "MANIFEST.wiredtiger", data_folder: FOLDER };
/// The beginning of the names of the journal's files. A number follows, always with as many digits.
const JOURNAL_PREFIX: &str = "WiredTigerLog.";

/// Makes a backup of the database in the folder `from`. `own` is where it lies, the request's environment
/// where the backup goes.
pub(crate) fn make(
    store: &Store,
    own: &Environment,
    from: &Path,
    request: &BackupRequest<'_>,
) -> Result<BackupReport, StorageError> {
    // WiredTiger has one backup cursor at a time.
    let _turn = store.backup_turn.lock();
    let backup = BACKUPS.begin(request)?;
    store.checkpoint()?;
    store.with_session("taking a backup", |session| {
        let order = store.order.lock();
        session.flush_log(SYNC)?;
        session.with_names(c"backup:", |names| {
            let moment = CommitTimestamp::new(store.newest.load(Ordering::Acquire));
            Copying { backup, own, from, request }.copy_all(names, order, moment)
        })
    })?
}

/// The copying of the files while the backup cursor is open.
struct Copying<'c> {
    backup: FileBackup,
    own: &'c Environment,
    from: &'c Path,
    request: &'c BackupRequest<'c>,
}

impl Copying<'_> {
    fn copy_all(
        mut self,
        names: &[String],
        order: MutexGuard<'_, ()>,
        moment: CommitTimestamp,
    ) -> Result<BackupReport, StorageError> {
        let newest = names.iter().filter(|name| name.starts_with(JOURNAL_PREFIX)).max();
        if let Some(newest) = newest {
            self.copy(newest)?;
        }
        drop(order);
        for name in names.iter().filter(|name| Some(*name) != newest) {
            self.copy(name)?;
        }
        self.backup.finish(moment, self.request)
    }

    fn copy(&mut self, name: &str) -> Result<(), StorageError> {
        self.backup.copy(self.own, &self.from.join(name), name, self.request)
    }
}

/// Makes a store in the folder `to` from a backup; see [`FileBackups::restore`].
///
/// # Errors
/// Those of [`FileBackups::restore`].
pub fn restore(environment: &Environment, backup: &Path, to: &Path) -> Result<BackupReport, StorageError> {
    BACKUPS.restore(environment, backup, to)
}
