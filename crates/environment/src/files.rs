//! The door to files: the promises that every file system and every open file keeps, real or simulated.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use crate::EnvironmentError;

/// How a file meets the kernel's page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Through the page cache.
    Buffered,
    /// Past it (`O_DIRECT`): buffers, offsets and lengths are multiples of [`File::alignment`].
    Direct,
}

/// Whether a file must exist when it is opened, and whether it may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file exists; it is only read.
    ReadOnly,
    /// The file exists; it is read and written.
    Existing,
    /// The file must not exist, and is created.
    CreateNew,
    /// The file is created where it does not exist.
    CreateOrOpen,
}

/// The size of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSpace {
    /// All bytes.
    pub total_bytes: u64,
    /// The bytes that this process cannot have: those in use, and those that the file system keeps for its
    /// owner.
    pub used_bytes: u64,
}

/// A new file that loses its name at once.
pub(crate) fn open_and_remove<F: FileSystem + ?Sized>(
    files: &F,
    name: &Path,
) -> Result<Arc<dyn File>, EnvironmentError> {
    let file = files.open_temporary(name)?;
    files.remove(name)?;
    Ok(file)
}

/// The door to files. Paths are taken as given; every error names the path.
pub trait FileSystem: Send + Sync {
    /// Opens a file. Where the file system cannot do [`Access::Direct`], the file is opened buffered:
    /// [`File::access`] tells the access that was granted.
    fn open(&self, path: &Path, mode: OpenMode, access: Access) -> Result<Arc<dyn File>, EnvironmentError>;

    /// A new file for work that may as well fail: it is refused, and not there, where only the files are left
    /// that the process may have open for the log and others.
    fn open_temporary(&self, path: &Path) -> Result<Arc<dyn File>, EnvironmentError> {
        self.open(path, OpenMode::CreateNew, Access::Buffered)
    }

    /// A new file as by [`open_temporary`](FileSystem::open_temporary) that has no name, or has lost it: its
    /// room is free as soon as it is closed, and when the process ends. A name in the same folder is used for
    /// a moment where the file system knows only named files; then a crash in that moment leaves an empty
    /// file.
    fn open_unnamed(&self, name: &Path) -> Result<Arc<dyn File>, EnvironmentError> {
        open_and_remove(self, name)
    }

    /// The names in a folder, sorted; not the paths. Names that are not UTF-8 are left out: Pando makes none.
    fn list(&self, folder: &Path) -> Result<Vec<String>, EnvironmentError>;

    /// Creates a folder and those above it; without effect where it exists.
    fn create_dir(&self, folder: &Path) -> Result<(), EnvironmentError>;

    /// Renames a file, atomically; the target is replaced where it exists. Durable after
    /// [`sync_dir`](Self::sync_dir).
    fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvironmentError>;

    /// Removes a file. Durable after [`sync_dir`](Self::sync_dir).
    fn remove(&self, path: &Path) -> Result<(), EnvironmentError>;

    /// Whether a file or folder is there.
    fn exists(&self, path: &Path) -> Result<bool, EnvironmentError>;

    /// Makes the entries of a folder durable: files created, renamed and removed in it.
    fn sync_dir(&self, folder: &Path) -> Result<(), EnvironmentError>;

    /// Takes the exclusive lock of a folder (its file `LOCK`), for as long as the result lives. A folder that
    /// another process, or another part of this one, has locked gives [`EnvironmentError::Locked`] with the
    /// holder's number.
    fn lock(&self, folder: &Path) -> Result<FolderLock, EnvironmentError>;

    /// The same lock for a reader, which needs no right to write: the file `LOCK` is not made. It names this
    /// process where it is there and can be written.
    fn lock_to_read(&self, folder: &Path) -> Result<FolderLock, EnvironmentError>;

    /// The identity of a folder, by which another one that has come to the same path is told from it.
    fn identity(&self, folder: &Path) -> Result<FolderIdentity, EnvironmentError>;

    /// Bytes that an unprivileged process can still write on the device of this folder.
    fn free_bytes(&self, folder: &Path) -> Result<u64, EnvironmentError>;

    /// The size of the device of this folder, and its used part.
    fn device_space(&self, folder: &Path) -> Result<DeviceSpace, EnvironmentError>;
}

/// An open file. All methods may be called from any thread; positions are explicit.
pub trait File: Send + Sync {
    /// Fills the buffer from `offset`. Past the end of the file: an error for which
    /// [`is_past_end`](EnvironmentError::is_past_end) is true.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), EnvironmentError>;

    /// Writes the whole buffer at `offset`, extending the file where needed. After an error any part may be
    /// written.
    fn write_all_at(&self, buffer: &[u8], offset: u64) -> Result<(), EnvironmentError>;

    /// Makes content and length durable (`fdatasync`). After an error nothing is known of what was written
    /// since the last success, and a further call proves nothing: stop writing.
    fn sync_data(&self) -> Result<(), EnvironmentError>;

    /// The file's length in bytes.
    fn length(&self) -> Result<u64, EnvironmentError>;

    /// Cuts or extends (with zeros, without reserving room) the file.
    fn set_length(&self, length: u64) -> Result<(), EnvironmentError>;

    /// Reserves room for the range on the device and extends the file over it; new bytes read as zero. A full
    /// device shows here, and leaves the file's content as it was.
    fn allocate(&self, offset: u64, length: u64) -> Result<(), EnvironmentError>;

    /// Gives the room of a range back; it reads as zero afterwards. Without effect where the file system
    /// cannot.
    fn punch_hole(&self, offset: u64, length: u64) -> Result<(), EnvironmentError>;

    /// The access that was granted at [`FileSystem::open`], or by [`change_access`](File::change_access)
    /// since.
    fn access(&self) -> Access;

    /// Changes how the file uses the page cache from now on. Returns the granted access. Callers keep to the
    /// [`alignment`](File::alignment), which does not change, so that reads under way are not concerned.
    fn change_access(&self, access: Access) -> Result<Access, EnvironmentError>;

    /// The unit of buffers, offsets and lengths, in bytes: 1 for files that were opened
    /// buffered.
    fn alignment(&self) -> usize;

    /// The path it was opened by.
    fn path(&self) -> &Path;

    /// The kernel's descriptor, for a [`ReadQueue`](crate::ReadQueue); `None` where the file is not one of
    /// the kernel's.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A folder, wherever it is moved to: its device and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderIdentity {
    pub(crate) device: u64,
    pub(crate) number: u64,
}

/// The exclusive lock of a folder, released when dropped.
pub struct FolderLock {
    // Dropping the holder (an open file, or an entry of the simulated disk) is what releases the lock.
    _holder: Box<dyn Send + Sync>,
}

impl FolderLock {
    /// A lock that lasts as long as `holder`.
    pub(crate) fn held_by(holder: impl Send + Sync + 'static) -> FolderLock {
        FolderLock { _holder: Box::new(holder) }
    }
}

impl std::fmt::Debug for FolderLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FolderLock")
    }
}
