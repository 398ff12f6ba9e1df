//! An open file of the operating system.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FallocateFlags, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::{Access, EnvironmentError, File, Operation};

/// Bytes of zeros written by one call, where room cannot be reserved otherwise.
const ZEROS_BYTES: u64 = 256 * 1024;

/// The alignment that every device for direct I/O accepts, in bytes; taken where the kernel does not tell.
const ALIGNMENT_SAFE: usize = 4_096;

pub(super) struct RealFile {
    file: fs::File,
    path: PathBuf,
    is_direct: AtomicBool,
    alignment: usize,
}

impl RealFile {
    pub(super) fn new(file: fs::File, path: &Path, access: Access) -> RealFile {
        let alignment = match access {
            Access::Buffered => 1,
            Access::Direct => direct_alignment(&file),
        };
        let is_direct = AtomicBool::new(access == Access::Direct);
        RealFile { file, path: path.to_owned(), is_direct, alignment }
    }

    fn failed(&self, operation: Operation, offset: u64) -> impl FnOnce(io::Error) -> EnvironmentError {
        move |source| EnvironmentError::io_at(operation, &self.path, offset, source)
    }

    /// For file systems without `fallocate`: zeros written behind the file's end reserve the room as well.
    fn allocate_by_writing(&self, offset: u64, length: u64) -> Result<(), EnvironmentError> {
        let end = offset + length;
        let mut at = self.length()?.max(offset);
        let zeros = crate::AlignedBuffer::zeroed(ZEROS_BYTES as usize);
        while at < end {
            let bytes = (end - at).min(ZEROS_BYTES);
            self.write_all_at(&zeros[..bytes as usize], at)?;
            at += bytes;
        }
        Ok(())
    }
}

/// The alignment of direct I/O on this file, as the kernel tells it (`STATX_DIOALIGN`, since Linux 6.1).
fn direct_alignment(file: &fs::File) -> usize {
    let told =
        rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok().and_then(|status| {
            let alignment = status.stx_dio_offset_align.max(status.stx_dio_mem_align) as usize;
            let is_told = status.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
            (is_told && alignment.is_power_of_two()).then_some(alignment.max(512))
        });
    told.unwrap_or(ALIGNMENT_SAFE)
}

impl File for RealFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), EnvironmentError> {
        self.file.read_exact_at(buffer, offset).map_err(self.failed(Operation::Read, offset))
    }

    fn write_all_at(&self, buffer: &[u8], offset: u64) -> Result<(), EnvironmentError> {
        self.file.write_all_at(buffer, offset).map_err(self.failed(Operation::Write, offset))
    }

    fn sync_data(&self) -> Result<(), EnvironmentError> {
        self.file.sync_data().map_err(|source| EnvironmentError::io(Operation::Sync, &self.path, source))
    }

    fn length(&self) -> Result<u64, EnvironmentError> {
        let metadata = self.file.metadata();
        Ok(metadata.map_err(|source| EnvironmentError::io(Operation::Length, &self.path, source))?.len())
    }

    fn set_length(&self, length: u64) -> Result<(), EnvironmentError> {
        self.file.set_len(length).map_err(self.failed(Operation::Length, length))
    }

    fn allocate(&self, offset: u64, length: u64) -> Result<(), EnvironmentError> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), offset, length) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.allocate_by_writing(offset, length),
            Err(errno) => Err(self.failed(Operation::Allocate, offset)(errno.into())),
        }
    }

    fn punch_hole(&self, offset: u64, length: u64) -> Result<(), EnvironmentError> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, offset, length) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(errno) => Err(self.failed(Operation::PunchHole, offset)(errno.into())),
        }
    }

    fn access(&self) -> Access {
        if self.is_direct.load(Ordering::Relaxed) { Access::Direct } else { Access::Buffered }
    }

    fn change_access(&self, access: Access) -> Result<Access, EnvironmentError> {
        if access == Access::Direct && self.alignment == 1 {
            // It was opened buffered, and is read and written without regard to any alignment.
            return Ok(self.access());
        }
        let failed = |errno: Errno| EnvironmentError::io(Operation::Open, &self.path, errno);
        let flags = rustix::fs::fcntl_getfl(&self.file).map_err(failed)?;
        let wanted = match access {
            Access::Direct => flags | OFlags::DIRECT,
            Access::Buffered => flags - OFlags::DIRECT,
        };
        match rustix::fs::fcntl_setfl(&self.file, wanted) {
            Ok(()) => self.is_direct.store(access == Access::Direct, Ordering::Relaxed),
            // The file system has no direct I/O.
            Err(Errno::INVAL) if access == Access::Direct => {}
            Err(errno) => return Err(failed(errno)),
        }
        Ok(self.access())
    }

    fn alignment(&self) -> usize {
        self.alignment
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}
