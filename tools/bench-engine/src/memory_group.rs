//! A control group that caps the memory of a measuring process: its own, and the kernel's page cache of its
//! files.
//!
//! 1. The parent makes a group below its own, of version 1 or 2, with a limit.
//! 2. The measuring process enters it before it opens anything.
//! 3. The parent removes the group when that process has ended.
//!
//! Where groups may not be made there is no cap: the reason becomes a note beside the figures.

use std::fs;
use std::path::{Path, PathBuf};

use pando_measuring::control_group::ControlGroup;

const MOUNTS: &str = "/proc/self/mounts";
const GROUPS: &str = "/proc/self/cgroup";
const MEMBERS: &str = "cgroup.procs";

/// A group with a limit; removed when dropped, which its processes must have left by then.
#[derive(Debug)]
pub struct MemoryGroup {
    folder: PathBuf,
}

impl MemoryGroup {
    /// Makes a group with this limit in bytes; or says why it cannot be.
    pub fn create(limit_bytes: u64) -> Result<MemoryGroup, String> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let own = own_group(&read(GROUPS)?, &read(MOUNTS)?).ok_or("no memory controller is mounted")?;
        let folder = own.folder.join(format!("pando-bench-engine-{}", std::process::id()));
        let describe = |error: std::io::Error| format!("{}: {error}", folder.display());
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(describe(error)),
            _ => {}
        }
        let group = MemoryGroup { folder: folder.clone() };
        fs::write(folder.join(own.limit_file), limit_bytes.to_string()).map_err(describe)?;
        Ok(group)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn enter(folder: &Path) -> std::io::Result<()> {
        fs::write(folder.join(MEMBERS), std::process::id().to_string())
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A group that is left behind does no harm and is used again.
        let _left_behind = fs::remove_dir(&self.folder);
    }
}

#[derive(Debug, PartialEq)]
struct OwnGroup {
    folder: PathBuf,
    limit_file: &'static str,
}

fn own_group(groups: &str, mounts: &str) -> Option<OwnGroup> {
    let of = |controller, limit_file| {
        let group = ControlGroup::find(groups, mounts, controller)?;
        Some(OwnGroup { folder: group.folder(), limit_file })
    };
    of("memory", "memory.limit_in_bytes").or_else(|| of("", "memory.max"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_is_preferred_where_it_controls_memory() {
        let mounts = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let own = own_group("4:memory:/a/b\n0::/c\n", mounts).expect("it is there");
        assert_eq!(own.folder, PathBuf::from("/sys/fs/cgroup/memory/a/b"));
        let own = own_group("0::/c\n", mounts).expect("version 2 is there");
        assert_eq!(own, OwnGroup { folder: "/sys/fs/cgroup/unified/c".into(), limit_file: "memory.max" });
        assert_eq!(own_group("", ""), None);
    }
}
