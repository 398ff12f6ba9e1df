//! The simulated disk: its state behind one lock, the calls on it, and the controls for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::SECTOR_BYTES;
use super::fault::{Fault, FaultRule};
use super::handle::SimulatedFile;
use super::inode::{Inode, Survival};
use super::namespace::{InodeNumber, Namespace};
use crate::{
    Access, DeviceSpace, EnvironmentError, File, FileSystem, FolderIdentity, FolderLock, OpenMode, Operation,
    SeededRandom,
};

/// See the [module](super).
pub struct SimulatedDisk {
    itself: Weak<SimulatedDisk>,
    seed: u64,
    state: Mutex<State>,
}

struct State {
    inodes: BTreeMap<InodeNumber, Inode>,
    next_inode: u64,
    namespace: Namespace,
    locks: BTreeSet<PathBuf>,
    /// Grows with each crash and kill; handles of earlier processes are dead.
    process: u64,
    calls: u64,
    crash_at_call: Option<u64>,
    has_power: bool,
    faults: Vec<FaultRule>,
    capacity: Option<u64>,
    direct_alignment: Option<usize>,
}

impl SimulatedDisk {
    /// An empty disk. The seed is only shown by [`Debug`](std::fmt::Debug): each crash brings its own.
    pub fn new(seed: u64) -> Arc<SimulatedDisk> {
        let state = State {
            inodes: BTreeMap::new(),
            next_inode: 1,
            namespace: Namespace::default(),
            locks: BTreeSet::new(),
            process: 0,
            calls: 0,
            crash_at_call: None,
            has_power: true,
            faults: Vec::new(),
            capacity: None,
            direct_alignment: Some(SECTOR_BYTES),
        };
        Arc::new_cyclic(|itself| SimulatedDisk {
            itself: Weak::clone(itself),
            seed,
            state: Mutex::new(state),
        })
    }

    /// How many calls have changed the disk so far (or tried to).
    pub fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    /// Cuts the power at the `call`-th changing call from now on, counted from 1: that call and all later
    /// ones fail. The interrupted call may have happened in part.
    pub fn crash_at_call(&self, call: u64) {
        assert!(call > 0, "calls are counted from 1");
        let mut state = self.state.lock();
        state.crash_at_call = Some(state.calls + call);
    }

    /// Whether a [`crash_at_call`](SimulatedDisk::crash_at_call) has struck.
    pub fn has_power(&self) -> bool {
        self.state.lock().has_power
    }

    /// A loss of power and the start after it. Writes that no sync covered survive, vanish or tear, as the
    /// seed draws it. Faults and the capacity stay.
    pub fn crash(&self, seed: u64) {
        let random = SeededRandom::new(seed);
        let mut state = self.state.lock();
        state.end_process();
        state.namespace.crash(&random);
        let linked = state.namespace.inodes();
        state.inodes.retain(|number, _| linked.contains(number));
        let survival = match random.below(6) {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            _ => Survival::Mixture,
        };
        for inode in state.inodes.values_mut() {
            inode.crash(survival, &random);
        }
    }

    /// The death of the process: handles and locks are gone, all that was written stays.
    pub fn kill(&self) {
        let mut state = self.state.lock();
        state.end_process();
        let linked = state.namespace.inodes();
        state.inodes.retain(|number, _| linked.contains(number));
    }

    /// Adds a fault. Of several that match a call, the first added strikes.
    pub fn inject(&self, rule: FaultRule) {
        self.state.lock().faults.push(rule);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.state.lock().faults.clear();
    }

    /// Limits the sum of all files' lengths, in bytes: beyond, calls fail with ENOSPC. `None` lifts the
    /// limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// The sum of all files' lengths, in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().used_bytes()
    }

    /// Sets the alignment of direct access; `None` makes a file system without direct access. For files
    /// opened later.
    pub fn set_direct_alignment(&self, alignment: Option<usize>) {
        self.state.lock().direct_alignment = alignment;
    }

    /// Changes a file's bytes behind everyone's back, as a decaying medium does.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn corrupt(&self, path: &Path, change: impl FnOnce(&mut [u8])) {
        let mut state = self.state.lock();
        let number = state.namespace.find(path).expect("the file to corrupt is there");
        state.inodes.get_mut(&number).expect("every name has its inode").corrupt(change);
    }

    /// Flips one bit of a file behind everyone's back; `bit` counts from the file's beginning.
    ///
    /// # Panics
    /// If there is no such file, or it is shorter.
    pub fn flip_bit(&self, path: &Path, bit: usize) {
        let mut state = self.state.lock();
        let number = state.namespace.find(path).expect("the file to corrupt is there");
        state.inodes.get_mut(&number).expect("every name has its inode").flip_bit(bit);
    }

    /// A file's bytes as reads would see them.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn content(&self, path: &Path) -> Vec<u8> {
        let state = self.state.lock();
        let number = state.namespace.find(path).expect("the file to look at is there");
        state.inodes.get(&number).expect("every name has its inode").content()
    }

    pub(super) fn read(
        &self,
        file: &SimulatedFile,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<(), EnvironmentError> {
        let failed = |source| EnvironmentError::io_at(Operation::Read, &file.path, offset, source);
        let mut state = self.state.lock();
        state.check_alive(file).map_err(failed)?;
        let fault = state.strike(Operation::Read, &file.path);
        if let Some(error) = fault.and_then(Fault::error) {
            return Err(failed(error));
        }
        let inode = state.inode(file);
        let at = usize::try_from(offset).map_err(|_| failed(io::ErrorKind::UnexpectedEof.into()))?;
        let is_read = match fault {
            Some(Fault::StaleRead) => inode.read_stale(buffer, at),
            _ => inode.read(buffer, at),
        };
        if !is_read {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        if let Some(Fault::BitFlip { bit }) = fault {
            flip(buffer, bit);
        }
        Ok(())
    }

    pub(super) fn write(
        &self,
        file: &SimulatedFile,
        bytes: &[u8],
        offset: u64,
    ) -> Result<(), EnvironmentError> {
        let failed = |source| EnvironmentError::io_at(Operation::Write, &file.path, offset, source);
        let mut state = self.state.lock();
        state.check_alive(file).map_err(failed)?;
        let is_cut = state.count_call();
        let fault = state.strike(Operation::Write, &file.path);
        state.check_room(file, offset + bytes.len() as u64).map_err(failed)?;
        let at = usize::try_from(offset).map_err(|_| failed(io::ErrorKind::FileTooLarge.into()))?;
        let inode = state.inode(file);
        match fault {
            None => inode.write(bytes, at),
            Some(Fault::ShortWrite) => inode.write(&bytes[..bytes.len() / 2], at),
            Some(Fault::MisdirectedWrite { sectors }) => {
                let moved = at as i64 + i64::from(sectors) * SECTOR_BYTES as i64;
                inode.write(bytes, moved.max(0) as usize);
            }
            Some(Fault::BitFlip { bit }) => {
                let mut flipped = bytes.to_vec();
                flip(&mut flipped, bit);
                inode.write(&flipped, at);
            }
            Some(Fault::InputOutputError | Fault::NoSpace | Fault::LostWrite | Fault::StaleRead) => {}
        }
        match fault.and_then(Fault::error) {
            Some(error) => Err(failed(error)),
            None if is_cut => Err(failed(power_cut())),
            None => Ok(()),
        }
    }

    pub(super) fn sync(&self, file: &SimulatedFile) -> Result<(), EnvironmentError> {
        self.change(file, Operation::Sync, |state, fault| {
            match fault {
                Some(_) => state.inode(file).drop_dirty(),
                None => state.inode(file).sync(),
            }
            Ok(())
        })
    }

    pub(super) fn length(&self, file: &SimulatedFile) -> Result<u64, EnvironmentError> {
        let mut state = self.state.lock();
        state
            .check_alive(file)
            .map_err(|source| EnvironmentError::io(Operation::Length, &file.path, source))?;
        Ok(state.inode(file).length() as u64)
    }

    pub(super) fn set_length(&self, file: &SimulatedFile, length: u64) -> Result<(), EnvironmentError> {
        self.change(file, Operation::Length, |state, fault| {
            if fault.is_none() {
                state.check_room(file, length)?;
                state.inode(file).set_length(to_usize(length)?);
            }
            Ok(())
        })
    }

    pub(super) fn allocate(&self, file: &SimulatedFile, end: u64) -> Result<(), EnvironmentError> {
        self.change(file, Operation::Allocate, |state, fault| {
            if fault.is_none() && end > state.inode(file).length() as u64 {
                state.check_room(file, end)?;
                state.inode(file).set_length(to_usize(end)?);
            }
            Ok(())
        })
    }

    pub(super) fn punch_hole(
        &self,
        file: &SimulatedFile,
        offset: u64,
        length: u64,
    ) -> Result<(), EnvironmentError> {
        self.change(file, Operation::PunchHole, |state, fault| {
            let inode = state.inode(file);
            let start = to_usize(offset)?.min(inode.length());
            let end = to_usize(offset.saturating_add(length))?.min(inode.length());
            if fault.is_none() {
                inode.write(&vec![0; end - start], start);
            }
            Ok(())
        })
    }

    /// A changing call on an open file, but a write: counted, subject to faults, and without effect where the
    /// power goes.
    fn change(
        &self,
        file: &SimulatedFile,
        operation: Operation,
        effect: impl FnOnce(&mut State, Option<Fault>) -> io::Result<()>,
    ) -> Result<(), EnvironmentError> {
        let failed = |source| EnvironmentError::io(operation, &file.path, source);
        let mut state = self.state.lock();
        state.check_alive(file).map_err(failed)?;
        if state.count_call() {
            return Err(failed(power_cut()));
        }
        let fault = state.strike(operation, &file.path).filter(|fault| fault.error().is_some());
        effect(&mut state, fault).map_err(failed)?;
        match fault.and_then(Fault::error) {
            Some(error) => Err(failed(error)),
            None => Ok(()),
        }
    }

    /// A changing call on a folder. Where the power goes the change is made all the same: the crash decides
    /// about it.
    fn change_folder(
        &self,
        operation: Operation,
        path: &Path,
        effect: impl FnOnce(&mut State) -> io::Result<()>,
    ) -> Result<(), EnvironmentError> {
        let failed = |source| EnvironmentError::io(operation, path, source);
        let mut state = self.state.lock();
        state.check_power().map_err(failed)?;
        let is_cut = state.count_call();
        if let Some(error) = state.strike(operation, path).and_then(Fault::error) {
            return Err(failed(error));
        }
        if is_cut && operation == Operation::SyncFolder {
            return Err(failed(power_cut()));
        }
        effect(&mut state).map_err(failed)?;
        if is_cut { Err(failed(power_cut())) } else { Ok(()) }
    }

    fn find_or_create(&self, path: &Path, mode: OpenMode) -> Result<InodeNumber, EnvironmentError> {
        let failed = |kind: io::ErrorKind| EnvironmentError::io(Operation::Open, path, kind);
        let found = {
            let state = self.state.lock();
            state.check_power().map_err(|source| EnvironmentError::io(Operation::Open, path, source))?;
            state.namespace.find(path)
        };
        match (found, mode) {
            (Some(_), OpenMode::CreateNew) => Err(failed(io::ErrorKind::AlreadyExists)),
            (Some(inode), _) => Ok(inode),
            (None, OpenMode::ReadOnly | OpenMode::Existing) => Err(failed(io::ErrorKind::NotFound)),
            (None, OpenMode::CreateNew | OpenMode::CreateOrOpen) => {
                let mut created = InodeNumber(0);
                self.change_folder(Operation::Open, path, |state| {
                    if !state.namespace.has_folder(path.parent().unwrap_or(Path::new(""))) {
                        return Err(io::ErrorKind::NotFound.into());
                    }
                    created = InodeNumber(state.next_inode);
                    state.next_inode += 1;
                    state.inodes.insert(created, Inode::default());
                    state.namespace.link(path, created);
                    Ok(())
                })?;
                Ok(created)
            }
        }
    }
}

impl FileSystem for SimulatedDisk {
    fn open(&self, path: &Path, mode: OpenMode, access: Access) -> Result<Arc<dyn File>, EnvironmentError> {
        let inode = self.find_or_create(path, mode)?;
        let state = self.state.lock();
        let (access, alignment) = match (access, state.direct_alignment) {
            (Access::Direct, Some(alignment)) => (Access::Direct, alignment),
            (Access::Direct, None) | (Access::Buffered, _) => (Access::Buffered, 1),
        };
        let disk = self.itself.upgrade().expect("a disk that is called is alive");
        let process = state.process;
        Ok(Arc::new(SimulatedFile {
            disk,
            inode,
            path: path.to_owned(),
            mode,
            is_direct: AtomicBool::new(access == Access::Direct),
            alignment,
            process,
        }))
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, EnvironmentError> {
        let failed = |source| EnvironmentError::io(Operation::List, folder, source);
        let mut state = self.state.lock();
        state.check_power().map_err(failed)?;
        if let Some(error) = state.strike(Operation::List, folder).and_then(Fault::error) {
            return Err(failed(error));
        }
        if !state.namespace.has_folder(folder) {
            return Err(failed(io::ErrorKind::NotFound.into()));
        }
        Ok(state.namespace.list(folder))
    }

    fn create_dir(&self, folder: &Path) -> Result<(), EnvironmentError> {
        self.change_folder(Operation::CreateFolder, folder, |state| {
            state.namespace.create_folder(folder);
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvironmentError> {
        self.change_folder(Operation::Rename, from, |state| {
            let inode = state.namespace.find(from).ok_or(io::ErrorKind::NotFound)?;
            state.namespace.rename(from, to, inode);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> Result<(), EnvironmentError> {
        self.change_folder(Operation::Remove, path, |state| {
            state.namespace.find(path).ok_or(io::ErrorKind::NotFound)?;
            state.namespace.unlink(path);
            Ok(())
        })
    }

    fn exists(&self, path: &Path) -> Result<bool, EnvironmentError> {
        let state = self.state.lock();
        state.check_power().map_err(|source| EnvironmentError::io(Operation::Open, path, source))?;
        Ok(state.namespace.find(path).is_some() || state.namespace.has_folder(path))
    }

    fn sync_dir(&self, folder: &Path) -> Result<(), EnvironmentError> {
        self.change_folder(Operation::SyncFolder, folder, |state| {
            state.namespace.sync(folder);
            Ok(())
        })
    }

    fn lock(&self, folder: &Path) -> Result<FolderLock, EnvironmentError> {
        let mut state = self.state.lock();
        state.check_power().map_err(|source| EnvironmentError::io(Operation::Lock, folder, source))?;
        if !state.locks.insert(folder.to_owned()) {
            return Err(EnvironmentError::Locked { path: folder.to_owned(), pid: None });
        }
        let process = state.process;
        Ok(FolderLock::held_by(SimulatedLock {
            disk: Weak::clone(&self.itself),
            folder: folder.to_owned(),
            process,
        }))
    }

    fn lock_to_read(&self, folder: &Path) -> Result<FolderLock, EnvironmentError> {
        self.lock(folder)
    }

    fn identity(&self, _: &Path) -> Result<FolderIdentity, EnvironmentError> {
        // Folders are not moved here.
        Ok(FolderIdentity { device: 0, number: 0 })
    }

    fn free_bytes(&self, folder: &Path) -> Result<u64, EnvironmentError> {
        let state = self.state.lock();
        state.check_power().map_err(|source| EnvironmentError::io(Operation::FreeSpace, folder, source))?;
        Ok(state.capacity.map_or(u64::MAX / 2, |capacity| capacity.saturating_sub(state.used_bytes())))
    }

    fn device_space(&self, folder: &Path) -> Result<DeviceSpace, EnvironmentError> {
        let state = self.state.lock();
        state.check_power().map_err(|source| EnvironmentError::io(Operation::FreeSpace, folder, source))?;
        let total_bytes = state.capacity.unwrap_or(u64::MAX / 2);
        Ok(DeviceSpace { total_bytes, used_bytes: state.used_bytes() })
    }
}

impl std::fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SimulatedDisk(seed {}, {} calls)", self.seed, self.calls())
    }
}

/// Gives the folder free again, unless the process that held it is dead and the lock with it.
struct SimulatedLock {
    disk: Weak<SimulatedDisk>,
    folder: PathBuf,
    process: u64,
}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let Some(disk) = self.disk.upgrade() else { return };
        let mut state = disk.state.lock();
        if state.process == self.process {
            state.locks.remove(&self.folder);
        }
    }
}

impl State {
    fn inode(&mut self, file: &SimulatedFile) -> &mut Inode {
        self.inodes.get_mut(&file.inode).expect("an open file of a living process has its inode")
    }

    fn check_power(&self) -> io::Result<()> {
        if self.has_power { Ok(()) } else { Err(power_cut()) }
    }

    fn check_alive(&self, file: &SimulatedFile) -> io::Result<()> {
        self.check_power()?;
        if file.process == self.process { Ok(()) } else { Err(rustix::io::Errno::BADF.into()) }
    }

    /// Counts a changing call; true where the power goes at this very call.
    fn count_call(&mut self) -> bool {
        self.calls += 1;
        let is_cut = self.crash_at_call == Some(self.calls);
        self.has_power &= !is_cut;
        is_cut
    }

    fn strike(&mut self, operation: Operation, path: &Path) -> Option<Fault> {
        self.faults.iter_mut().find_map(|rule| rule.strike(operation, path))
    }

    fn used_bytes(&self) -> u64 {
        let linked = self.namespace.inodes();
        linked.iter().filter_map(|number| self.inodes.get(number)).map(|inode| inode.length() as u64).sum()
    }

    fn check_room(&mut self, file: &SimulatedFile, end: u64) -> io::Result<()> {
        let grows_by = end.saturating_sub(self.inode(file).length() as u64);
        let is_full = self.capacity.is_some_and(|capacity| self.used_bytes() + grows_by > capacity);
        if grows_by > 0 && is_full { Err(rustix::io::Errno::NOSPC.into()) } else { Ok(()) }
    }

    fn end_process(&mut self) {
        self.process += 1;
        self.locks.clear();
        self.has_power = true;
        self.crash_at_call = None;
    }
}

fn power_cut() -> io::Error {
    io::Error::other("the simulated disk has no power")
}

fn flip(bytes: &mut [u8], bit: u64) {
    if !bytes.is_empty() {
        let at = bit % (bytes.len() as u64 * 8);
        bytes[(at / 8) as usize] ^= 1 << (at % 8);
    }
}

fn to_usize(length: u64) -> io::Result<usize> {
    usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge.into())
}
