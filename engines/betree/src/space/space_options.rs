//! The settings of the data file.

use std::path::Path;

use pando_encryption::Encryption;
use pando_environment::{Access, Environment, EnvironmentError, FolderLock, OpenMode};

/// The least growth of the data file, and the size of its reserve, in bytes.
const GROWTH_BYTES: u64 = 4 << 20;

/// Settings of the data file. The defaults suit everything but tests.
#[derive(Clone, Debug)]
pub(crate) struct SpaceOptions {
    /// The file grows by an eighth of itself, at least by this many bytes.
    pub(crate) growth_bytes_min: u64,
    /// The file grows by at most this many bytes at once, unless one write needs more.
    pub(crate) growth_bytes_max: u64,
    /// Bytes that are reserved for checkpoints.
    pub(crate) reserve_bytes: u64,
    /// Whether the store is written. One that is only read may lie on a device that is mounted so.
    pub(crate) mode: OpenMode,
    /// Whether file access goes through the page cache.
    pub(crate) access: Access,
    /// The keys, if the store is encrypted.
    pub(crate) encryption: Option<Encryption>,
}

impl SpaceOptions {
    /// For a file that grows by at least this many bytes. A small step has a small reserve.
    pub(crate) fn growing_by(bytes: u64, access: Access) -> SpaceOptions {
        SpaceOptions {
            growth_bytes_min: bytes,
            reserve_bytes: bytes.min(GROWTH_BYTES),
            access,
            ..SpaceOptions::default()
        }
    }

    /// For a store that is only read.
    pub(crate) fn read_only(encryption: Option<Encryption>) -> SpaceOptions {
        SpaceOptions {
            mode: OpenMode::ReadOnly,
            access: Access::Buffered,
            encryption,
            ..SpaceOptions::default()
        }
    }

    /// Locks the folder of a store that is to be opened.
    pub(super) fn lock(
        &self,
        environment: &Environment,
        folder: &Path,
    ) -> Result<FolderLock, EnvironmentError> {
        match self.mode {
            OpenMode::ReadOnly => environment.files().lock_to_read(folder),
            _ => environment.files().lock(folder),
        }
    }
}

impl Default for SpaceOptions {
    fn default() -> Self {
        SpaceOptions {
            growth_bytes_min: GROWTH_BYTES,
            growth_bytes_max: 64 << 20,
            reserve_bytes: GROWTH_BYTES,
            mode: OpenMode::Existing,
            access: Access::Direct,
            encryption: None,
        }
    }
}
