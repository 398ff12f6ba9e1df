//! The errors of the engine. Callers see a [`StorageError`]; the error of this module is its source.
//!
//! | cause | kind for the caller |
//! |---|---|
//! | the device or a file fails | `Io` |
//! | a block or record fails its checks | `Corrupt`; of a block with the keys that cannot be read |
//! | the page is not in memory | `WouldBlock` |
//! | a wrong argument | `InvalidInput`, `NotFound`, `TooLarge` |

use std::sync::Arc;

use pando_storage::{ErrorKind, MissedRead, StorageError, TreeId};

use crate::base::FormatError;
use crate::log::LogError;
use crate::space::SpaceError;

/// An error of the engine.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BetreeError {
    /// The data file, the log or a backup failed. [`SpaceError`], [`LogError`] or `BackupError` is the
    /// source.
    #[error("{0}")]
    Substrate(#[source] StorageError),
    /// A thread could not be started.
    #[error("background work cannot start: {0}")]
    Threads(#[source] std::sync::Arc<pando_environment::EnvironmentError>),
    /// A block passes its checksum, but its content cannot be decoded.
    #[error("data.0000, block at byte {offset}: {source}")]
    Format {
        /// Where it begins.
        offset: u64,
        /// The defect.
        source: FormatError,
    },
    /// A log record passes its checksum, but its content cannot be decoded.
    #[error("the log record {lsn}: {source}")]
    Record {
        /// Which one.
        lsn: pando_storage::Lsn,
        /// The defect.
        source: FormatError,
    },
    /// Blocks pass their checks, but a tree holds a version above one of the same key that is newer.
    #[error(
        "a tree holds a version of a key above one that is newer: restore it from a backup, and report this"
    )]
    VersionOrder,
    /// A block of a tree cannot be read. Keys outside the range stay readable.
    #[error("{tree} ({name}) cannot be read from key {from} to key {to}: {source}")]
    Range {
        /// The tree.
        tree: TreeId,
        /// Its name.
        name: String,
        /// The smallest key concerned, in hexadecimal.
        from: KeyText,
        /// The key before which readable keys begin again, in hexadecimal.
        to: KeyText,
        /// The defect.
        source: Box<BetreeError>,
    },
    /// The answer needs the device. The missed read is attached where an event loop could make it.
    #[error("the answer needs the device")]
    WouldBlock(Option<Arc<dyn MissedRead>>),
    /// The engine was closed.
    #[error("the engine is closed")]
    Closed,
    /// No such tree.
    #[error("{0} does not exist, or not any more")]
    NoTree(TreeId),
    /// A tree of that name exists.
    #[error("a tree named {0:?} exists")]
    NameTaken(String),
    /// The catalog has no room for another tree.
    #[error(
        "no collection or index can be created: the list of the {trees} that there are may have {limit} bytes; drop collections or indexes"
    )]
    TooManyTrees {
        /// How many there are.
        trees: usize,
        /// The greatest length of the catalog, in bytes.
        limit: u64,
    },
    /// A tree cannot have this name.
    #[error("a tree's name has at most {limit} bytes, this one has {bytes}")]
    NameTooLong {
        /// Its length.
        bytes: usize,
        /// The greatest.
        limit: usize,
    },
    /// An option that does not exist.
    #[error("unknown option {name:?}; the options are {known}")]
    UnknownOption {
        /// As it was given.
        name: String,
        /// The known options.
        known: &'static str,
    },
    /// An option cannot have this value.
    #[error("option {name} cannot be {value:?}: {expected}")]
    BadOption {
        /// The option.
        name: &'static str,
        /// As it was given.
        value: String,
        /// The valid values.
        expected: &'static str,
    },
    /// The settings have been changed too often since the store was opened.
    #[error(
        "settings have had {limit} different values since the store was opened: open it again to change them further"
    )]
    TooManyChanges {
        /// The limit.
        limit: usize,
    },
    /// A transaction cannot begin at this snapshot.
    #[error("the snapshot {asked} is not kept: from {oldest} to {newest} there are some")]
    NoSnapshot {
        /// The snapshot wanted.
        asked: u64,
        /// The oldest that can be had.
        oldest: u64,
        /// The newest.
        newest: u64,
    },
    /// A bulk load of a tree that has entries.
    #[error("{0} has entries already and cannot be loaded")]
    LoadNotEmpty(TreeId),
    /// A bulk load whose keys do not ascend.
    #[error("entry {entry} of a load of {tree} does not ascend")]
    LoadOrder {
        /// The tree.
        tree: TreeId,
        /// The number of the entry that does not come after the one before.
        entry: u64,
    },
    /// A transaction writes more than the limit.
    #[error(
        "a transaction has written {bytes} bytes, and may write {limit}: commit in smaller steps, or raise transactionLimit"
    )]
    TransactionTooLarge {
        /// Its size.
        bytes: usize,
        /// The greatest.
        limit: usize,
    },
    /// A large transaction has more merges than can be applied at once.
    #[error(
        "a transaction has more than {limit} bytes of merges beside its other writes: commit in smaller steps"
    )]
    TooManyMerges {
        /// The greatest number of bytes, of keys and operands.
        limit: usize,
    },
    /// The spill files of a transaction failed. The [`StorageError`] says how.
    #[error("{0}")]
    Spill(#[source] StorageError),
    /// The device has no room for the writes of a large transaction.
    #[error(
        "the device has {free} bytes free, and a transaction writes {wanted}: make room and commit again"
    )]
    NoRoomForCommit {
        /// Bytes of its keys and values.
        wanted: u64,
        /// Bytes that are free in the data file and on its device.
        free: u64,
    },
    /// The write buffers or the log are full, and the background work that empties them fails.
    #[error("no further writes until background work succeeds again: {0}")]
    Stalled(#[source] Box<BetreeError>),
}

impl BetreeError {
    /// The action that the caller must take.
    pub fn kind(&self) -> ErrorKind {
        match self {
            BetreeError::Substrate(error) => error.kind(),
            BetreeError::Threads(_) => ErrorKind::Io,
            BetreeError::Format { .. } | BetreeError::Record { .. } | BetreeError::VersionOrder => {
                ErrorKind::Corrupt
            }
            BetreeError::Range { source, .. } => source.kind(),
            BetreeError::WouldBlock(_) => ErrorKind::WouldBlock,
            BetreeError::Closed => ErrorKind::Closed,
            BetreeError::NoTree(_) => ErrorKind::NotFound,
            BetreeError::NameTaken(_)
            | BetreeError::NameTooLong { .. }
            | BetreeError::TooManyTrees { .. }
            | BetreeError::UnknownOption { .. }
            | BetreeError::BadOption { .. }
            | BetreeError::TooManyChanges { .. }
            | BetreeError::NoSnapshot { .. }
            | BetreeError::LoadNotEmpty(_)
            | BetreeError::LoadOrder { .. } => ErrorKind::InvalidInput,
            BetreeError::TransactionTooLarge { .. } | BetreeError::TooManyMerges { .. } => {
                ErrorKind::TooLarge
            }
            BetreeError::Spill(error) => error.kind(),
            BetreeError::NoRoomForCommit { .. } => ErrorKind::Io,
            BetreeError::Stalled(source) => source.kind(),
        }
    }
}

impl BetreeError {
    /// Whether the only problem is that the device is full.
    pub(crate) fn is_no_space(&self) -> bool {
        let BetreeError::Substrate(error) = self else { return false };
        let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<SpaceError>());
        matches!(source, Some(SpaceError::NoSpace { .. }))
    }
}

impl BetreeError {
    /// Whether the only problem is that the log has no room.
    pub(crate) fn is_no_log_space(&self) -> bool {
        let BetreeError::Substrate(error) = self else { return false };
        let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<LogError>());
        matches!(source, Some(LogError::NoSpace { .. }))
    }
}

impl From<SpaceError> for BetreeError {
    fn from(error: SpaceError) -> BetreeError {
        BetreeError::Substrate(error.into())
    }
}

impl From<LogError> for BetreeError {
    fn from(error: LogError) -> BetreeError {
        BetreeError::Substrate(error.into())
    }
}

impl From<BetreeError> for StorageError {
    fn from(error: BetreeError) -> StorageError {
        match error {
            BetreeError::WouldBlock(None) => StorageError::would_block(),
            BetreeError::WouldBlock(Some(read)) => StorageError::missed(read),
            BetreeError::Substrate(error) | BetreeError::Spill(error) => error,
            error => {
                let (kind, message) = (error.kind(), error.to_string());
                StorageError::with_source(kind, message, error)
            }
        }
    }
}

/// The start of a key in hexadecimal: enough to find the place, too little to read the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyText(String);

impl KeyText {
    const BYTES_MAX: usize = 12;

    /// The text of a lower bound; `None` is the beginning of the key space.
    pub fn of_lower(key: Option<&[u8]>) -> KeyText {
        key.map_or_else(|| KeyText("(start)".to_owned()), KeyText::of_key)
    }

    /// The text of an upper bound; `None` is the end of the key space.
    pub fn of_upper(key: Option<&[u8]>) -> KeyText {
        key.map_or_else(|| KeyText("(end)".to_owned()), KeyText::of_key)
    }

    fn of_key(key: &[u8]) -> KeyText {
        use std::fmt::Write as _;
        let mut text = String::from("0x");
        for byte in key.iter().take(KeyText::BYTES_MAX) {
            write!(text, "{byte:02x}").expect("writing to a string does not fail");
        }
        if key.len() > KeyText::BYTES_MAX {
            text.push('…');
        }
        KeyText(text)
    }
}

impl std::fmt::Display for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::KeyText;

    #[test]
    fn a_missing_bound_is_the_end_of_the_key_space_on_its_side() {
        assert_eq!(KeyText::of_lower(None).to_string(), "(start)");
        assert_eq!(KeyText::of_upper(None).to_string(), "(end)");
        for text in [KeyText::of_lower(Some(&[0x80; 20])), KeyText::of_upper(Some(&[0x80; 20]))] {
            assert_eq!(text.to_string(), format!("0x{}…", "80".repeat(12)));
        }
    }
}
