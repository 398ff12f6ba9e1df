//! Errors of files, clocks and threads: each names the operation, the path and, where there is one, the
//! offset.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

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

/// The call as a verb: "cannot" stands before it, and the path behind it.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Open => "open",
            Operation::Read => "read",
            Operation::Write => "write to",
            Operation::Sync => "sync",
            Operation::Length => "ask for or change the length of",
            Operation::Allocate => "reserve room for",
            Operation::PunchHole => "give back room of",
            Operation::List => "list",
            Operation::CreateFolder => "create the folder",
            Operation::Rename => "rename",
            Operation::Remove => "remove",
            Operation::SyncFolder => "sync the folder",
            Operation::Lock => "lock",
            Operation::FreeSpace => "ask for the free room of",
            Operation::Spawn => "start the thread",
        })
    }
}

/// An error of the environment.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The operating system (or the simulated disk) refused.
    #[error("cannot {operation} {}{}: {source}{}", path.display(), at(*offset), advice(source))]
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
    /// Another folder has come to the path of one that is open.
    #[error(
        "{} is another folder than the one that was opened: the folder of the store was moved while the store was open; end \
         this process, and open the moved folder, which has all writes",
        path.display()
    )]
    Replaced {
        /// The path.
        path: PathBuf,
    },
    /// Another process (or another handle of this one) has the folder open.
    #[error("{} is in use by {}", path.display(), holder(*pid))]
    Locked {
        /// The locked folder.
        path: PathBuf,
        /// The process that holds it, where the lock file names one.
        pid: Option<u32>,
    },
}

/// What to do where a device is full.
pub const FREE_SPACE: &str = "free space on its device";

/// What to do about an error of which the system's text says only what is the case.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; give the user of this process the right to read and write there"
        }
        io::ErrorKind::ReadOnlyFilesystem => "; a store needs a file system that is mounted for writing",
        io::ErrorKind::FileTooLarge => {
            "; the file size limit of this process (ulimit -f) is reached: raise it"
        }
        // Of a file that is read or written it is no error: only threads are refused so.
        io::ErrorKind::WouldBlock => {
            "; look at the limits of this user (ulimit -u) and of its control group (TasksMax of a systemd unit, --pids-limit of a \
             container)"
        }
        _ if is_out_of_files(error) => {
            "; raise the limit of open files (ulimit -n, LimitNOFILE of a systemd unit), or have fewer connections and large \
             transactions at the same time"
        }
        _ => "",
    }
}

/// Whether this process, or the machine, has as many files open as it may: nothing is wrong with any file.
pub fn is_out_of_files(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

fn at(offset: Option<u64>) -> String {
    offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default()
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        None => "another process, or another part of this one: end it, or let go of the store there, first"
            .to_owned(),
        Some(pid) if pid == std::process::id() => {
            format!(
                "this process ({pid}): use the handle that has it open, or let go of it, its collections, cursors and sessions \
                 first; a backup that is being ended lets go soon, and a child of `fork` only with its end"
            )
        }
        Some(pid) => format!("process {pid}: end that process first"),
    }
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

    /// Whether the device (or the quota) is full, or a file has reached the limit of the process: the caller
    /// can go on once there is room.
    pub fn is_no_space(&self) -> bool {
        match self {
            EnvironmentError::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
            ),
            EnvironmentError::Locked { .. } | EnvironmentError::Replaced { .. } => false,
        }
    }

    /// Whether this process, or the machine, has as many files open as it may.
    pub fn is_out_of_files(&self) -> bool {
        matches!(self, EnvironmentError::Io { source, .. } if is_out_of_files(source))
    }

    /// How people make room after an error for lack of it.
    pub fn way_to_room(&self) -> &'static str {
        match self {
            EnvironmentError::Io { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => {
                "raise the file size limit of this process (ulimit -f)"
            }
            EnvironmentError::Io { .. }
            | EnvironmentError::Locked { .. }
            | EnvironmentError::Replaced { .. } => FREE_SPACE,
        }
    }

    /// Whether the file or folder is not there.
    pub fn is_not_found(&self) -> bool {
        match self {
            EnvironmentError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            EnvironmentError::Locked { .. } | EnvironmentError::Replaced { .. } => false,
        }
    }

    /// Whether a read went past the end of the file.
    pub fn is_past_end(&self) -> bool {
        match self {
            EnvironmentError::Io { source, .. } => source.kind() == io::ErrorKind::UnexpectedEof,
            EnvironmentError::Locked { .. } | EnvironmentError::Replaced { .. } => false,
        }
    }
}
