//! The errors of blocks, extents and superblocks, and the kind of each for the caller of the engine.

use std::path::PathBuf;
use std::sync::Arc;

use pando_encryption::EncryptionError;
use pando_environment::{EnvironmentError, FREE_SPACE};
use pando_storage::{ErrorKind, StorageError};

use crate::base::FormatError;

/// The defect of a block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockProblem {
    /// The bytes do not have the pointer's checksum.
    #[error("checksum {expected:016x} expected, {found:016x} found; {found_block}")]
    Checksum {
        /// The checksum in the pointer.
        expected: u64,
        /// The checksum of the bytes.
        found: u64,
        /// The block that the bytes claim to be.
        found_block: String,
    },
    /// The checksum holds, but the header contradicts the pointer.
    #[error("the header and the pointer differ in the {field}")]
    Header {
        /// Which field.
        field: &'static str,
    },
    /// The pointer leads outside the file.
    #[error("it lies outside the file of {file_bytes} bytes")]
    Range {
        /// The file's length.
        file_bytes: u64,
    },
    /// The block is not the one that was encrypted for this place, or its data key is not known.
    #[error("it is not what was encrypted for this place: it was changed, moved or put back")]
    Seal,
    /// The payload does not decompress to its length.
    #[error("it does not decompress")]
    Decompression,
    /// The payload cannot be decoded as a block of its kind.
    #[error("its content is malformed: {0}")]
    Content(FormatError),
}

fn way_to_room(source: Option<&EnvironmentError>) -> &'static str {
    source.map_or(FREE_SPACE, EnvironmentError::way_to_room)
}

/// An error of blocks, extents or superblocks.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// A file could not be read or written.
    #[error("{0}")]
    Environment(#[from] EnvironmentError),
    /// The device is full. The failed call has changed nothing; it succeeds once there is room.
    #[error("no room for {wanted_bytes} bytes in {}: {}", folder.display(), way_to_room(source.as_ref()))]
    NoSpace {
        /// The requested bytes.
        wanted_bytes: u64,
        /// The store's folder.
        folder: PathBuf,
        /// The device's own error, where it was asked.
        source: Option<EnvironmentError>,
    },
    /// A block is damaged.
    #[error("{}, block at byte {offset} ({kind}, {bytes} bytes) is damaged: {problem}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where the block begins, in bytes.
        offset: u64,
        /// Its length on disk, in bytes.
        bytes: u32,
        /// The kind that the pointer gives.
        kind: String,
        /// The defect.
        problem: BlockProblem,
    },
    /// The folder holds no store.
    #[error("{} holds no store", path.display())]
    NoStore {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds a store already.
    #[error("{} holds a store already", path.display())]
    StoreExists {
        /// The folder.
        path: PathBuf,
    },
    /// The file does not belong to this database.
    #[error("{} is not a data file of Pando", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The data file ends before what is in use.
    #[error(
        "{} has {bytes} bytes, and the store uses at least {needed}: it was cut off; put the whole file back, or restore from \
         a backup",
        path.display()
    )]
    CutOff {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// Bytes that it has at least, if it is whole.
        needed: u64,
    },
    /// Another version wrote the store.
    #[error(
        "{} has format version {found}, this program reads version {supported}: open it with the program that wrote it, \
         export, and import here",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version of this program.
        supported: u32,
    },
    /// The store uses features that this program does not know.
    #[error("{} needs features {bits:#x} that this program does not have: open it with a newer one", path.display())]
    Features {
        /// The file.
        path: PathBuf,
        /// The unknown bits.
        bits: u64,
    },
    /// The store has blocks in codecs that this program was built without.
    #[error(
        "{} has blocks in Snappy or zlib, and this program was built without them: build it with the feature 'codecs'",
        path.display()
    )]
    CodecsNotBuilt {
        /// The file.
        path: PathBuf,
    },
    /// A key is missing or wrong, or does not fit the store.
    #[error("{0}")]
    Encryption(#[from] EncryptionError),
    /// The newest superblock was changed by another program.
    #[error("the superblock of {} is not what was sealed: it was changed; restore from a backup", path.display())]
    SuperblockSeal {
        /// The file.
        path: PathBuf,
    },
    /// No copy of the superblock is whole.
    #[error("all superblocks of {} are damaged: restore from a backup", path.display())]
    Superblock {
        /// The file.
        path: PathBuf,
    },
    /// The space map contradicts itself or the change that is applied to it. No part of the change is
    /// durable.
    #[error("space map: {rule} is broken at unit {start}, {units} units")]
    Inconsistent {
        /// The rule that is broken.
        rule: &'static str,
        /// Where.
        start: u64,
        /// How far.
        units: u64,
    },
    /// A block is longer than the limit.
    #[error("a block of {bytes} bytes is longer than the limit of {limit}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A write could not be made durable earlier, so the store takes no more writes. Open the store again.
    #[error("the store has stopped writing after an earlier failure: {cause}")]
    Poisoned {
        /// The failure.
        cause: Arc<SpaceError>,
    },
}

impl SpaceError {
    fn kind(&self) -> ErrorKind {
        match self {
            SpaceError::Environment(EnvironmentError::Locked { .. }) => ErrorKind::Busy,
            SpaceError::Environment(EnvironmentError::Io { .. } | EnvironmentError::Replaced { .. })
            | SpaceError::NoSpace { .. } => ErrorKind::Io,
            SpaceError::Corrupt { .. }
            | SpaceError::Superblock { .. }
            | SpaceError::SuperblockSeal { .. }
            | SpaceError::Inconsistent { .. }
            | SpaceError::CutOff { .. }
            | SpaceError::NotOurs { .. } => ErrorKind::Corrupt,
            SpaceError::Encryption(error) => encryption_kind(error),
            SpaceError::NoStore { .. } => ErrorKind::NotFound,
            SpaceError::StoreExists { .. }
            | SpaceError::Version { .. }
            | SpaceError::Features { .. }
            | SpaceError::CodecsNotBuilt { .. }
            | SpaceError::TooLong { .. } => ErrorKind::InvalidInput,
            SpaceError::Poisoned { .. } => ErrorKind::Closed,
        }
    }
}

pub(crate) fn encryption_kind(error: &EncryptionError) -> ErrorKind {
    match error {
        EncryptionError::TableDamaged { .. } | EncryptionError::TableMissing { .. } => ErrorKind::Corrupt,
        EncryptionError::Environment(_)
        | EncryptionError::TableNotDurable { .. }
        | EncryptionError::NoRandomBytes => ErrorKind::Io,
        _ => ErrorKind::InvalidInput,
    }
}

impl From<SpaceError> for StorageError {
    fn from(error: SpaceError) -> StorageError {
        StorageError::with_source(error.kind(), error.to_string(), error)
    }
}
