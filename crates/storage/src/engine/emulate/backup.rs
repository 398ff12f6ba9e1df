//! Online backup for every engine: one snapshot, read tree by tree into one file of checksummed frames.
//!
//! # The file `trees.backup`
//! `magic "PANDODMP", version u32, zero u32`, then frames: `bytes of the payload u32, kind u8, 3 zero bytes,
//! xxh3-64 of the first 8 bytes and the payload u64, payload`. All numbers are little-endian.
//!
//! | kind | payload |
//! |---|---|
//! | 1 tree | its name; the entries that follow are its |
//! | 2 entries | per entry: bytes of the key u32, bytes of the value u32, key, value |
//! | 3 end | the last commit u64, number of entries u64; no frame follows |
//!
//! It is written as `trees.backup.new`, synced, and renamed: a file of the final name is whole.
//!
//! # Not here
//! Incremental backups, and the options of trees.

use std::path::Path;
use std::sync::Arc;

use pando_environment::{Access, Environment, EnvironmentError, File, OpenMode};
use xxhash_rust::xxh3::Xxh3Default;

use crate::access::BlockingMode;
use crate::backup::{BackupExtent, BackupReport, BackupRequest};
use crate::durability::Durability;
use crate::engine::{Begin, Engine, TreeOptions};
use crate::error::{ErrorKind, StorageError};
use crate::identifiers::{CommitTimestamp, TreeId};
use crate::key_range::{Direction, KeyRange};
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::operation::Operation;
use crate::transaction::{Cursor, Transaction};

/// The file of an emulated backup.
const FILE: &str = "trees.backup";
/// Its name until it is whole.
const UNFINISHED: &str = "trees.backup.new";
const MAGIC: [u8; 8] = *b"PANDODMP";
const VERSION: u32 = 1;
const FILE_HEADER_BYTES: u64 = 16;
const FRAME_HEADER_BYTES: usize = 16;
/// A frame of entries is written when it has this many bytes.
const FRAME_BYTES: usize = 1 << 20;
/// No sound frame is longer.
const FRAME_BYTES_MAX: usize = FRAME_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX + 64;

const TREE: u8 = 1;
const ENTRIES: u8 = 2;
const END: u8 = 3;

/// [`Engine::backup`] by a snapshot of everything. Always full.
pub fn backup<E: Engine + ?Sized>(
    engine: &E,
    request: &BackupRequest<'_>,
) -> Result<BackupReport, StorageError> {
    let files = request.environment.files();
    files.create_dir(request.folder).map_err(failed)?;
    let _lock = files.lock(request.folder).map_err(failed)?;
    check_empty(request)?;
    let unfinished = request.folder.join(UNFINISHED);
    let outcome = write(engine, request, &unfinished);
    if outcome.is_err() {
        // The file is of no use, and the disk may be full; where it cannot be removed, the next attempt
        // overwrites it.
        let _removed = files.remove(&unfinished);
    }
    outcome
}

fn check_empty(request: &BackupRequest<'_>) -> Result<(), StorageError> {
    let names = request.environment.files().list(request.folder).map_err(failed)?;
    match names.iter().find(|name| !["LOCK", UNFINISHED].contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let folder = request.folder.display();
            let message = format!("{folder} holds {name}: a backup wants a folder of its own, new or empty");
            Err(StorageError::new(ErrorKind::InvalidInput, message))
        }
    }
}

fn write<E: Engine + ?Sized>(
    engine: &E,
    request: &BackupRequest<'_>,
    unfinished: &Path,
) -> Result<BackupReport, StorageError> {
    let files = request.environment.files();
    // The snapshot comes first: a tree that is made after it is empty in it, and may be there or not.
    let snapshot = engine.begin(Begin::READ)?;
    let trees = engine.list_trees()?;
    let file = files.open(unfinished, OpenMode::CreateOrOpen, Access::Buffered).map_err(failed)?;
    file.set_length(0).map_err(failed)?;
    let mut writer = FrameWriter { file, end: FILE_HEADER_BYTES };
    let mut entries = 0;
    for tree in trees {
        writer.frame(TREE, tree.name.as_bytes())?;
        entries += write_tree(snapshot.as_ref(), tree.id, request.operation, &mut writer)?;
    }
    let moment = snapshot.snapshot().get();
    writer.frame(END, &[moment.to_le_bytes(), entries.to_le_bytes()].concat())?;
    let mut header = [0; FILE_HEADER_BYTES as usize];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    writer.file.write_all_at(&header, 0).map_err(failed)?;
    writer.file.sync_data().map_err(failed)?;
    files.rename(unfinished, &request.folder.join(FILE)).map_err(failed)?;
    files.sync_dir(request.folder).map_err(failed)?;
    Ok(BackupReport { moment: CommitTimestamp::new(moment), extent: BackupExtent::Full, bytes: writer.end })
}

fn write_tree(
    snapshot: &dyn Transaction,
    tree: TreeId,
    operation: Option<&Operation>,
    writer: &mut FrameWriter,
) -> Result<u64, StorageError> {
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut payload = Vec::new();
    let mut entries = 0;
    loop {
        let next = match cursor.next(snapshot, BlockingMode::MayBlock) {
            // Dropped before the snapshot was taken, or never more than empty.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            next => next?,
        };
        if let Some((key, value)) = next {
            payload.extend_from_slice(&(key.len() as u32).to_le_bytes());
            payload.extend_from_slice(&(value.len() as u32).to_le_bytes());
            payload.extend_from_slice(key);
            payload.extend_from_slice(value);
            entries += 1;
            if payload.len() < FRAME_BYTES {
                continue;
            }
            if let Some(operation) = operation {
                operation.check_now()?;
            }
        } else if payload.is_empty() {
            return Ok(entries);
        }
        writer.frame(ENTRIES, &payload)?;
        payload.clear();
    }
}

struct FrameWriter {
    file: Arc<dyn File>,
    end: u64,
}

impl FrameWriter {
    fn frame(&mut self, kind: u8, payload: &[u8]) -> Result<(), StorageError> {
        let mut frame = Vec::with_capacity(FRAME_HEADER_BYTES + payload.len());
        frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        frame.extend_from_slice(&[kind, 0, 0, 0]);
        frame.extend_from_slice(&checksum(&frame, payload).to_le_bytes());
        frame.extend_from_slice(payload);
        self.file.write_all_at(&frame, self.end).map_err(failed)?;
        self.end += frame.len() as u64;
        Ok(())
    }
}

fn checksum(head: &[u8], payload: &[u8]) -> u64 {
    let mut hash = Xxh3Default::new();
    hash.update(head);
    hash.update(payload);
    hash.digest()
}

/// Puts an emulated backup into an engine that has no trees yet. Returns the number of its entries.
///
/// # Errors
/// `InvalidInput` where the folder holds no finished backup of this kind or the engine has trees. `Corrupt`
/// where the file is damaged. Entries that were put until then stay, so remove the engine's folder.
pub fn restore_backup(
    engine: &dyn Engine,
    environment: &Environment,
    folder: &Path,
) -> Result<u64, StorageError> {
    if let Some(tree) = engine.list_trees()?.first() {
        let message = format!("the store has the tree {:?}: restore into a new one", tree.name);
        return Err(StorageError::new(ErrorKind::InvalidInput, message));
    }
    let mut reader = FrameReader::open(environment, folder)?;
    let (mut tree, mut entries) = (None, 0);
    loop {
        let (kind, payload) = reader.frame()?;
        match (kind, tree) {
            (TREE, _) => {
                let name = std::str::from_utf8(&payload).map_err(|_| reader.damaged("a tree's name"))?;
                tree = Some(engine.create_tree(name, &TreeOptions::default())?);
            }
            (ENTRIES, Some(tree)) => entries += put_entries(engine, tree, &payload, &reader)?,
            (END, _) if payload.get(8..16) == Some(entries.to_le_bytes().as_slice()) => break,
            _ => return Err(reader.damaged("a frame out of place")),
        }
    }
    engine.checkpoint()?;
    Ok(entries)
}

fn put_entries(
    engine: &dyn Engine,
    tree: TreeId,
    payload: &[u8],
    reader: &FrameReader,
) -> Result<u64, StorageError> {
    let mut transaction = engine.begin(Begin::WRITE)?;
    let (mut rest, mut count) = (payload, 0);
    while !rest.is_empty() {
        let entry = split_entry(rest);
        let (key, value, behind) = entry.ok_or_else(|| reader.damaged("an entry that is cut short"))?;
        transaction.put_blind(tree, key, value)?;
        (rest, count) = (behind, count + 1);
    }
    transaction.commit(Durability::Logged)?;
    Ok(count)
}

/// Key, value, and the rest.
fn split_entry(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (key_bytes, rest) = bytes.split_first_chunk()?;
    let (value_bytes, rest) = rest.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*key_bytes) as usize)?;
    let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value_bytes) as usize)?;
    Some((key, value, rest))
}

struct FrameReader {
    file: Arc<dyn File>,
    length: u64,
    at: u64,
}

impl FrameReader {
    fn open(environment: &Environment, folder: &Path) -> Result<FrameReader, StorageError> {
        let path = folder.join(FILE);
        if !environment.files().exists(&path).map_err(failed)? {
            let names = environment.files().list(folder).map_err(failed)?;
            let other = names.iter().find_map(|name| of_another_engine(name)).unwrap_or_default();
            let message = format!("{} holds no finished backup ({FILE} is missing){other}", folder.display());
            return Err(StorageError::new(ErrorKind::InvalidInput, message));
        }
        let file = environment.files().open(&path, OpenMode::ReadOnly, Access::Buffered).map_err(failed)?;
        let length = file.length().map_err(failed)?;
        let mut reader = FrameReader { file, length, at: 0 };
        let header = reader.bytes(FILE_HEADER_BYTES as usize)?;
        if header[..8] != MAGIC {
            return Err(reader.damaged("another beginning than a backup has"));
        }
        let version = header[8..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if version != VERSION {
            let message = format!(
                "{} has format version {version}, this program reads version {VERSION}: restore it with the \
                 program that wrote it",
                path.display()
            );
            return Err(StorageError::new(ErrorKind::InvalidInput, message));
        }
        Ok(reader)
    }

    fn frame(&mut self) -> Result<(u8, Vec<u8>), StorageError> {
        let header = self.bytes(FRAME_HEADER_BYTES)?;
        let (head, expected) = header.split_at(8);
        let length = head.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(self.damaged("a frame that is too long"));
        }
        let payload = self.bytes(length)?;
        if checksum(head, &payload).to_le_bytes() != expected {
            return Err(self.damaged("a frame with another checksum"));
        }
        Ok((head[4], payload))
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, StorageError> {
        if self.at + count as u64 > self.length {
            return Err(self.damaged("its end too early"));
        }
        let mut bytes = vec![0; count];
        self.file.read_exact_at(&mut bytes, self.at).map_err(failed)?;
        self.at += count as u64;
        Ok(bytes)
    }

    fn damaged(&self, what: &str) -> StorageError {
        let path = self.file.path().display();
        let message = format!("the backup {path} is damaged: it has {what} at byte {}", self.at);
        StorageError::new(ErrorKind::Corrupt, message)
    }
}

/// The remark on a file that the backup of another engine has: an engine with backups of its own calls their
/// manifest `MANIFEST.ENGINE`, and the one that is chosen by default `MANIFEST`.
fn of_another_engine(name: &str) -> Option<String> {
    match name.strip_prefix("MANIFEST")? {
        "" => Some("; it has a backup of the default engine: restore it without --engine".to_owned()),
        rest => rest.strip_prefix('.').filter(|engine| *engine != "new").map(|engine| {
            format!("; it has a backup of the engine {engine}: restore it with --engine {engine}")
        }),
    }
}

fn failed(error: EnvironmentError) -> StorageError {
    let kind = match &error {
        EnvironmentError::Locked { .. } => ErrorKind::InvalidInput,
        EnvironmentError::Replaced { .. } => ErrorKind::Io,
        EnvironmentError::Io { .. } => ErrorKind::Io,
    };
    StorageError::with_source(kind, error.to_string(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backup_of_another_engine_is_told_by_its_manifest() {
        let told = |name: &str| of_another_engine(name).unwrap_or_default();
        assert!(told("MANIFEST.rocksdb").contains("restore it with --engine rocksdb"));
        assert!(told("MANIFEST").contains("restore it without --engine"));
        for other in ["MANIFEST.new", "LOCK", "trees.backup.new", "extents"] {
            assert_eq!(told(other), "", "{other}");
        }
    }
}
