//! Temporary files under keys that only this process has: what queries and transactions put aside.
//!
//! Each file that is made gets a random key of its own, and its bytes a keystream of ChaCha20 by their
//! place. The key is gone when the file is closed, and with it the content, whatever stays on the device.
//! The readers of these files have checksums, and no other process reads them: nothing here notices changed
//! bytes.
//!
//! # Invariant
//! No byte of a keystream is used twice: a write before the end of a file is refused.

use std::path::Path;
use std::sync::Arc;

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use pando_environment::sync::atomic::{AtomicU64, Ordering};
use pando_environment::{
    Access, DeviceSpace, Environment, EnvironmentError, File, FileSystem, FolderIdentity, FolderLock,
    OpenMode, Operation,
};
use zeroize::Zeroizing;

use crate::SecretKey;

/// Bytes that are encrypted at once.
const PIECE_BYTES: usize = 64 * 1024;

/// A file system whose new files are encrypted, for appending and reading. It opens no file that was there
/// before.
pub struct EphemeralFiles {
    inner: Arc<dyn FileSystem>,
}

impl EphemeralFiles {
    /// The environment with its files behind this encryption.
    pub fn environment(environment: &Environment) -> Environment {
        let files = EphemeralFiles { inner: Arc::clone(environment.files()) };
        Environment::of_parts(
            Arc::new(files),
            Arc::clone(environment.clock()),
            Arc::clone(environment.random()),
            Arc::clone(environment.spawner()),
        )
    }
}

fn sealed(file: Arc<dyn File>) -> Result<Arc<dyn File>, EnvironmentError> {
    let key = SecretKey::random().map_err(|error| {
        EnvironmentError::io(Operation::Open, file.path(), std::io::Error::other(error.to_string()))
    })?;
    Ok(Arc::new(EphemeralFile { inner: file, key, end: AtomicU64::new(0) }))
}

fn unsupported(operation: Operation, path: &Path, offset: u64) -> EnvironmentError {
    let reason = "an encrypted temporary file is only appended to";
    EnvironmentError::io_at(
        operation,
        path,
        offset,
        std::io::Error::new(std::io::ErrorKind::Unsupported, reason),
    )
}

impl FileSystem for EphemeralFiles {
    fn open(&self, path: &Path, mode: OpenMode, access: Access) -> Result<Arc<dyn File>, EnvironmentError> {
        if mode != OpenMode::CreateNew || access != Access::Buffered {
            return Err(unsupported(Operation::Open, path, 0));
        }
        sealed(self.inner.open(path, mode, access)?)
    }

    fn open_temporary(&self, path: &Path) -> Result<Arc<dyn File>, EnvironmentError> {
        sealed(self.inner.open_temporary(path)?)
    }

    fn open_unnamed(&self, name: &Path) -> Result<Arc<dyn File>, EnvironmentError> {
        sealed(self.inner.open_unnamed(name)?)
    }

    fn lock_to_read(&self, folder: &Path) -> Result<FolderLock, EnvironmentError> {
        self.inner.lock_to_read(folder)
    }

    fn identity(&self, folder: &Path) -> Result<FolderIdentity, EnvironmentError> {
        self.inner.identity(folder)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, EnvironmentError> {
        self.inner.list(folder)
    }

    fn create_dir(&self, folder: &Path) -> Result<(), EnvironmentError> {
        self.inner.create_dir(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvironmentError> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), EnvironmentError> {
        self.inner.remove(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, EnvironmentError> {
        self.inner.exists(path)
    }

    fn sync_dir(&self, folder: &Path) -> Result<(), EnvironmentError> {
        self.inner.sync_dir(folder)
    }

    fn lock(&self, folder: &Path) -> Result<FolderLock, EnvironmentError> {
        self.inner.lock(folder)
    }

    fn free_bytes(&self, folder: &Path) -> Result<u64, EnvironmentError> {
        self.inner.free_bytes(folder)
    }

    fn device_space(&self, folder: &Path) -> Result<DeviceSpace, EnvironmentError> {
        self.inner.device_space(folder)
    }
}

struct EphemeralFile {
    inner: Arc<dyn File>,
    key: SecretKey,
    /// The end of the bytes that were written, or whose writing has failed.
    end: AtomicU64,
}

impl EphemeralFile {
    fn apply(&self, offset: u64, bytes: &mut [u8]) -> Result<(), EnvironmentError> {
        // The key is of this file alone, so that its nonce may be fixed. A block count of 32 bits would end
        // at 256 GiB: the upper bits of the place go into the nonce.
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let (part, within) = (at >> 37, at & ((1 << 37) - 1));
            let length = (bytes.len() - done).min(((1 << 37) - within) as usize);
            let mut nonce = [0; 12];
            nonce[..8].copy_from_slice(&part.to_le_bytes());
            let mut cipher = ChaCha20::new(self.key.bytes().into(), &nonce.into());
            let is_possible = cipher.try_seek(within).is_ok()
                && cipher.try_apply_keystream(&mut bytes[done..done + length]).is_ok();
            if !is_possible {
                return Err(unsupported(Operation::Write, self.inner.path(), at));
            }
            done += length;
        }
        Ok(())
    }
}

impl File for EphemeralFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), EnvironmentError> {
        self.inner.read_exact_at(buffer, offset)?;
        self.apply(offset, buffer)
    }

    fn write_all_at(&self, buffer: &[u8], offset: u64) -> Result<(), EnvironmentError> {
        let end = offset + buffer.len() as u64;
        if self.end.fetch_max(end, Ordering::SeqCst) > offset {
            return Err(unsupported(Operation::Write, self.inner.path(), offset));
        }
        let mut piece = Zeroizing::new(Vec::with_capacity(buffer.len().min(PIECE_BYTES)));
        let mut at = offset;
        for part in buffer.chunks(PIECE_BYTES) {
            piece.clear();
            piece.extend_from_slice(part);
            self.apply(at, &mut piece)?;
            self.inner.write_all_at(&piece, at)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<(), EnvironmentError> {
        self.inner.sync_data()
    }

    fn length(&self) -> Result<u64, EnvironmentError> {
        self.inner.length()
    }

    fn set_length(&self, length: u64) -> Result<(), EnvironmentError> {
        Err(unsupported(Operation::Length, self.inner.path(), length))
    }

    fn allocate(&self, offset: u64, length: u64) -> Result<(), EnvironmentError> {
        self.inner.allocate(offset, length)
    }

    fn punch_hole(&self, offset: u64, length: u64) -> Result<(), EnvironmentError> {
        self.inner.punch_hole(offset, length)
    }

    fn access(&self) -> Access {
        self.inner.access()
    }

    fn change_access(&self, access: Access) -> Result<Access, EnvironmentError> {
        match access {
            Access::Buffered => self.inner.change_access(access),
            Access::Direct => Err(unsupported(Operation::Open, self.inner.path(), 0)),
        }
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_any_place_and_do_not_stand_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let environment = EphemeralFiles::environment(&Environment::real());
        let path = folder.path().join("part");
        let file = environment.files().open(&path, OpenMode::CreateNew, Access::Buffered).unwrap();
        let text: Vec<u8> = b"marker ".repeat(20_000);
        file.write_all_at(&text[..100], 0).unwrap();
        file.write_all_at(&text[100..], 100).unwrap();
        let mut read = vec![0; 1_000];
        for offset in [0, 1, 63, 64, 65_000, 139_000] {
            file.read_exact_at(&mut read, offset as u64).unwrap();
            assert_eq!(read, text[offset..offset + 1_000], "{offset}");
        }
        let stored = std::fs::read(&path).unwrap();
        assert_eq!(stored.len(), text.len());
        assert!(!stored.windows(6).any(|window| window == b"marker"));
        assert!(file.write_all_at(b"x", 5).is_err(), "a keystream would be used twice");
    }

    #[test]
    fn places_beyond_256_gigabytes_have_keystreams_of_their_own() {
        let simulation = Environment::simulated(3);
        let environment = EphemeralFiles::environment(&simulation.environment);
        environment.files().create_dir(Path::new("/x")).unwrap();
        let file = environment.files().open_unnamed(Path::new("/x/part")).unwrap();
        let near = (1_u64 << 37) - 8;
        let mut seen = std::collections::HashSet::new();
        for offset in [0, near, near + (1 << 37)] {
            file.write_all_at(&[7; 16], offset).unwrap();
            let mut read = [0; 16];
            file.read_exact_at(&mut read, offset).unwrap();
            assert_eq!(read, [7; 16]);
            let mut stream = [0; 16];
            assert!(seen.insert({
                let sealed = EphemeralFile {
                    inner: Arc::clone(&file),
                    key: SecretKey::from_bytes(&[1; 32]).unwrap(),
                    end: AtomicU64::new(0),
                };
                sealed.apply(offset, &mut stream).unwrap();
                stream
            }));
        }
    }
}
