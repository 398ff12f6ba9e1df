//! Backups by files, for engines that can keep a consistent set of their files while they are copied.
//!
//! # The folder of a backup
//! `files/` has the engine's files, and the *manifest* their names, lengths and hashes. The manifest is
//! written last: without it there is no backup.
//!
//! # A restore
//! 1. Read the manifest.
//! 2. Copy each file into `NAME.new`, and compare length and hash with the manifest's.
//! 3. Sync the folder and rename it to `NAME`. Only now there is a store.
//!
//! # Not here
//! Incremental backups: a backup by files is always full. The engine chooses the files and the moment.

mod manifest;

use std::path::Path;
use std::sync::Arc;

use pando_environment::{Access, Environment, EnvironmentError, File, FolderLock, OpenMode};
use xxhash_rust::xxh3::Xxh3Default;

use crate::backup::{BackupExtent, BackupReport, BackupRequest};
use crate::error::{ErrorKind, StorageError};
use crate::identifiers::CommitTimestamp;
use crate::operation::Operation;
use manifest::{BackedUpFile, Manifest, ManifestFile};

/// The folder of the copies.
const FILES_FOLDER: &str = "files";
/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// The backups of an engine.
#[derive(Clone, Copy, Debug)]
pub struct FileBackups {
    /// The engine, for messages.
    pub engine: &'static str,
    /// The name of the manifest, which no other engine has.
    pub manifest: &'static str,
    /// The folder of the engine's files within that of the store.
    pub data_folder: &'static str,
}

impl FileBackups {
    const fn manifest(self) -> ManifestFile {
        ManifestFile { engine: self.engine, name: self.manifest }
    }

    /// Begins a backup in the folder of the request, which is new, empty, or has the rest of an unfinished
    /// one.
    pub fn begin(self, request: &BackupRequest<'_>) -> Result<FileBackup, StorageError> {
        let failed = failed_while("cannot write the backup");
        let files = request.environment.files();
        files.create_dir(request.folder).map_err(failed)?;
        let lock = files.lock(request.folder).map_err(failed)?;
        self.prepare_folder(request)?;
        Ok(FileBackup { of: self, copied: Vec::new(), _lock: lock })
    }

    /// Refuses a folder with anything but an unfinished backup, and removes the copies of that.
    fn prepare_folder(self, request: &BackupRequest<'_>) -> Result<(), StorageError> {
        let failed = failed_while("cannot look into the folder of the backup");
        let files = request.environment.files();
        let unfinished = self.manifest().unfinished_name();
        let names = files.list(request.folder).map_err(failed)?;
        if let Some(name) =
            names.iter().find(|name| !["LOCK", FILES_FOLDER, &unfinished].contains(&name.as_str()))
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

    /// Makes a store in the folder `to` from a backup. Reports the moment of the backup, and the bytes of the
    /// new store.
    ///
    /// # Errors
    /// The backup is unfinished or damaged, or of another version. The folder has a store. The device fails
    /// or is full. The folder has no store then, and another call begins anew.
    pub fn restore(
        self,
        environment: &Environment,
        backup: &Path,
        to: &Path,
    ) -> Result<BackupReport, StorageError> {
        let failed = failed_while("cannot restore the backup");
        let manifest = Manifest::read(self.manifest(), environment, backup)?;
        let files = environment.files();
        files.create_dir(to).map_err(failed)?;
        let _lock = files.lock(to).map_err(failed)?;
        let (data, unfinished) = (to.join(self.data_folder), to.join(format!("{}.new", self.data_folder)));
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
            let mut copy = FileCopy::begin(environment, &from, environment, &unfinished.join(&file.name))?;
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
        Ok(BackupReport { moment: manifest.moment, extent: BackupExtent::Full, bytes })
    }
}

/// A backup that is being written.
pub struct FileBackup {
    of: FileBackups,
    copied: Vec<BackedUpFile>,
    _lock: FolderLock,
}

impl FileBackup {
    /// Copies a file of the store, which nobody changes meanwhile. `own` is where the store lies. An
    /// interruption of the operation ends the copy between two pieces.
    pub fn copy(
        &mut self,
        own: &Environment,
        from: &Path,
        name: &str,
        request: &BackupRequest<'_>,
    ) -> Result<(), StorageError> {
        let to = request.folder.join(FILES_FOLDER).join(name);
        let mut copy = FileCopy::begin(own, from, request.environment, &to)?;
        while copy.piece()? {
            request.operation.map_or(Ok(()), Operation::check_now)?;
        }
        let (bytes, hash) = (copy.at, copy.finish()?);
        self.copied.push(BackedUpFile { name: name.to_owned(), bytes, hash });
        Ok(())
    }

    /// Writes the manifest, after which there is a backup of all commits up to this one.
    pub fn finish(
        self,
        moment: CommitTimestamp,
        request: &BackupRequest<'_>,
    ) -> Result<BackupReport, StorageError> {
        let synced = request.environment.files().sync_dir(&request.folder.join(FILES_FOLDER));
        synced.map_err(failed_while("cannot write the backup"))?;
        let bytes = self.copied.iter().map(|file| file.bytes).sum();
        let manifest = Manifest { moment, files: self.copied };
        manifest.write(self.of.manifest(), request.environment, request.folder)?;
        Ok(BackupReport { moment, extent: BackupExtent::Full, bytes })
    }
}

/// The copy of a file, a piece at a time.
struct FileCopy {
    from: Arc<dyn File>,
    to: Arc<dyn File>,
    bytes: u64,
    at: u64,
    hash: Xxh3Default,
    piece: Vec<u8>,
}

impl FileCopy {
    fn begin(
        from_environment: &Environment,
        from: &Path,
        to_environment: &Environment,
        to: &Path,
    ) -> Result<FileCopy, StorageError> {
        let failed = failed_while("cannot copy a file");
        let from = from_environment.files().open(from, OpenMode::ReadOnly, Access::Buffered);
        let from = from.map_err(failed)?;
        let to = to_environment.files().open(to, OpenMode::CreateNew, Access::Buffered).map_err(failed)?;
        let bytes = from.length().map_err(failed)?;
        Ok(FileCopy { from, to, bytes, at: 0, hash: Xxh3Default::new(), piece: Vec::new() })
    }

    /// Copies the next piece; false at the end.
    fn piece(&mut self) -> Result<bool, StorageError> {
        let failed = failed_while("cannot copy a file");
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
        self.to.sync_data().map_err(failed_while("cannot copy a file"))?;
        Ok(self.hash.digest())
    }
}

/// An error of the file system, with what was being done.
fn failed_while(doing: &'static str) -> impl Fn(EnvironmentError) -> StorageError + Copy {
    move |error| {
        let kind = match &error {
            EnvironmentError::Locked { .. } => ErrorKind::InvalidInput,
            EnvironmentError::Replaced { .. } => ErrorKind::Io,
            EnvironmentError::Io { .. } => ErrorKind::Io,
        };
        StorageError::with_source(kind, format!("{doing}: {error}"), error)
    }
}

fn corrupt(message: String) -> StorageError {
    StorageError::new(ErrorKind::Corrupt, message)
}

fn invalid(message: String) -> StorageError {
    StorageError::new(ErrorKind::InvalidInput, message)
}
