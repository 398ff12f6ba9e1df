//! The errors of the log, and the kind of each for the caller of the engine.

use std::path::PathBuf;
use std::sync::Arc;

use pando_environment::EnvironmentError;
use pando_storage::{ErrorKind, Lsn, StorageError};

/// The defect of the log at a place where it should go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordProblem {
    /// The record's checksum is wrong, and a later record says that it was durable.
    #[error("the record is damaged, though {witness} was written after it had been synced")]
    DamagedBefore {
        /// The later record.
        witness: Lsn,
    },
    /// The segment ends before the one that follows it begins.
    #[error("the record is damaged or missing, though a later segment begins with {next}")]
    MissingBefore {
        /// The first record of the later segment.
        next: Lsn,
    },
    /// The log ends before the record that the last checkpoint knew to be durable.
    #[error("the log ends here, though it was synced up to {synced_to}")]
    EndsEarly {
        /// The last record known to be durable.
        synced_to: Lsn,
    },
    /// The segment in which replay begins is missing, or its header is damaged.
    #[error("the segment is missing or its header is damaged")]
    NoSegment,
    /// The record's checksum is right, but its payload cannot be decompressed.
    #[error("the payload of the record {lsn} cannot be decompressed")]
    Payload {
        /// The record.
        lsn: Lsn,
    },
    /// The record's checksum is right, but it is not the record that was encrypted for this place.
    #[error("the record {lsn} is not what was encrypted for this place: it was changed, moved or put back")]
    Seal {
        /// The record.
        lsn: Lsn,
    },
    /// The segment belongs to another store.
    #[error("the segment belongs to another store")]
    OtherStore,
    /// Another version of the program wrote the segment.
    #[error("the segment has format version {found}")]
    Version {
        /// The version found.
        found: u32,
    },
}

/// An error of the log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file could not be read or written.
    #[error("{0}")]
    Environment(#[from] EnvironmentError),
    /// The device is full. The record has not been appended; appending succeeds once there is room.
    #[error("no room for {wanted_bytes} bytes of log in {}: {}", folder.display(), source.way_to_room())]
    NoSpace {
        /// The requested bytes.
        wanted_bytes: u64,
        /// The log's folder.
        folder: PathBuf,
        /// The device's own error.
        source: EnvironmentError,
    },
    /// The log is damaged before its end.
    #[error("{} is damaged at byte {offset}, {lsn}: {problem}; restore from a backup", path.display())]
    Corrupt {
        /// The segment.
        path: PathBuf,
        /// The byte in the segment.
        offset: u64,
        /// The record that should stand there.
        lsn: Lsn,
        /// The defect.
        problem: RecordProblem,
    },
    /// A payload is longer than the limit.
    #[error("a record of {bytes} bytes is longer than the limit of {limit}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The engine could not apply a record at recovery.
    #[error("{lsn} cannot be replayed: {source}")]
    Replay {
        /// The record.
        lsn: Lsn,
        /// Why.
        source: StorageError,
    },
    /// A write or sync failed earlier, so the log takes no more records. Open the store again.
    #[error("the log has stopped after an earlier failure: {cause}")]
    Poisoned {
        /// The failure.
        cause: Arc<LogError>,
    },
    /// The log is closed.
    #[error("the log is closed")]
    Closed,
}

impl LogError {
    fn kind(&self) -> ErrorKind {
        match self {
            LogError::Environment(_) | LogError::NoSpace { .. } => ErrorKind::Io,
            LogError::Corrupt { problem: RecordProblem::Version { .. }, .. } | LogError::TooLong { .. } => {
                ErrorKind::InvalidInput
            }
            LogError::Corrupt { .. } => ErrorKind::Corrupt,
            LogError::Replay { source, .. } => source.kind(),
            LogError::Poisoned { .. } | LogError::Closed => ErrorKind::Closed,
        }
    }
}

impl From<LogError> for StorageError {
    fn from(error: LogError) -> StorageError {
        StorageError::with_source(error.kind(), error.to_string(), error)
    }
}
