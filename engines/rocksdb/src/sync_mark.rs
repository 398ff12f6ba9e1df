//! The file `synced`: the number of the last write that is known to be on the device.
//!
//! RocksDB opens a store with a damaged log up to the damage, as that is how the log ends after a power cut.
//! It cannot tell the two. This file can: writes up to its number were synced, so a store that opens before
//! it has lost commits that were acknowledged, and is refused.
//!
//! The file is written after each sync and never synced itself: the number on the device may be too low, and
//! never too high. Format: `magic 8 | number 8 | xxh3-64 of both 8`, little-endian. A torn file counts as
//! none.

use std::path::Path;
use std::sync::Arc;

use pando_environment::{Access, Environment, File, OpenMode};
use pando_storage::{Lsn, StorageError};
use xxhash_rust::xxh3::xxh3_64;

use crate::failure::environment_failed;

/// The file's name in the store's folder.
pub(crate) const FILE_NAME: &str = "synced";

const MAGIC: &[u8; 8] = b"pandordb";
const BYTES: usize = 24;

/// The open file.
pub(crate) struct SyncMark {
    file: Arc<dyn File>,
}

impl SyncMark {
    /// Opens the file, and reads its number; zero where there is none.
    pub(crate) fn open(environment: &Environment, folder: &Path) -> Result<(SyncMark, Lsn), StorageError> {
        let failed = |error| environment_failed("cannot read the file `synced`", error);
        let path = folder.join(FILE_NAME);
        let file =
            environment.files().open(&path, OpenMode::CreateOrOpen, Access::Buffered).map_err(failed)?;
        let mut bytes = vec![0; (file.length().map_err(failed)? as usize).min(BYTES)];
        file.read_exact_at(&mut bytes, 0).map_err(failed)?;
        Ok((SyncMark { file }, Lsn::new(decode(&bytes).unwrap_or(0))))
    }

    /// Notes that all writes up to this one are on the device.
    pub(crate) fn write(&self, synced: Lsn) -> Result<(), StorageError> {
        let written = self.file.write_all_at(&encode(synced.get()), 0);
        written.map_err(|error| environment_failed("cannot write the file `synced`", error))
    }
}

fn encode(number: u64) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &number.to_le_bytes()].concat();
    let hash = xxh3_64(&bytes);
    bytes.extend_from_slice(&hash.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<u64> {
    let (content, hash) = bytes.split_at_checked(BYTES - 8)?;
    if xxh3_64(content).to_le_bytes() != hash {
        return None;
    }
    content.strip_prefix(MAGIC)?.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_reads_back_and_a_torn_file_has_none() {
        let environment = Environment::real();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (mark, found) = SyncMark::open(&environment, folder.path()).expect("the file opens");
        assert_eq!(found, Lsn::ZERO);
        mark.write(Lsn::new(7)).expect("it is written");
        mark.write(Lsn::new(77_777)).expect("it is written");
        let (mark, found) = SyncMark::open(&environment, folder.path()).expect("the file opens");
        assert_eq!(found, Lsn::new(77_777));
        mark.file.write_all_at(&[1], 9).expect("it is damaged");
        let (_, found) = SyncMark::open(&environment, folder.path()).expect("the file opens");
        assert_eq!(found, Lsn::ZERO);
        for end in 0..BYTES {
            assert_eq!(decode(&encode(5)[..end]), None);
        }
    }
}
