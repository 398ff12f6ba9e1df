//! Hot backup: a copy of the store as of one commit, made while commits go on.
//!
//! # Steps
//! 1. Make a checkpoint, so that little of the log has to be copied. *Pin* its generation: no extent that it
//!    uses is reused ([`PinnedGeneration`]). Hold the log from the position at which that generation's replay
//!    begins.
//! 2. Close the commit gate for an instant and take the last LSN: this is the *moment* of the backup. Sync
//!    the log up to it, copy the log exactly up to it ([`Log::copy`](crate::log::Log::copy)), and release the
//!    hold.
//! 3. Copy the extents that the generation uses, in *pieces* of at most 1 MiB, one per
//!    [step](BackupJob::step). An incremental backup copies only extents that the one before does not have
//!    ([`changed`]).
//! 4. Sync all files, then write the [`manifest`] and rename it into place: only now the folder is a backup.
//!
//! # The folder of a backup `MANIFEST` (the content of the folder, with checksums), `extents` (the pieces,
//! one after the other), `wal/` (the log's segments, cut at the moment), `LOCK`. That of an encrypted store
//! has `keys`, too: its blocks and records are copied as they stand, under the same data keys.
//! [`restore`](mod@restore) makes a store from a chain of backups: a full one and each incremental one after
//! it.
//!
//! # Invariants
//! - A folder without `MANIFEST` holds no backup, whatever else is in it.
//! - A pinned generation never changes on disk, so pieces are copied without any lock; commits and
//!   checkpoints go on.
//! - An error ends only the backup: the store is unchanged, the pin is released, and written files are
//!   removed.

mod changed;
mod error;
mod manifest;
mod restore;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_encryption::{KEY_TABLE_FILE, UNFINISHED_KEY_TABLE_FILE};
use pando_environment::{Access, AlignedBuffer, Environment, File, FolderLock, OpenMode};
use pando_storage::{BackupExtent, BackupReport, BackupRequest, CommitTimestamp, Lsn, StorageError};
use xxhash_rust::xxh3::xxh3_64;

use crate::base::{UNIT_BYTES, create_durable_folder};
use crate::error::BetreeError;
use crate::log::{CopiedSegment, LOG_FOLDER, segment_file_name};
use crate::space::{IntervalSet, PinnedGeneration, Shutdown, Superblock};
use crate::store::Store;

pub use error::BackupError;
#[cfg(feature = "fuzzing")]
pub(crate) use manifest::decode_for_fuzzing;
use manifest::{BackupId, Manifest, Piece, read_manifest, write_manifest};
pub use restore::{restore, restore_encrypted};

/// The file of the pieces.
const EXTENTS_FILE: &str = "extents";
/// The longest piece, in units: 1 MiB.
const PIECE_UNITS: u64 = 256;

/// The progress of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupProgress {
    /// There is more to copy.
    Copying,
    /// The backup is finished and durable.
    Finished(BackupReport),
}

/// A backup under way. If it is dropped before it is finished, it removes the files that it wrote.
pub struct BackupJob {
    store: Arc<Store>,
    environment: Environment,
    folder: PathBuf,
    pin: PinnedGeneration,
    base: Option<BackupId>,
    moment: Lsn,
    /// Of the pinned generation, with the features of all commits up to the moment.
    superblock: Superblock,
    segments: Vec<CopiedSegment>,
    extents: Arc<dyn File>,
    extents_end: u64,
    /// The units still to be copied, in pieces; the next piece is the last element.
    remaining: Vec<std::ops::Range<u64>>,
    copied: Vec<Piece>,
    bytes: u64,
    buffer: AlignedBuffer,
    is_finished: bool,
    _lock: FolderLock,
}

impl BackupJob {
    /// Steps 1 and 2 of the [module](self). The moment of the backup lies within this call.
    pub(crate) fn begin(store: &Arc<Store>, request: &BackupRequest<'_>) -> Result<BackupJob, BetreeError> {
        store.gate.check_open()?;
        let (environment, folder) = (request.environment, request.folder);
        let base = request.since.map(|since| read_manifest(environment, since)).transpose()?;
        let files = environment.files();
        let failed = |error| BackupError::of(folder, error);
        create_durable_folder(files.as_ref(), folder).map_err(failed)?;
        let lock = files.lock(folder).map_err(failed)?;
        check_folder(environment, folder)?;
        match store.checkpointer.checkpoint(Shutdown::Running) {
            // Without a new checkpoint, a longer part of the log is copied.
            Err(error) if error.is_no_space() => {}
            outcome => outcome?,
        }
        let (pin, hold) = pin_newest(store);
        if let Some(base) = &base {
            base.check_before(pin.superblock(), request.since.unwrap_or(folder))?;
        }
        let extents =
            files.open(&folder.join(EXTENTS_FILE), OpenMode::CreateOrOpen, Access::Direct).map_err(failed)?;
        let mut job = BackupJob {
            superblock: pin.superblock().clone(),
            store: Arc::clone(store),
            environment: environment.clone(),
            folder: folder.to_owned(),
            pin,
            base: base.as_ref().map(|base| base.id),
            moment: Lsn::ZERO,
            segments: Vec::new(),
            extents,
            extents_end: 0,
            remaining: Vec::new(),
            copied: Vec::new(),
            bytes: 0,
            buffer: AlignedBuffer::zeroed((PIECE_UNITS * UNIT_BYTES) as usize),
            is_finished: false,
            _lock: lock,
        };
        job.extents.set_length(0).map_err(failed)?;
        if let Some(vault) = store.blocks.store().vault() {
            vault.write_table(environment, folder).map_err(|error| BackupError::of_keys(folder, error))?;
        }
        job.copy_log()?;
        drop(hold);
        job.choose_pieces(base.as_ref())?;
        Ok(job)
    }

    fn copy_log(&mut self) -> Result<(), BetreeError> {
        self.moment = {
            // The copy must not cut a large commit: replay would complete it, but not the commits before it
            // in time.
            let _no_large = self.store.large.exclude();
            let _gate = self.store.gate.close();
            // A checkpoint since the pin may have brought a feature that commits up to the moment need.
            self.superblock = self.pin.superblock_of_copy();
            self.store.gate.last_lsn()
        };
        let log = self.store.gate.log();
        log.sync(self.moment)?;
        let (folder, from) = (self.folder.join(LOG_FOLDER), self.pin.superblock().log_position());
        let copied = log.copy(&self.environment, &folder, from, self.moment);
        self.segments = copied.map_err(|error| BackupError::of_log(&self.folder, error))?;
        self.bytes += self.segments.iter().map(|segment| segment.bytes).sum::<u64>();
        Ok(())
    }

    fn choose_pieces(&mut self, base: Option<&Manifest>) -> Result<(), BetreeError> {
        let wanted = match base {
            None => self.pin.used().clone(),
            Some(base) => changed::extents_since(&self.pin, base)?,
        };
        self.remaining = cut_in_pieces(&wanted);
        self.remaining.reverse();
        Ok(())
    }

    /// Copies the next piece, or finishes. After an error the backup has failed; drop it.
    pub fn step(&mut self) -> Result<BackupProgress, StorageError> {
        Ok(self.copy_next()?)
    }

    fn copy_next(&mut self) -> Result<BackupProgress, BetreeError> {
        assert!(!self.is_finished, "a finished backup is not continued");
        self.store.gate.check_open()?;
        let Some(units) = self.remaining.pop() else { return self.finish() };
        let length = ((units.end - units.start) * UNIT_BYTES) as usize;
        let bytes = &mut self.buffer[..length];
        self.pin.read_units(units.start, bytes)?;
        let written = self.extents.write_all_at(bytes, self.extents_end);
        written.map_err(|error| BackupError::of(&self.folder, error))?;
        self.extents_end += length as u64;
        self.copied.push(Piece { units, checksum: xxh3_64(bytes) });
        self.bytes += length as u64;
        Ok(BackupProgress::Copying)
    }

    fn finish(&mut self) -> Result<BackupProgress, BetreeError> {
        let failed = |error| BackupError::of(&self.folder, error);
        self.extents.sync_data().map_err(failed)?;
        self.environment.files().sync_dir(&self.folder).map_err(failed)?;
        let manifest = Manifest {
            id: BackupId::random(&self.environment),
            base: self.base,
            created_millis: self.environment.clock().wall().millis(),
            moment: self.moment,
            superblock: self.superblock.clone(),
            segments: std::mem::take(&mut self.segments),
            used: self.pin.used().clone(),
            pieces: std::mem::take(&mut self.copied),
        };
        self.bytes += write_manifest(&self.environment, &self.folder, &manifest)?;
        self.is_finished = true;
        let extent = if self.base.is_some() { BackupExtent::Incremental } else { BackupExtent::Full };
        let moment = CommitTimestamp::new(self.moment.get());
        Ok(BackupProgress::Finished(BackupReport { moment, extent, bytes: self.bytes }))
    }
}

impl Drop for BackupJob {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        // Without a manifest the folder is no backup. If the removal fails, the next attempt overwrites the
        // files.
        let files = self.environment.files();
        let _removed = files.remove(&self.folder.join(EXTENTS_FILE));
        let _removed = files.remove(&self.folder.join(KEY_TABLE_FILE));
        for name in files.list(&self.folder.join(LOG_FOLDER)).unwrap_or_default() {
            let _removed = files.remove(&self.folder.join(LOG_FOLDER).join(name));
        }
    }
}

/// Pins the newest generation, and holds the log that its replay needs. Waits for a running checkpoint.
fn pin_newest(store: &Store) -> (PinnedGeneration, crate::log::LogHold) {
    let _no_checkpoint = store.checkpointer.state.exclude();
    let pin = PinnedGeneration::newest(store.blocks.store());
    let hold = store.gate.log().hold(pin.superblock().log_position().lsn());
    (pin, hold)
}

/// Accepts a folder that is empty or has only the files of an unfinished backup.
fn check_folder(environment: &Environment, folder: &Path) -> Result<(), BackupError> {
    let known = [
        "LOCK",
        EXTENTS_FILE,
        LOG_FOLDER,
        KEY_TABLE_FILE,
        UNFINISHED_KEY_TABLE_FILE,
        manifest::UNFINISHED_FILE,
    ];
    let names = environment.files().list(folder).map_err(|error| BackupError::of(folder, error))?;
    match names.into_iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(BackupError::NotEmpty { folder: folder.to_owned(), name }),
    }
}

fn cut_in_pieces(wanted: &IntervalSet) -> Vec<std::ops::Range<u64>> {
    let mut pieces = Vec::new();
    for units in wanted.iter() {
        let starts = (units.start..units.end).step_by(PIECE_UNITS as usize);
        pieces.extend(starts.map(|start| start..(start + PIECE_UNITS).min(units.end)));
    }
    pieces
}

/// The path of a segment's copy.
fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(LOG_FOLDER).join(segment_file_name(number))
}
