//! The server's data folder: its place and its size.

use super::ProcessId;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Flags after which servers name their data folder on their command line.
const FLAGS: [&str; 3] = ["--data", "--dbpath", "--datadir"];
/// The unit of `st_blocks` on every file system.
const BLOCK_BYTES: u64 = 512;

/// The size of a folder with all that is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FolderSize {
    /// Bytes that it takes on the device.
    pub allocated_bytes: u64,
    /// The sum of the lengths of its files. Sparse and preallocated files make the two differ.
    pub apparent_bytes: u64,
}

impl FolderSize {
    /// Measures a folder. Files that vanish meanwhile are left out.
    pub fn of(folder: &Path) -> FolderSize {
        let mut size = FolderSize::default();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            size.allocated_bytes += metadata.blocks() * BLOCK_BYTES;
            if metadata.is_dir() {
                let inner = FolderSize::of(&entry.path());
                size.allocated_bytes += inner.allocated_bytes;
                size.apparent_bytes += inner.apparent_bytes;
            } else {
                size.apparent_bytes += metadata.len();
            }
        }
        size
    }

    /// Bytes that a file, or a folder with its content, takes on the device.
    pub fn of_entry(path: &Path) -> u64 {
        let own = std::fs::metadata(path).map_or(0, |metadata| metadata.blocks() * BLOCK_BYTES);
        own + FolderSize::of(path).allocated_bytes
    }
}

/// The folder that a process's command line names as its data.
pub fn of_process(process: ProcessId) -> Option<PathBuf> {
    let command_line = super::read(&process.path("cmdline")).ok()?;
    let folder = named_on(&command_line)?;
    // A relative path is relative to the process, if that has not moved since.
    let absolute = working_folder(process).unwrap_or_default().join(folder);
    absolute.is_dir().then_some(absolute)
}

/// The folder in which a process is.
pub fn working_folder(process: ProcessId) -> Option<PathBuf> {
    std::fs::read_link(process.path("cwd")).ok()
}

fn named_on(command_line: &str) -> Option<&str> {
    let mut words = command_line.split('\0');
    while let Some(word) = words.next() {
        for flag in FLAGS {
            match word.strip_prefix(flag) {
                Some("") => return words.next(),
                Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_flag_are_understood() {
        assert_eq!(named_on("pando\0serve\0--data\0store\0"), Some("store"));
        assert_eq!(named_on("mongod\0--dbpath=/var/lib/db\0--port\x001\0"), Some("/var/lib/db"));
        assert_eq!(named_on("pando\0--database\0x\0"), None);
    }

    #[test]
    fn files_in_folders_in_folders_are_measured() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).expect("it is empty");
        std::fs::write(inner.join("a"), [1; 5000]).expect("it is writable");
        std::fs::write(folder.path().join("b"), [1; 100]).expect("it is writable");
        assert_eq!(FolderSize::of(folder.path()).apparent_bytes, 5100);
    }
}
