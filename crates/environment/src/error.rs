//! Errors of files, clocks and threads: each names the operation, the path and, where there is one, the
//! offset.

use std::io;
use std::path::{Path, PathBuf};

/// The operation that failed; also the target of a fault of the simulated disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Opening or creating a file.
    Open,
    /// Reading bytes.
    Read,
    /// Writing bytes.
    Write,
    /// Making a file's content durable.
    Sync,
    /// Asking for, or changing, a file's length.
    Length,
    /// Reserving room on the device.
    Allocate,
    /// Giving room in the middle of a file back to the device.
    PunchHole,
    /// Listing a folder.
    List,
    /// Creating a folder.
    CreateFolder,
    /// Renaming a file.
    Rename,
    /// Removing a file.
    Remove,
    /// Making a folder's entries durable.
    SyncFolder,
    /// Taking the lock of a folder.
    Lock,
    /// Asking for the free room of a device.
    FreeSpace,
    /// Starting a thread.
    Spawn,
}

/// An error of the environment.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The operating system (or the simulated disk) refused.
    #[error("{operation:?} failed on {}{}: {source}", path.display(), at(*offset))]
    Io {
        /// The operation.
        operation: Operation,
        /// To which file or folder.
        path: PathBuf,
        /// At which byte of the file, where that means something.
        offset: Option<u64>,
        /// The system's error.
        source: io::Error,
    },
    /// Another process (or another handle of this one) has the folder open.
    #[error("{} is in use by {}: end that process first", path.display(), holder(*pid))]
    Locked {
        /// The locked folder.
        path: PathBuf,
        /// The process that holds it, where the lock file names one.
        pid: Option<u32>,
    },
}

fn at(offset: Option<u64>) -> String {
    offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default()
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl EnvironmentError {
    /// An I/O error without an offset.
    pub fn io(operation: Operation, path: &Path, source: impl Into<io::Error>) -> EnvironmentError {
        EnvironmentError::Io { operation, path: path.to_owned(), offset: None, source: source.into() }
    }

    /// An I/O error at an offset.
    pub fn io_at(
        operation: Operation,
        path: &Path,
        offset: u64,
        source: impl Into<io::Error>,
    ) -> EnvironmentError {
        EnvironmentError::Io { operation, path: path.to_owned(), offset: Some(offset), source: source.into() }
    }

    /// Whether the device (or the quota) is full: the caller can go on once there is room.
    pub fn is_no_space(&self) -> bool {
        match self {
            EnvironmentError::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            EnvironmentError::Locked { .. } => false,
        }
    }

    /// Whether the file or folder is not there.
    pub fn is_not_found(&self) -> bool {
        match self {
            EnvironmentError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            EnvironmentError::Locked { .. } => false,
        }
    }

    /// Whether a read went past the end of the file.
    pub fn is_past_end(&self) -> bool {
        match self {
            EnvironmentError::Io { source, .. } => source.kind() == io::ErrorKind::UnexpectedEof,
            EnvironmentError::Locked { .. } => false,
        }
    }
}
