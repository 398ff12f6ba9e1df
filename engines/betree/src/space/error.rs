//! What can go wrong with blocks and superblocks, and what the caller of the engine is told of it.

use std::path::PathBuf;
use std::sync::Arc;

use pando_environment::EnvironmentError;
use pando_storage::{ErrorKind, StorageError};

use crate::base::FormatError;

/// What is wrong with a block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockProblem {
    /// The bytes are not those that the parent knows.
    #[error("checksum {expected:016x} expected, {found:016x} found; {found_block}")]
    Checksum {
        /// What the pointer says.
        expected: u64,
        /// What the bytes add up to.
        found: u64,
        /// Who the found block says it is.
        found_block: String,
    },
    /// The bytes are those that were written, and contradict their pointer.
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
    /// The payload does not decompress to its length.
    #[error("it does not decompress")]
    Decompression,
    /// The payload is not what a block of its kind holds.
    #[error("its content is malformed: {0}")]
    Content(FormatError),
}

/// An error of blocks, extents or superblocks.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// A file could not be read or written.
    #[error("{0}")]
    Environment(#[from] EnvironmentError),
    /// The device is full. Nothing has changed; the same call succeeds once there is room.
    #[error("no room for {wanted_bytes} bytes in {}: free space on its device", folder.display())]
    NoSpace {
        /// How much was asked for.
        wanted_bytes: u64,
        /// The store's folder.
        folder: PathBuf,
        /// What the device said, where it was asked.
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
        /// What it should be.
        kind: String,
        /// What is wrong with it.
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
    /// The file is not one of ours.
    #[error("{} is not a data file of Pando", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
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
        /// The version that stands there.
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
    /// No copy of the superblock is whole.
    #[error("all superblocks of {} are damaged: restore from a backup", path.display())]
    Superblock {
        /// The file.
        path: PathBuf,
    },
    /// The space map contradicts itself or what it is told. Nothing of it has been made durable.
    #[error("space map: {rule} is broken at unit {start}, {units} units")]
    Inconsistent {
        /// The rule that is broken.
        rule: &'static str,
        /// Where.
        start: u64,
        /// How far.
        units: u64,
    },
    /// A block that nobody can store.
    #[error("a block of {bytes} bytes is longer than the limit of {limit}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A write could not be made durable before; nothing is written any more. Open the store again.
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
            SpaceError::Environment(EnvironmentError::Io { .. }) | SpaceError::NoSpace { .. } => {
                ErrorKind::Io
            }
            SpaceError::Corrupt { .. }
            | SpaceError::Superblock { .. }
            | SpaceError::Inconsistent { .. }
            | SpaceError::NotOurs { .. } => ErrorKind::Corrupt,
            SpaceError::NoStore { .. } => ErrorKind::NotFound,
            SpaceError::StoreExists { .. }
            | SpaceError::Version { .. }
            | SpaceError::Features { .. }
            | SpaceError::TooLong { .. } => ErrorKind::InvalidInput,
            SpaceError::Poisoned { .. } => ErrorKind::Closed,
        }
    }
}

impl From<SpaceError> for StorageError {
    fn from(error: SpaceError) -> StorageError {
        StorageError::with_source(error.kind(), error.to_string(), error)
    }
}
