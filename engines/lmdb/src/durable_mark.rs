//! The file `durable`: the newest state of LMDB's file that has reached the device, and the way back to it.
//!
//! # Why
//! A commit must not wait for the device, so LMDB runs with `MDB_NOSYNC`. It writes pages and then one of its
//! two *meta pages* (page 0 and 1: the roots, and a transaction number) into the kernel, in that order. The
//! kernel may still bring a meta page to the device before the pages that it refers to. After a power cut
//! both meta pages may then refer to garbage. A killed process does no harm: the kernel has everything.
//!
//! # Algorithm
//! 1. After the commit of transaction k a reading transaction *pins* k. LMDB never writes over a page of a
//!    state that is being read, and every other write goes to other pages.
//! 2. `fdatasync` brings all pages of state k to the device.
//! 3. The meta pages, copied in step 1, go into this file, and it is synced: the *mark* of k. Only now k
//!    counts as durable, and the pin of the mark before is let go.
//! 4. A store may have been left open by a machine that was started anew since (the kernel's boot id
//!    differs). Then the meta pages of the mark are written back, and LMDB opens state k, whose pages are
//!    unchanged.
//!
//! # Format
//! Two slots of [`SLOT_BYTES`], written in turn, so that a torn write leaves the other one. The higher
//! sequence counts.
//! ```text
//! magic 8 | crc32c of the rest 4 | sequence 8 | state 1 | boot id length 1 | boot id 64
//! | meta length 4 | meta pages
//! ```
//! Numbers are little-endian.

use std::path::Path;
use std::sync::Arc;

use pando_environment::{Access, Environment, File, OpenMode};
use pando_storage::StorageError;

use crate::failure::{corrupt, environment_failed};

/// The file's name in the store's folder.
pub(crate) const FILE_NAME: &str = "durable";

/// Room for two meta pages of up to 64 KB, and their description.
const SLOT_BYTES: usize = 132 * 1024;

const MAGIC: &[u8; 8] = b"pandomdb";
const HEAD_BYTES: usize = 8 + 4 + 8 + 1 + 1 + BOOT_BYTES_MAX + 4;
const BOOT_BYTES_MAX: usize = 64;

/// Linux shows its boot id as a UUID in text.
const BOOT_ID_BYTES: usize = 36;

/// Whether the store was closed after the mark was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is, or was, in use: after a power cut LMDB's file may be ahead of the mark in places.
    Open,
    /// LMDB's file is exactly at the mark.
    Clean,
}

/// The content of the newest slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) sequence: u64,
    pub(crate) ending: Ending,
    /// The kernel's boot id when it was written; empty where the system has none.
    pub(crate) boot: Vec<u8>,
    /// LMDB's meta pages, both.
    pub(crate) metas: Vec<u8>,
}

impl Mark {
    /// Whether LMDB's file may hold a mixture of states, so that the meta pages must be written back. Without
    /// a boot id nobody can tell a killed process from a power cut, and going back is safe in both.
    pub(crate) fn needs_restoring(&self, boot_now: &[u8]) -> bool {
        self.ending == Ending::Open && (self.boot.is_empty() || self.boot != boot_now)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.metas.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.push(match self.ending {
            Ending::Open => 0,
            Ending::Clean => 1,
        });
        bytes.push(self.boot.len() as u8);
        bytes.extend_from_slice(&self.boot);
        bytes.resize(HEAD_BYTES - 4, 0);
        bytes.extend_from_slice(&(self.metas.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.metas);
        let checksum = crc32c::crc32c(&bytes[12..]);
        bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Mark> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (checksum, rest) = rest.split_first_chunk::<4>()?;
        let metas_at = HEAD_BYTES - 12;
        let metas_bytes = u32::from_le_bytes(rest.get(metas_at - 4..metas_at)?.try_into().ok()?) as usize;
        let covered = rest.get(..metas_at.checked_add(metas_bytes)?)?;
        if crc32c::crc32c(covered) != u32::from_le_bytes(*checksum) {
            return None;
        }
        let boot_bytes = usize::from(covered[9]);
        Some(Mark {
            sequence: u64::from_le_bytes(covered[..8].try_into().ok()?),
            ending: if covered[8] == 1 { Ending::Clean } else { Ending::Open },
            boot: covered.get(10..10 + boot_bytes.min(BOOT_BYTES_MAX))?.to_vec(),
            metas: covered[metas_at..].to_vec(),
        })
    }
}

/// The open file.
pub(crate) struct DurableMark {
    file: Arc<dyn File>,
    boot: Vec<u8>,
    sequence: u64,
}

impl DurableMark {
    /// Opens the file of a store, and reads its newest mark. `None`: the file is new, or its first write was
    /// torn.
    pub(crate) fn open(
        environment: &Environment,
        folder: &Path,
    ) -> Result<(DurableMark, Option<Mark>), StorageError> {
        let failed = |error| environment_failed("cannot read the file `durable`", error);
        let path = folder.join(FILE_NAME);
        let file =
            environment.files().open(&path, OpenMode::CreateOrOpen, Access::Buffered).map_err(failed)?;
        let length = file.length().map_err(failed)? as usize;
        let mut newest: Option<Mark> = None;
        for slot in 0..2 {
            let start = slot * SLOT_BYTES;
            let mut bytes = vec![0; length.saturating_sub(start).min(SLOT_BYTES)];
            file.read_exact_at(&mut bytes, start as u64).map_err(failed)?;
            let mark = Mark::decode(&bytes);
            if mark.as_ref().map(|mark| mark.sequence) > newest.as_ref().map(|mark| mark.sequence) {
                newest = mark;
            }
        }
        let sequence = newest.as_ref().map_or(0, |mark| mark.sequence);
        Ok((DurableMark { file, boot: boot_id(environment), sequence }, newest))
    }

    /// The boot id of the running kernel.
    pub(crate) fn boot(&self) -> &[u8] {
        &self.boot
    }

    /// Writes a mark and waits until it is on the device. The pages that the metas lead to must be there
    /// already.
    pub(crate) fn write(&mut self, metas: Vec<u8>, ending: Ending) -> Result<(), StorageError> {
        if HEAD_BYTES + metas.len() > SLOT_BYTES {
            return Err(corrupt(format!("LMDB's meta pages have {} bytes", metas.len())));
        }
        let sequence = self.sequence + 1;
        let mark = Mark { sequence, ending, boot: self.boot.clone(), metas };
        let start = (sequence % 2) * SLOT_BYTES as u64;
        let failed = |error| environment_failed("cannot write the file `durable`", error);
        self.file.write_all_at(&mark.encode(), start).map_err(failed)?;
        self.file.sync_data().map_err(failed)?;
        self.sequence = sequence;
        Ok(())
    }
}

/// A number that the kernel draws anew whenever the machine starts (Linux); empty elsewhere.
fn boot_id(environment: &Environment) -> Vec<u8> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let mut boot = vec![0; BOOT_ID_BYTES];
    let file = environment.files().open(path, OpenMode::ReadOnly, Access::Buffered);
    match file.and_then(|file| file.read_exact_at(&mut boot, 0)) {
        Ok(()) => boot,
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_write_leaves_the_mark_before() {
        let environment = Environment::real();
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let (mut durable, found) = DurableMark::open(&environment, folder.path()).expect("the file opens");
        assert_eq!(found, None);
        durable.write(vec![1; 8_192], Ending::Open).expect("the mark is written");
        durable.write(vec![2; 8_192], Ending::Open).expect("the mark is written");
        durable.file.write_all_at(&[9], 5_000).expect("the second slot can be damaged");
        let (mut durable, found) = DurableMark::open(&environment, folder.path()).expect("the file opens");
        let found = found.expect("the first mark is whole");
        assert_eq!((found.sequence, found.metas, found.ending), (1, vec![1; 8_192], Ending::Open));
        durable.write(vec![3; 8_192], Ending::Clean).expect("the mark is written");
        let (_, found) = DurableMark::open(&environment, folder.path()).expect("the file opens");
        let found = found.expect("the third mark is whole");
        assert_eq!((found.sequence, found.metas, found.ending), (2, vec![3; 8_192], Ending::Clean));
    }

    #[test]
    fn hostile_bytes_are_no_mark() {
        let mark = Mark { sequence: 1, ending: Ending::Open, boot: b"boot".to_vec(), metas: vec![7; 100] };
        let bytes = mark.encode();
        assert_eq!(Mark::decode(&bytes), Some(mark));
        for end in 0..bytes.len() {
            assert_eq!(Mark::decode(&bytes[..end]), None);
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert_eq!(Mark::decode(&damaged), None, "byte {at}");
        }
    }

    #[test]
    fn only_a_new_start_of_the_machine_without_a_clean_end_needs_restoring() {
        let mark = |ending, boot: &[u8]| Mark { sequence: 1, ending, boot: boot.to_vec(), metas: vec![] };
        assert!(!mark(Ending::Open, b"a").needs_restoring(b"a"));
        assert!(mark(Ending::Open, b"a").needs_restoring(b"b"));
        assert!(mark(Ending::Open, b"").needs_restoring(b""));
        assert!(!mark(Ending::Clean, b"a").needs_restoring(b"b"));
    }
}
