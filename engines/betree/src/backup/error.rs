//! Errors of backups and restores.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_encryption::EncryptionError;
use pando_environment::EnvironmentError;
use pando_storage::{ErrorKind, StorageError};

use crate::base::FormatError;
use crate::error::BetreeError;
use crate::log::LogError;
use crate::space::encryption_kind;

/// An error of a backup or a restore. None of them damages the store that is backed up.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BackupError {
    /// A file of the backup could not be read or written.
    #[error("{0}")]
    Environment(#[source] Arc<EnvironmentError>),
    /// The device of the backup (or of the restored store) is full.
    #[error("no room left in {}: {source}; {} and begin again", folder.display(), source.way_to_room())]
    NoSpace {
        /// The folder that is written to.
        folder: PathBuf,
        /// The error of the device.
        source: Arc<EnvironmentError>,
    },
    /// The log could not be copied.
    #[error("the log cannot be copied: {0}")]
    Log(#[source] Arc<LogError>),
    /// A key is missing or wrong, or does not fit the backup.
    #[error("{0}")]
    Encryption(#[source] Arc<EncryptionError>),
    /// The folder holds something.
    #[error("{} holds {name}: a backup or a restored store wants a folder of its own, new or empty", folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
        /// The name of a file in it.
        name: String,
    },
    /// The folder holds no finished backup.
    #[error("{} holds no finished backup (MANIFEST is missing)", folder.display())]
    Unfinished {
        /// The folder.
        folder: PathBuf,
    },
    /// Another version of the program wrote the backup.
    #[error(
        "{} has format version {found}, this program reads version {supported}: restore it with the program that wrote it",
        path.display()
    )]
    Version {
        /// The manifest.
        path: PathBuf,
        /// The version in the manifest.
        found: u32,
        /// The version of this program.
        supported: u32,
    },
    /// The manifest is damaged.
    #[error("the manifest {} is damaged: {problem}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The problem of the manifest.
        problem: ManifestProblem,
    },
    /// A file of the backup is damaged.
    #[error("the backup file {} is damaged: {problem} at byte {offset}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The position of the damage in the file.
        offset: u64,
        /// The damage.
        problem: &'static str,
    },
    /// The earlier backup is not one of this store.
    #[error("{} is a backup of another store: make a full one", folder.display())]
    OtherStore {
        /// The folder of the earlier backup.
        folder: PathBuf,
    },
    /// The earlier backup is of a later state than the store has.
    #[error(
        "{} is a backup of generation {theirs}, the store is at {ours}: it was set back meanwhile; make a full one",
        folder.display()
    )]
    FromTheFuture {
        /// The folder of the earlier backup.
        folder: PathBuf,
        /// Its generation.
        theirs: u64,
        /// The store's.
        ours: u64,
    },
    /// A chain of backups begins with an incremental one.
    #[error("{} is an incremental backup: name the ones before it first, from the full one on", folder.display())]
    NotFull {
        /// The folder of the first backup.
        folder: PathBuf,
    },
    /// A backup does not follow the one before it.
    #[error("{} does not follow {}: name every backup from the full one on, with none left out, in the order in which they were made", folder.display(), before.display())]
    Gap {
        /// The folder of a backup.
        folder: PathBuf,
        /// The folder of the one that was named before it.
        before: PathBuf,
    },
    /// No backup was named.
    #[error("no backup was named")]
    NoBackup,
    /// The folder for the restored store holds one.
    #[error("{} holds a store already", folder.display())]
    StoreExists {
        /// The folder.
        folder: PathBuf,
    },
}

/// A problem of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestProblem {
    /// It does not begin with the magic bytes of a manifest.
    #[error("it does not begin as one")]
    NotOurs,
    /// It is longer than any manifest can be.
    #[error("it has {bytes} bytes")]
    Length {
        /// Its length.
        bytes: u64,
    },
    /// The checksum does not match the bytes.
    #[error("its checksum does not hold")]
    Checksum,
    /// The superblock in it cannot be read by this version.
    #[error("its superblock cannot be read")]
    Superblock,
    /// A field has an impossible value.
    #[error("{0}")]
    Content(FormatError),
    /// Pieces and used extents contradict each other.
    #[error("its pieces and the extents in use do not fit")]
    Pieces,
}

impl BackupError {
    pub(super) fn of(folder: &Path, error: EnvironmentError) -> BackupError {
        if error.is_no_space() {
            BackupError::NoSpace { folder: folder.to_owned(), source: Arc::new(error) }
        } else {
            BackupError::Environment(Arc::new(error))
        }
    }

    pub(super) fn of_keys(folder: &Path, error: EncryptionError) -> BackupError {
        match error {
            EncryptionError::Environment(error) => BackupError::of(folder, error),
            error => BackupError::Encryption(Arc::new(error)),
        }
    }

    pub(super) fn of_log(folder: &Path, error: LogError) -> BackupError {
        match error {
            LogError::Environment(error) => BackupError::of(folder, error),
            error => BackupError::Log(Arc::new(error)),
        }
    }

    /// The kind of the error, which tells the caller how to react.
    pub fn kind(&self) -> ErrorKind {
        match self {
            BackupError::Encryption(error) => encryption_kind(error),
            BackupError::Environment(error) if matches!(**error, EnvironmentError::Locked { .. }) => {
                ErrorKind::InvalidInput
            }
            BackupError::Environment(_) | BackupError::NoSpace { .. } => ErrorKind::Io,
            BackupError::Log(_) | BackupError::Manifest { .. } | BackupError::Damaged { .. } => {
                ErrorKind::Corrupt
            }
            BackupError::NotEmpty { .. }
            | BackupError::Unfinished { .. }
            | BackupError::Version { .. }
            | BackupError::OtherStore { .. }
            | BackupError::FromTheFuture { .. }
            | BackupError::NotFull { .. }
            | BackupError::Gap { .. }
            | BackupError::NoBackup
            | BackupError::StoreExists { .. } => ErrorKind::InvalidInput,
        }
    }
}

impl From<BackupError> for StorageError {
    fn from(error: BackupError) -> StorageError {
        StorageError::with_source(error.kind(), error.to_string(), error)
    }
}

impl From<BackupError> for BetreeError {
    fn from(error: BackupError) -> BetreeError {
        BetreeError::Substrate(error.into())
    }
}
