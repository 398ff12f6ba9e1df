//! The operating system's files (Linux): positional reads and writes, direct where the file system can.

mod file;
mod lock_holder;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::files::open_and_remove;
use crate::{
    Access, DeviceSpace, EnvironmentError, File, FileSystem, FolderIdentity, FolderLock, MEMORY_ALIGNMENT,
    OpenMode, Operation,
};
use file::RealFile;

/// Open files that temporary ones, of which queries and large transactions have many, leave to others.
/// The log stops if it cannot begin a segment.
const FILES_LEFT: u64 = 64;

/// The name of the lock file in a store's folder.
pub(crate) const LOCK_FILE: &str = "LOCK";

/// The files of the operating system.
pub(crate) struct RealFileSystem;

impl FileSystem for RealFileSystem {
    fn open(&self, path: &Path, mode: OpenMode, access: Access) -> Result<Arc<dyn File>, EnvironmentError> {
        let opened = match access {
            Access::Buffered => open_with(path, mode, Access::Buffered).map(|file| (file, Access::Buffered)),
            Access::Direct => match open_with(path, mode, Access::Direct) {
                Ok(file) => Ok((file, Access::Direct)),
                // The file system has no direct I/O (tmpfs, some network ones). The failed open may have
                // created the file already, so a file that had to be new is now opened as it is.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                    let retry = if mode == OpenMode::CreateNew { OpenMode::CreateOrOpen } else { mode };
                    open_with(path, retry, Access::Buffered).map(|file| (file, Access::Buffered))
                }
                Err(error) => Err(error),
            },
        };
        let (file, access) = opened.map_err(|source| EnvironmentError::io(Operation::Open, path, source))?;
        let file = RealFile::new(file, path, access);
        if file.alignment() > MEMORY_ALIGNMENT {
            // No buffer of ours would satisfy such a device: go through the page cache.
            return self.open(path, OpenMode::Existing, Access::Buffered);
        }
        Ok(Arc::new(file))
    }

    fn open_unnamed(&self, name: &Path) -> Result<Arc<dyn File>, EnvironmentError> {
        let folder = name.parent().unwrap_or(Path::new("."));
        let mode = Mode::RUSR | Mode::WUSR;
        let refused = |error| Err(EnvironmentError::io(Operation::Open, folder, std::io::Error::from(error)));
        let file = match rustix::fs::open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
            Ok(file) => file,
            // The file system or the kernel has no files without a name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => return open_and_remove(self, name),
            Err(error) => return refused(error),
        };
        if !leaves_files(file.as_raw_fd(), getrlimit(Resource::Nofile).current) {
            return refused(Errno::MFILE);
        }
        Ok(Arc::new(RealFile::new(file.into(), name, Access::Buffered)))
    }

    fn open_temporary(&self, path: &Path) -> Result<Arc<dyn File>, EnvironmentError> {
        let file = self.open(path, OpenMode::CreateNew, Access::Buffered)?;
        let limit = getrlimit(Resource::Nofile).current;
        if file.descriptor().is_some_and(|open| !leaves_files(open.as_raw_fd(), limit)) {
            self.remove(path)?;
            return Err(EnvironmentError::io(Operation::Open, path, std::io::Error::from(Errno::MFILE)));
        }
        Ok(file)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, EnvironmentError> {
        let failed = |source| EnvironmentError::io(Operation::List, folder, source);
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir(&self, folder: &Path) -> Result<(), EnvironmentError> {
        let failed = |source| EnvironmentError::io(Operation::CreateFolder, folder, source);
        match fs::create_dir_all(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && is_dangling(folder) => {
                let reason = "it is a symbolic link to a path that does not exist";
                Err(failed(std::io::Error::new(error.kind(), reason)))
            }
            created => created.map_err(failed),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvironmentError> {
        fs::rename(from, to).map_err(|source| EnvironmentError::io(Operation::Rename, from, source))
    }

    fn remove(&self, path: &Path) -> Result<(), EnvironmentError> {
        fs::remove_file(path).map_err(|source| EnvironmentError::io(Operation::Remove, path, source))
    }

    fn exists(&self, path: &Path) -> Result<bool, EnvironmentError> {
        fs::exists(path).map_err(|source| EnvironmentError::io(Operation::Open, path, source))
    }

    fn sync_dir(&self, folder: &Path) -> Result<(), EnvironmentError> {
        let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|source| EnvironmentError::io(Operation::SyncFolder, folder, source))
    }

    fn lock(&self, folder: &Path) -> Result<FolderLock, EnvironmentError> {
        let path = folder.join(LOCK_FILE);
        let failed = |source| EnvironmentError::io(Operation::Lock, &path, source);
        let mut options = OpenOptions::new();
        let mut file =
            lock_file(options.write(true).create(true).truncate(false)).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let pid = lock_holder::of(&file).or_else(|| lock_holder::written_in(&mut file));
                return Err(EnvironmentError::Locked { path: folder.to_owned(), pid });
            }
            Err(fs::TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Somebody may remove the file while the lock is held. So the folder is locked as well, where its
        // file system can.
        let opened = fs::File::open(folder).map_err(failed)?;
        if let Err(fs::TryLockError::WouldBlock) = opened.try_lock() {
            let pid = lock_holder::of(&opened);
            return Err(EnvironmentError::Locked { path: folder.to_owned(), pid });
        }
        write_pid(&mut file);
        Ok(FolderLock::held_by([file, opened]))
    }

    fn lock_to_read(&self, folder: &Path) -> Result<FolderLock, EnvironmentError> {
        let path = folder.join(LOCK_FILE);
        let failed = |source| EnvironmentError::io(Operation::Lock, &path, source);
        // Only a descriptor for writing can be locked on every file system.
        let opened = match lock_file(OpenOptions::new().write(true)).open(&path) {
            Err(error)
                if matches!(error.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) =>
            {
                lock_file(&mut OpenOptions::new()).open(&path)
            }
            opened => opened,
        };
        let file = match opened {
            Ok(file) => Some(file),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let mut held = vec![fs::File::open(folder).map_err(failed)?];
        held.extend(file);
        for file in &held {
            if let Err(fs::TryLockError::WouldBlock) = file.try_lock() {
                let written = lock_file(&mut OpenOptions::new()).open(&path).ok();
                let written = written.and_then(|mut file| lock_holder::written_in(&mut file));
                let pid = lock_holder::of(file).or(written);
                return Err(EnvironmentError::Locked { path: folder.to_owned(), pid });
            }
        }
        if let Some(file) = held.get_mut(1) {
            write_pid(file);
        }
        Ok(FolderLock::held_by(held))
    }

    fn identity(&self, folder: &Path) -> Result<FolderIdentity, EnvironmentError> {
        let found = fs::metadata(folder);
        let found = found.map_err(|source| EnvironmentError::io(Operation::Open, folder, source))?;
        Ok(FolderIdentity { device: found.dev(), number: found.ino() })
    }

    fn free_bytes(&self, folder: &Path) -> Result<u64, EnvironmentError> {
        let status = rustix::fs::statvfs(folder)
            .map_err(|source| EnvironmentError::io(Operation::FreeSpace, folder, source))?;
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }

    fn device_space(&self, folder: &Path) -> Result<DeviceSpace, EnvironmentError> {
        let status = rustix::fs::statvfs(folder)
            .map_err(|source| EnvironmentError::io(Operation::FreeSpace, folder, source))?;
        let bytes = |blocks: u64| blocks.saturating_mul(status.f_frsize);
        let used_bytes = bytes(status.f_blocks.saturating_sub(status.f_bavail));
        Ok(DeviceSpace { total_bytes: bytes(status.f_blocks), used_bytes })
    }
}

/// Whether a new file leaves enough to others. Each descriptor is the lowest that is free, so that at least
/// as many files are open as its number says.
fn leaves_files(descriptor: RawFd, limit: Option<u64>) -> bool {
    limit.is_none_or(|limit| {
        u64::try_from(descriptor).is_ok_and(|open| open < limit - FILES_LEFT.min(limit / 4))
    })
}

fn is_dangling(path: &Path) -> bool {
    path.is_symlink() && !path.exists()
}

fn open_with(path: &Path, mode: OpenMode, access: Access) -> std::io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.read(true);
    match mode {
        OpenMode::ReadOnly => {}
        OpenMode::Existing => {
            options.write(true);
        }
        OpenMode::CreateNew => {
            options.write(true).create_new(true);
        }
        OpenMode::CreateOrOpen => {
            options.write(true).create(true).truncate(false);
        }
    }
    if access == Access::Direct {
        options.custom_flags(OFlags::DIRECT.bits().cast_signed());
    }
    options.open(path)
}

/// The options with which the lock file is opened. A link in its place, which the owner of the folder may
/// have put there for a process of root, is not followed.
fn lock_file(options: &mut OpenOptions) -> &mut OpenOptions {
    options.read(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
}

/// Puts the number of this process into the lock file, for people; the lock itself is the kernel's and ends
/// with the process however that dies. On a full disk it cannot be written, and the store opens all the same.
fn write_pid(file: &mut fs::File) {
    let _ = file.set_len(0).and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
}

#[cfg(test)]
mod tests;
