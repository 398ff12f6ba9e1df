//! An open file of the simulated disk: a number, and the life of the process that opened it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::SimulatedDisk;
use super::namespace::InodeNumber;
use crate::sync::switch;
use crate::{Access, EnvironmentError, File, OpenMode};

pub(super) struct SimulatedFile {
    pub(super) disk: Arc<SimulatedDisk>,
    pub(super) inode: InodeNumber,
    pub(super) path: PathBuf,
    pub(super) mode: OpenMode,
    pub(super) is_direct: AtomicBool,
    pub(super) alignment: usize,
    /// Which process opened it: a handle dies with its process.
    pub(super) process: u64,
}

impl SimulatedFile {
    /// Direct access in a simulation is as strict as a device: a refused access is a mistake of the caller.
    fn check_alignment(&self, address: usize, length: usize, offset: u64) {
        let alignment = self.alignment;
        assert!(
            address.is_multiple_of(alignment)
                && length.is_multiple_of(alignment)
                && offset.is_multiple_of(alignment as u64),
            "direct access to {} at byte {offset}, length {length}, is not aligned to {alignment}",
            self.path.display()
        );
    }
}

impl File for SimulatedFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), EnvironmentError> {
        self.check_alignment(buffer.as_ptr() as usize, buffer.len(), offset);
        self.disk.read(self, buffer, offset)
    }

    fn write_all_at(&self, buffer: &[u8], offset: u64) -> Result<(), EnvironmentError> {
        assert!(
            self.mode != OpenMode::ReadOnly,
            "a write to {}, which was opened to read",
            self.path.display()
        );
        self.check_alignment(buffer.as_ptr() as usize, buffer.len(), offset);
        switch();
        self.disk.write(self, buffer, offset)
    }

    fn sync_data(&self) -> Result<(), EnvironmentError> {
        switch();
        let synced = self.disk.sync(self);
        switch();
        synced
    }

    fn length(&self) -> Result<u64, EnvironmentError> {
        self.disk.length(self)
    }

    fn set_length(&self, length: u64) -> Result<(), EnvironmentError> {
        self.disk.set_length(self, length)
    }

    fn allocate(&self, offset: u64, length: u64) -> Result<(), EnvironmentError> {
        self.disk.allocate(self, offset + length)
    }

    fn punch_hole(&self, offset: u64, length: u64) -> Result<(), EnvironmentError> {
        self.disk.punch_hole(self, offset, length)
    }

    fn access(&self) -> Access {
        if self.is_direct.load(Ordering::Relaxed) { Access::Direct } else { Access::Buffered }
    }

    fn change_access(&self, access: Access) -> Result<Access, EnvironmentError> {
        let is_possible = access == Access::Buffered || self.alignment > 1;
        self.is_direct.store(access == Access::Direct && is_possible, Ordering::Relaxed);
        Ok(self.access())
    }

    fn alignment(&self) -> usize {
        self.alignment
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
