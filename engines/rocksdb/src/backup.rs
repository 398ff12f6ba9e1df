//! Online backup: a checkpoint of RocksDB at one commit, copied file by file.
//!
//! # Steps
//! 1. Flush, so that step 2 has little to write. Commits go on.
//! 2. With the writer's turn taken, make a *checkpoint*: a folder beside the data with hard links to its
//!    table files. The newest commit is the moment of the backup. Commits wait for some milliseconds.
//! 3. Copy the files of the checkpoint, and note length and hash of each. Table files never change, so
//!    commits and compactions go on.
//! 4. Write the *manifest*, sync it and give it its name. Only now there is a backup.
//! 5. Remove the checkpoint.
//!
//! # The folder
//! `files/` has RocksDB's files, [`manifest::FILE`] the manifest.
//!
//! # Not here
//! Incremental backups. A backup is always full.

mod manifest;
mod restore;

use std::path::Path;
use std::sync::Arc;

use pando_environment::{Access, Environment, File, OpenMode};
use pando_storage::{BackupExtent, BackupReport, BackupRequest, CommitTimestamp, Operation, StorageError};
use rocksdb::checkpoint::Checkpoint;
use xxhash_rust::xxh3::Xxh3Default;

use crate::failure::{environment_failed, invalid, rocksdb_failed};
use crate::opening::{CHECKPOINT_FOLDER, remove_checkpoint};
use crate::store::Store;
use manifest::{BackedUpFile, Manifest};

pub use restore::restore;

/// The folder of the copies.
const FILES_FOLDER: &str = "files";
/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// Makes a backup. `own` is where the store lies, the request's environment where the backup goes.
pub(crate) fn make(
    store: &Store,
    own: &Environment,
    request: &BackupRequest<'_>,
) -> Result<BackupReport, StorageError> {
    let failed = |error| environment_failed("cannot write the backup", error);
    let _turn = store.backup_turn.lock();
    let files = request.environment.files();
    files.create_dir(request.folder).map_err(failed)?;
    let _lock = files.lock(request.folder).map_err(failed)?;
    prepare_folder(request)?;
    remove_checkpoint(own, &store.folder)?;
    store.flush()?;
    let outcome = store.make_checkpoint().and_then(|moment| copy_checkpoint(store, own, request, moment));
    let removed = remove_checkpoint(own, &store.folder);
    let report = outcome?;
    removed.map(|()| report)
}

/// Accepts a folder that is empty or has the rest of an unfinished backup, and removes that.
fn prepare_folder(request: &BackupRequest<'_>) -> Result<(), StorageError> {
    let failed = |error| environment_failed("cannot look into the folder of the backup", error);
    let files = request.environment.files();
    let names = files.list(request.folder).map_err(failed)?;
    if let Some(name) =
        names.iter().find(|name| !["LOCK", FILES_FOLDER, manifest::UNFINISHED].contains(&name.as_str()))
    {
        let folder = request.folder.display();
        let message = format!("{folder} holds {name}: a backup wants a folder of its own, new or empty");
        return Err(invalid(message));
    }
    let copies = request.folder.join(FILES_FOLDER);
    files.create_dir(&copies).map_err(failed)?;
    for name in files.list(&copies).map_err(failed)? {
        files.remove(&copies.join(name)).map_err(failed)?;
    }
    Ok(())
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
    request: &BackupRequest<'_>,
    moment: CommitTimestamp,
) -> Result<BackupReport, StorageError> {
    let failed = |error| environment_failed("cannot write the backup", error);
    let (from, to) = (store.folder.join(CHECKPOINT_FOLDER), request.folder.join(FILES_FOLDER));
    let mut copied = Vec::new();
    for name in own.files().list(&from).map_err(failed)? {
        let mut copy = Copy::begin(own, &from.join(&name), request.environment, &to.join(&name))?;
        while copy.piece()? {
            request.operation.map_or(Ok(()), Operation::check_now)?;
        }
        let (bytes, hash) = (copy.at, copy.finish()?);
        copied.push(BackedUpFile { name, bytes, hash });
    }
    request.environment.files().sync_dir(&to).map_err(failed)?;
    let bytes = copied.iter().map(|file| file.bytes).sum();
    Manifest { moment, files: copied }.write(request.environment, request.folder)?;
    Ok(BackupReport { moment, extent: BackupExtent::Full, bytes })
}

/// The copy of a file, a piece at a time.
struct Copy {
    from: Arc<dyn File>,
    to: Arc<dyn File>,
    bytes: u64,
    at: u64,
    hash: Xxh3Default,
    piece: Vec<u8>,
}

impl Copy {
    fn begin(
        from_environment: &Environment,
        from: &Path,
        to_environment: &Environment,
        to: &Path,
    ) -> Result<Copy, StorageError> {
        let failed = |error| environment_failed("cannot copy a file", error);
        let from =
            from_environment.files().open(from, OpenMode::ReadOnly, Access::Buffered).map_err(failed)?;
        let to = to_environment.files().open(to, OpenMode::CreateNew, Access::Buffered).map_err(failed)?;
        let bytes = from.length().map_err(failed)?;
        Ok(Copy { from, to, bytes, at: 0, hash: Xxh3Default::new(), piece: Vec::new() })
    }

    /// Copies the next piece; false at the end.
    fn piece(&mut self) -> Result<bool, StorageError> {
        let failed = |error| environment_failed("cannot copy a file", error);
        let bytes = (self.bytes - self.at).min(PIECE_BYTES as u64) as usize;
        if bytes == 0 {
            return Ok(false);
        }
        self.piece.resize(bytes, 0);
        self.from.read_exact_at(&mut self.piece, self.at).map_err(failed)?;
        self.hash.update(&self.piece);
        self.to.write_all_at(&self.piece, self.at).map_err(failed)?;
        self.at += bytes as u64;
        Ok(true)
    }

    /// Brings the copy to the device, and gives the hash of what was copied.
    fn finish(self) -> Result<u64, StorageError> {
        self.to.sync_data().map_err(|error| environment_failed("cannot copy a file", error))?;
        Ok(self.hash.digest())
    }
}
