//! Scratch files: data of running queries that does not fit in memory, in files without a name.
//!
//! The kernel frees the room of a file when it is closed, or when the process ends, however it ends. Where
//! the file system knows only named files, a crash at the moment of creation leaves a name, which the next
//! [`ScratchSpace::open`] removes.
//!
//! # Not here
//! The format of what is written: `run`. The layers of large transactions, which the engine owns: `spill`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pando_environment::{Environment, EnvironmentError, File};

use crate::error::{ErrorKind, StorageError};
use crate::operation::{DeviceAccount, OperationWait};

/// Bytes of scratch files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScratchFigures {
    /// Files that are open now.
    pub files: u64,
    /// Bytes in them.
    pub file_bytes: u64,
    /// Bytes written since the store was opened.
    pub written_bytes: u64,
    /// Bytes read back since then.
    pub read_bytes: u64,
}

/// The folder of a store's scratch files.
pub struct ScratchSpace {
    environment: Environment,
    folder: PathBuf,
    next_file: AtomicU64,
    files: AtomicU64,
    file_bytes: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
}

impl ScratchSpace {
    /// The scratch files of a store, in a folder of their own; files that an earlier process left there are
    /// removed. The folder is made when it is needed.
    ///
    /// # Errors
    /// The folder cannot be read, or a file in it cannot be removed.
    pub fn open(environment: &Environment, folder: &Path) -> Result<Arc<ScratchSpace>, StorageError> {
        let files = environment.files();
        let unreadable = |error: EnvironmentError| {
            let message = format!("cannot clear the folder of scratch files {}: {error}", folder.display());
            StorageError::with_source(ErrorKind::Io, message, error)
        };
        if files.exists(folder).map_err(unreadable)? {
            for name in files.list(folder).map_err(unreadable)? {
                files.remove(&folder.join(name)).map_err(unreadable)?;
            }
        }
        Ok(Arc::new(ScratchSpace {
            environment: environment.clone(),
            folder: folder.to_owned(),
            next_file: AtomicU64::new(1),
            files: AtomicU64::new(0),
            file_bytes: AtomicU64::new(0),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
        }))
    }

    /// Present sizes, and sums since the store was opened.
    pub fn figures(&self) -> ScratchFigures {
        ScratchFigures {
            files: self.files.load(Ordering::Relaxed),
            file_bytes: self.file_bytes.load(Ordering::Relaxed),
            written_bytes: self.written.load(Ordering::Relaxed),
            read_bytes: self.read.load(Ordering::Relaxed),
        }
    }

    /// A new, empty file.
    pub(crate) fn create(self: &Arc<ScratchSpace>) -> Result<ScratchFile, StorageError> {
        let files = self.environment.files();
        files.create_dir(&self.folder).map_err(|error| self.refused(error))?;
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{number:08}.scratch"));
        let file = files.open_unnamed(&path).map_err(|error| self.refused(error))?;
        self.files.fetch_add(1, Ordering::Relaxed);
        Ok(ScratchFile { space: Arc::clone(self), file, length: AtomicU64::new(0), freed: AtomicU64::new(0) })
    }

    fn refused(&self, error: EnvironmentError) -> StorageError {
        let folder = self.folder.display();
        let message = if error.is_no_space() {
            format!(
                "no room for the temporary data of a query in {folder}: {}, narrow the query by a filter or an index, \
                 or raise the memory of queries (--query-memory, in a program query_memory_bytes)",
                error.way_to_room()
            )
        } else {
            let advice = if error.is_out_of_files() { "" } else { "; look after the device" };
            format!("cannot use the temporary data of a query in {folder}: {error}{advice}")
        };
        StorageError::with_source(ErrorKind::Io, message, error)
    }
}

impl std::fmt::Debug for ScratchSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ScratchSpace({}, {:?})", self.folder.display(), self.figures())
    }
}

/// An open file. One thread at a time appends to it.
pub(crate) struct ScratchFile {
    space: Arc<ScratchSpace>,
    file: Arc<dyn File>,
    length: AtomicU64,
    /// Bytes in the middle that were given back.
    freed: AtomicU64,
}

impl ScratchFile {
    /// Bytes so far.
    pub(crate) fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    /// Appends bytes. After an error the file is of no more use.
    pub(crate) fn append(&self, bytes: &[u8]) -> Result<(), StorageError> {
        let _waiting = DeviceAccount::waiting(OperationWait::Spill);
        let length = self.length();
        self.file.write_all_at(bytes, length).map_err(|error| self.space.refused(error))?;
        let added = bytes.len() as u64;
        self.length.store(length + added, Ordering::Relaxed);
        self.space.file_bytes.fetch_add(added, Ordering::Relaxed);
        self.space.written.fetch_add(added, Ordering::Relaxed);
        Ok(())
    }

    /// Fills a buffer.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        let _waiting = DeviceAccount::waiting(OperationWait::Spill);
        self.space.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.file.read_exact_at(buffer, offset).map_err(|error| self.space.refused(error))
    }

    /// Gives the room of bytes that nobody reads any more back to the device.
    pub(crate) fn free(&self, range: std::ops::Range<u64>) {
        let bytes = range.end - range.start;
        // Where it fails, the room comes back when the file is closed.
        if self.file.punch_hole(range.start, bytes).is_ok() {
            self.freed.fetch_add(bytes, Ordering::Relaxed);
            self.space.file_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// The error of bytes that are not what was written.
    pub(crate) fn damaged(&self, offset: u64) -> StorageError {
        let message = format!(
            "a scratch file of a query in {} has other bytes at {offset} than were written there: run the query \
             again, and look after the device",
            self.space.folder.display()
        );
        StorageError::new(ErrorKind::Corrupt, message)
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        let left = self.length() - self.freed.load(Ordering::Relaxed);
        self.space.file_bytes.fetch_sub(left, Ordering::Relaxed);
        self.space.files.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::Operation;
    use pando_environment::simulated::{Fault, FaultRule};

    use super::*;

    #[test]
    fn a_file_has_no_name_once_it_is_open_and_names_that_were_left_go_at_open() {
        let simulation = Environment::simulated(1);
        let folder = Path::new("/store/scratch");
        let space = ScratchSpace::open(&simulation.environment, folder).expect("it opens");
        let file = space.create().expect("there is room");
        file.append(b"some bytes").expect("there is room");
        assert!(simulation.environment.files().list(folder).expect("it is there").is_empty());
        assert_eq!(space.figures().file_bytes, 10);
        let mut read = [0; 5];
        file.read(&mut read, 5).expect("they are there");
        assert_eq!(&read, b"bytes");
        file.free(0..5);
        assert_eq!(space.figures().file_bytes, 5);
        drop(file);
        assert_eq!((space.figures().files, space.figures().file_bytes), (0, 0));

        simulation.disk.inject(FaultRule::new(Operation::Remove, Fault::InputOutputError));
        assert_eq!(space.create().err().map(|error| error.kind()), Some(ErrorKind::Io));
        assert_eq!(simulation.environment.files().list(folder).expect("it is there").len(), 1);
        ScratchSpace::open(&simulation.environment, folder).expect("it opens");
        assert!(simulation.environment.files().list(folder).expect("it is there").is_empty());
    }

    #[test]
    fn a_full_device_is_told_with_its_cure() {
        let simulation = Environment::simulated(2);
        let space = ScratchSpace::open(&simulation.environment, Path::new("/store/scratch")).expect("opens");
        let file = space.create().expect("there is room");
        simulation.disk.inject(FaultRule::new(Operation::Write, Fault::NoSpace));
        let error = file.append(b"bytes").expect_err("there is no room");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("no room for the temporary data"), "{error}");
        drop(file);
        assert_eq!(space.figures().file_bytes, 0);
    }
}
