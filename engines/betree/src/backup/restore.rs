//! Restore: makes a store from a full backup and the incremental ones after it.
//!
//! 1. Read the manifests. Each must be whole and name the one before it; together they must have all extents
//!    that the last generation uses.
//! 2. Give `data.0000.new` its whole length, then write the pieces, the oldest backup first: pieces of later
//!    backups are newer. Each piece is checked before it is written.
//! 3. Copy the log of the last backup and write the superblock, both under a new random store id. The
//!    restored store is another store: neither accepts later backups of the other as its own.
//! 4. Sync the data file and rename it. Only now there is a store. Opening it replays the log up to the
//!    moment of the backup.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_encryption::{Encryption, EncryptionError, KEY_TABLE_FILE, UNFINISHED_KEY_TABLE_FILE, Vault};
use pando_environment::{Access, AlignedBuffer, Environment, EnvironmentError, File, OpenMode};
use pando_storage::{BackupExtent, BackupReport, CommitTimestamp, StorageError};
use xxhash_rust::xxh3::xxh3_64;

use super::error::{BackupError, ManifestProblem};
use super::manifest::{Manifest, Piece, read_manifest};
use super::{EXTENTS_FILE, PIECE_UNITS, segment_path};
use crate::base::{FileId, StoreId, UNIT_BYTES, create_durable_folder};
use crate::log::{CopyProblem, LOG_FOLDER, adopt};
use crate::space::{IntervalSet, Slot, write_slot};

/// The data file until the store is whole.
const UNFINISHED_SUFFIX: &str = ".new";

/// A backup with its folder.
struct Link {
    folder: PathBuf,
    manifest: Manifest,
}

/// Makes a store in the folder `to` from these backups: a full one, then each incremental one in order.
/// Reports the moment of the last one, and the bytes of the new store.
///
/// # Errors
/// A backup is unfinished, damaged, of another version, or does not follow the one before it. The folder is
/// not empty. The device fails or is full. The folder has no store then, and another call begins anew.
pub fn restore(
    environment: &Environment,
    backups: &[PathBuf],
    to: &Path,
) -> Result<BackupReport, StorageError> {
    restore_encrypted(environment, backups, to, None)
}

/// The same for backups of an encrypted store. The new store has the same data keys under the same master
/// key.
///
/// # Errors
/// As for [`restore`]; and a key that is missing, or not the one of the backups.
pub fn restore_encrypted(
    environment: &Environment,
    backups: &[PathBuf],
    to: &Path,
    encryption: Option<&Encryption>,
) -> Result<BackupReport, StorageError> {
    let chain = read_chain(environment, backups)?;
    let vault = open_keys(environment, &chain, encryption)?;
    let failed = |error| BackupError::of(to, error);
    create_durable_folder(environment.files().as_ref(), to).map_err(failed)?;
    let _lock = environment.files().lock(to).map_err(failed)?;
    check_target(environment, to)?;
    Ok(build(environment, &chain, to, vault.as_deref())?)
}

/// The keys of the last backup of a chain. It has those of all blocks that its generation reaches.
fn open_keys(
    environment: &Environment,
    chain: &[Link],
    encryption: Option<&Encryption>,
) -> Result<Option<Arc<Vault>>, BackupError> {
    let last = chain.last().ok_or(BackupError::NoBackup)?;
    let refused = |error| BackupError::of_keys(&last.folder, error);
    let superblock = &last.manifest.superblock;
    let vault = match (encryption, superblock.is_encrypted()) {
        (None, false) => return Ok(None),
        (None, true) => return Err(refused(EncryptionError::KeyMissing { folder: last.folder.clone() })),
        (Some(_), false) => {
            return Err(refused(EncryptionError::StoreIsPlain { folder: last.folder.clone() }));
        }
        (Some(encryption), true) => Vault::open(environment, &last.folder, encryption).map_err(refused)?,
    };
    if !superblock.is_sealed_by(Some(&vault)) {
        let path = last.folder.clone();
        return Err(BackupError::Manifest { path, problem: ManifestProblem::Superblock });
    }
    Ok(Some(vault))
}

fn read_chain(environment: &Environment, backups: &[PathBuf]) -> Result<Vec<Link>, BackupError> {
    let mut chain: Vec<Link> = Vec::new();
    for folder in backups {
        let manifest = read_manifest(environment, folder)?;
        match chain.last() {
            None if manifest.base.is_some() => {
                return Err(BackupError::NotFull { folder: folder.clone() });
            }
            Some(last) if manifest.base != Some(last.manifest.id) => {
                return Err(BackupError::Gap { folder: folder.clone(), before: last.folder.clone() });
            }
            _ => chain.push(Link { folder: folder.clone(), manifest }),
        }
    }
    if chain.is_empty() { Err(BackupError::NoBackup) } else { Ok(chain) }
}

/// The file by which a caller marks a folder into which it restores.
const MARK: &str = "restoring";

/// Accepts a folder that is empty or has only the files of an unfinished restore, and removes their log.
fn check_target(environment: &Environment, to: &Path) -> Result<(), BackupError> {
    let failed = |error| BackupError::of(to, error);
    let (data, unfinished) = (FileId::FIRST.name(), FileId::FIRST.name() + UNFINISHED_SUFFIX);
    let names = environment.files().list(to).map_err(failed)?;
    if names.contains(&data) {
        return Err(BackupError::StoreExists { folder: to.to_owned() });
    }
    let is_begun = names.contains(&unfinished);
    let begun = [unfinished.as_str(), LOG_FOLDER, KEY_TABLE_FILE, UNFINISHED_KEY_TABLE_FILE];
    let is_known = |name: &str| name == "LOCK" || name == MARK || (is_begun && begun.contains(&name));
    if let Some(name) = names.into_iter().find(|name| !is_known(name)) {
        return Err(BackupError::NotEmpty { folder: to.to_owned(), name });
    }
    let log = to.join(LOG_FOLDER);
    if is_begun && environment.files().exists(&log).map_err(failed)? {
        for name in environment.files().list(&log).map_err(failed)? {
            environment.files().remove(&log.join(name)).map_err(failed)?;
        }
    }
    Ok(())
}

fn build(
    environment: &Environment,
    chain: &[Link],
    to: &Path,
    vault: Option<&Vault>,
) -> Result<BackupReport, BackupError> {
    let failed = |error| BackupError::of(to, error);
    let last = chain.last().ok_or(BackupError::NoBackup)?;
    let used = &last.manifest.used;
    let unfinished = to.join(FileId::FIRST.name() + UNFINISHED_SUFFIX);
    let files = environment.files();
    let file = files.open(&unfinished, OpenMode::CreateOrOpen, Access::Direct).map_err(failed)?;
    let end = used.iter().next_back().map_or(0, |units| units.end).max(crate::space::HEAD_UNITS);
    file.set_length(0).map_err(failed)?;
    file.allocate(0, end * UNIT_BYTES).map_err(failed)?;
    let mut missing = used.clone();
    for link in chain {
        copy_pieces(environment, link, used, &mut missing, file.as_ref(), to)?;
    }
    if let Some(units) = missing.iter().next() {
        let (path, offset) = (last.folder.join(EXTENTS_FILE), units.start * UNIT_BYTES);
        return Err(BackupError::Damaged { path, offset, problem: "no backup of the chain has the extent" });
    }
    let mut name = [0; 16];
    environment.random().fill(&mut name);
    let store = StoreId::new(name);
    adopt_log(environment, last, to, store)?;
    if let Some(vault) = vault {
        // The name of the data file is durable first, so that no crash leaves the keys alone.
        files.sync_dir(to).map_err(failed)?;
        vault.write_table(environment, to).map_err(|error| BackupError::of_keys(to, error))?;
    }
    let superblock = last.manifest.superblock.of_new_store(store, end).sealed_by(vault);
    let written = write_slot(file.as_ref(), Slot::A, &superblock)
        .and_then(|()| file.sync_data())
        .and_then(|()| files.rename(&unfinished, &to.join(FileId::FIRST.name())))
        .and_then(|()| files.sync_dir(to));
    written.map_err(failed)?;
    let moment = CommitTimestamp::new(last.manifest.moment.get());
    Ok(BackupReport { moment, extent: BackupExtent::Full, bytes: end * UNIT_BYTES })
}

/// Writes those parts of a backup's pieces that the last generation uses.
fn copy_pieces(
    environment: &Environment,
    link: &Link,
    used: &IntervalSet,
    missing: &mut IntervalSet,
    target: &dyn File,
    to: &Path,
) -> Result<(), BackupError> {
    let path = link.folder.join(EXTENTS_FILE);
    let failed = |error| BackupError::of(&link.folder, error);
    let source: Arc<dyn File> =
        environment.files().open(&path, OpenMode::ReadOnly, Access::Direct).map_err(failed)?;
    let length = source.length().map_err(failed)?;
    let mut buffer = AlignedBuffer::zeroed((PIECE_UNITS * UNIT_BYTES) as usize);
    let mut offset = 0;
    for piece in &link.manifest.pieces {
        let damaged = |problem| BackupError::Damaged { path: path.clone(), offset, problem };
        if offset + piece.bytes() > length {
            return Err(damaged("it ends too early"));
        }
        let bytes = &mut buffer[..piece.bytes() as usize];
        source.read_exact_at(bytes, offset).map_err(failed)?;
        if xxh3_64(bytes) != piece.checksum {
            return Err(damaged("a checksum does not hold"));
        }
        write_used_parts(piece, bytes, used, target).map_err(|error| BackupError::of(to, error))?;
        missing.take(piece.units.clone());
        offset += piece.bytes();
    }
    Ok(())
}

fn write_used_parts(
    piece: &Piece,
    bytes: &[u8],
    used: &IntervalSet,
    target: &dyn File,
) -> Result<(), EnvironmentError> {
    let mut at = piece.units.start;
    while let Some(part) = used.overlap(&(at..piece.units.end)).filter(|part| part.start < part.end) {
        let byte = |unit: u64| ((unit - piece.units.start) * UNIT_BYTES) as usize;
        target.write_all_at(&bytes[byte(part.start)..byte(part.end)], part.start * UNIT_BYTES)?;
        at = part.end;
    }
    Ok(())
}

fn adopt_log(environment: &Environment, last: &Link, to: &Path, store: StoreId) -> Result<(), BackupError> {
    for segment in &last.manifest.segments {
        let path = segment_path(&last.folder, segment.number);
        let source = environment.files().open(&path, OpenMode::ReadOnly, Access::Buffered);
        let adopted = source.and_then(|source| adopt(environment, source.as_ref(), *segment, to, store));
        let adopted = adopted.map_err(|error| BackupError::of(to, error))?;
        adopted.map_err(|problem| BackupError::Damaged {
            path,
            offset: 0,
            problem: match problem {
                CopyProblem::Truncated => "it ends too early",
                CopyProblem::Checksum => "a checksum does not hold",
                CopyProblem::Header => "it has no header of a segment",
            },
        })?;
    }
    Ok(())
}
