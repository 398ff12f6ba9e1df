//! The manifest of a backup: its moment, and the name, length and hash of each file.
//!
//! `magic 8, version u32, number of files u32, moment u64`, then per file `length of the name u32, name,
//! bytes u64, xxh3-64 u64`, then the xxh3-64 of all before. All numbers are little-endian. It is written
//! under another name, synced, and renamed: a manifest of the final name is whole.

use std::path::Path;

use pando_environment::{Access, Environment, OpenMode};
use xxhash_rust::xxh3::xxh3_64;

use super::{corrupt, failed_while, invalid};
use crate::error::StorageError;
use crate::identifiers::CommitTimestamp;

const MAGIC: &[u8; 8] = b"PANDORBK";
const VERSION: u32 = 1;

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BackedUpFile {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) hash: u64,
}

/// The manifest of an engine's backups: its file, and the engine for messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct ManifestFile {
    pub(super) engine: &'static str,
    pub(super) name: &'static str,
}

impl ManifestFile {
    /// Its name until it is whole.
    pub(super) fn unfinished_name(self) -> String {
        format!("{}.new", self.name)
    }
}

/// See the module's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) moment: CommitTimestamp,
    pub(super) files: Vec<BackedUpFile>,
}

impl Manifest {
    /// Writes the manifest, after which the backup is finished.
    pub(super) fn write(
        &self,
        manifest: ManifestFile,
        environment: &Environment,
        folder: &Path,
    ) -> Result<(), StorageError> {
        let failed = failed_while("cannot write the manifest of the backup");
        let (files, unfinished) = (environment.files(), folder.join(manifest.unfinished_name()));
        let file = files.open(&unfinished, OpenMode::CreateOrOpen, Access::Buffered).map_err(failed)?;
        file.set_length(0).map_err(failed)?;
        file.write_all_at(&self.encode(), 0).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        files.rename(&unfinished, &folder.join(manifest.name)).map_err(failed)?;
        files.sync_dir(folder).map_err(failed)
    }

    /// Reads the manifest of a finished backup.
    pub(super) fn read(
        manifest: ManifestFile,
        environment: &Environment,
        folder: &Path,
    ) -> Result<Manifest, StorageError> {
        let failed = failed_while("cannot read the manifest of the backup");
        let (files, path) = (environment.files(), folder.join(manifest.name));
        if !files.exists(&path).map_err(failed)? {
            let (folder, ManifestFile { engine, name }) = (folder.display(), manifest);
            return Err(invalid(format!(
                "{folder} holds no finished backup of the engine {engine} ({name} is missing)"
            )));
        }
        let file = files.open(&path, OpenMode::ReadOnly, Access::Buffered).map_err(failed)?;
        let mut bytes = vec![0; file.length().map_err(failed)? as usize];
        file.read_exact_at(&mut bytes, 0).map_err(failed)?;
        let damaged = || corrupt(format!("{} is damaged: take another backup", path.display()));
        if let Some(version) = newer_version(&bytes) {
            return Err(invalid(format!(
                "{} has format version {version}, this program reads version {VERSION}: restore it with the program \
                 that wrote it",
                path.display()
            )));
        }
        Manifest::decode(&bytes).ok_or_else(damaged)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(self.files.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.moment.get().to_le_bytes());
        for file in &self.files {
            bytes.extend_from_slice(&(file.name.len() as u32).to_le_bytes());
            bytes.extend_from_slice(file.name.as_bytes());
            bytes.extend_from_slice(&file.bytes.to_le_bytes());
            bytes.extend_from_slice(&file.hash.to_le_bytes());
        }
        let hash = xxh3_64(&bytes);
        bytes.extend_from_slice(&hash.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Manifest> {
        let (content, hash) = bytes.split_last_chunk::<8>()?;
        if xxh3_64(content) != u64::from_le_bytes(*hash) {
            return None;
        }
        let rest = content.strip_prefix(MAGIC)?;
        let (_version, rest) = rest.split_first_chunk::<4>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let (moment, mut rest) = rest.split_first_chunk::<8>()?;
        let mut files = Vec::new();
        for _ in 0..u32::from_le_bytes(*count) {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            let (name, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            let (bytes, behind) = behind.split_first_chunk::<8>()?;
            let (hash, behind) = behind.split_first_chunk::<8>()?;
            let name = std::str::from_utf8(name).ok().filter(|name| is_plain(name))?.to_owned();
            files.push(BackedUpFile {
                name,
                bytes: u64::from_le_bytes(*bytes),
                hash: u64::from_le_bytes(*hash),
            });
            rest = behind;
        }
        let moment = CommitTimestamp::new(u64::from_le_bytes(*moment));
        rest.is_empty().then_some(Manifest { moment, files })
    }
}

/// The version of a manifest that another version of this program has written.
fn newer_version(bytes: &[u8]) -> Option<u32> {
    let (version, _) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<4>()?;
    Some(u32::from_le_bytes(*version)).filter(|version| *version != VERSION)
}

/// Whether a name stays within its folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let file = |name: &str, bytes| BackedUpFile { name: name.to_owned(), bytes, hash: 7 * bytes };
        Manifest {
            moment: CommitTimestamp::new(99),
            files: vec![file("CURRENT", 16), file("000012.sst", 5_000)],
        }
    }

    #[test]
    fn a_manifest_reads_back_and_a_damaged_one_does_not() {
        let bytes = manifest().encode();
        assert_eq!(Manifest::decode(&bytes), Some(manifest()));
        for at in 0..bytes.len() {
            assert_eq!(Manifest::decode(&bytes[..at]), None, "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Manifest::decode(&damaged), None, "byte {at}");
        }
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        for name in ["", "..", "a/b", "/etc/passwd", "a\0"] {
            let mut manifest = manifest();
            manifest.files[0].name = name.to_owned();
            assert_eq!(Manifest::decode(&manifest.encode()), None, "{name:?}");
        }
    }
}
