//! The way in which a server has its data files open, from `/proc/PID/fdinfo` and `/proc/PID/maps`.
//!
//! A file that is opened past the page cache has `O_DIRECT` among its flags. A memory-mapped engine has large
//! parts of its files in its address space. Readahead changes buffered and mapped reads, and not direct ones.

use super::ProcessId;
use procfs::process::{MMPermissions, MMapPath, MemoryMap, MemoryMaps};
use std::path::Path;

/// `O_DIRECT` on the processors that Linux numbers it so for (x86 and most others).
const DIRECT: u32 = 0o40000;
/// `O_DIRECT` of 64-bit ARM.
const DIRECT_ARM: u32 = 0o200_000;

/// Data files of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OpenFiles {
    /// Descriptors of files under the data folder.
    pub files: u64,
    /// Of these, opened past the page cache.
    pub direct: u64,
    /// Bytes of such files that are mapped into memory.
    pub mapped_bytes: u64,
}

impl OpenFiles {
    /// Looks at a process; `None` if it may not be looked at.
    pub fn of(server: ProcessId, folder: &Path) -> Option<OpenFiles> {
        let folder = folder.canonicalize().ok()?;
        let mut found = OpenFiles::default();
        for entry in std::fs::read_dir(server.path("fd")).ok()?.flatten() {
            let is_data = std::fs::read_link(entry.path()).is_ok_and(|file| file.starts_with(&folder));
            if !is_data || entry.path().is_dir() {
                continue;
            }
            found.files += 1;
            let information = super::read(&server.path("fdinfo").join(entry.file_name())).unwrap_or_default();
            found.direct += u64::from(is_direct(&information));
        }
        let maps = server.open().ok().and_then(|process| process.maps().ok());
        let length = |file: &Path| std::fs::metadata(file).ok().map(|file| file.len());
        found.mapped_bytes = maps.map_or(0, |maps| mapped_bytes(&maps, &folder, length));
        Some(found)
    }

    /// In words.
    pub fn line(&self) -> String {
        let OpenFiles { files, direct, mapped_bytes } = *self;
        let mapped = mapped_bytes as f64 / 1e6;
        format!(
            "{} buffered and {direct} direct of {files} data files, {mapped:.0} MB mapped",
            files - direct
        )
    }
}

fn is_direct(information: &str) -> bool {
    let flags = information.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).unwrap_or(0);
    flags & if cfg!(target_arch = "aarch64") { DIRECT_ARM } else { DIRECT } != 0
}

/// Private maps are programs and libraries, and not counted. A map counts up to the end of its file: LMDB
/// maps the size that the file may have one day.
fn mapped_bytes(maps: &MemoryMaps, folder: &Path, length: impl Fn(&Path) -> Option<u64>) -> u64 {
    let of_data = |map: &MemoryMap| {
        let MMapPath::Path(path) = &map.pathname else { return 0 };
        if !path.starts_with(folder) || !map.perms.contains(MMPermissions::SHARED) {
            return 0;
        }
        let span = map.address.1.saturating_sub(map.address.0);
        // A file that is removed already has no length to be asked for.
        length(path).map_or(span, |length| span.min(length.saturating_sub(map.offset)))
    };
    maps.iter().map(of_data).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::FromRead;

    #[test]
    fn flags_and_maps_are_read_as_the_kernel_writes_them() {
        assert!(is_direct(if cfg!(target_arch = "aarch64") {
            "pos:\t0\nflags:\t0300002\n"
        } else {
            "pos:\t0\nflags:\t0140002\n"
        }));
        assert!(!is_direct("pos:\t0\nflags:\t0100002\n"));
        let maps = "7f00000000-7f00002000 rw-s 00000000 fe:00 12 /data/db/data.mdb\n\
                    7f00003000-7f00004000 r-xp 00000000 fe:00 13 /data/db/library.so\n\
                    7f00005000-7f00006000 rw-s 00000000 fe:00 14 /elsewhere/x\n";
        let maps = MemoryMaps::from_read(maps.as_bytes()).expect("the form of the kernel");
        assert_eq!(mapped_bytes(&maps, Path::new("/data/db"), |_| None), 0x2000);
    }

    #[test]
    fn a_map_beyond_the_end_of_its_file_counts_as_the_file() {
        let maps = "7f0000000000-7f4000000000 rw-s 00000000 fe:00 12 /data/data.mdb\n\
                    7f5000000000-7f5000004000 rw-s 00003000 fe:00 12 /data/data.mdb\n";
        let maps = MemoryMaps::from_read(maps.as_bytes()).expect("the form of the kernel");
        assert_eq!(mapped_bytes(&maps, Path::new("/data"), |_| Some(0x5000)), 0x5000 + 0x2000);
    }

    #[test]
    fn a_data_file_of_this_process_is_seen() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let _open = std::fs::File::create(folder.path().join("data")).expect("writable");
        let found = OpenFiles::of(ProcessId::own(), folder.path()).expect("it is this process");
        assert_eq!((found.files, found.direct), (1, 0));
        assert!(found.line().starts_with("1 buffered and 0 direct of 1"));
    }
}
