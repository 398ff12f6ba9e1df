//! Where disk I/O is counted best. The choice, in this order:
//!
//! 1. the server's control group, version 2, then version 1, unless it is the root group: counts the server alone;
//! 2. the device under the data folder: counts everybody's I/O on it;
//! 3. the server's process: bytes only.
//!
//! All that can be read are sampled, and which one is believed is decided with the last sample: kernels exist whose control
//! groups are mounted and count nothing, so a group whose counters are all 0 since it was made is passed over. Device
//! numbers with major 0 (overlay, btrfs, tmpfs) have no device.

use super::{CounterError, ProcessId, cgroup1_blkio, cgroup2_io, diskstats, process_io};
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Disk I/O since some moment, or between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCounts {
    /// Read requests, where the source counts them.
    pub reads: Option<u64>,
    /// Write requests, where the source counts them.
    pub writes: Option<u64>,
    /// Bytes read from devices.
    pub read_bytes: u64,
    /// Bytes written to devices.
    pub written_bytes: u64,
}

impl DiskCounts {
    /// Whether nothing was ever counted.
    fn is_zero(&self) -> bool {
        self.read_bytes == 0
            && self.written_bytes == 0
            && self.reads.is_none_or(|count| count == 0)
            && self.writes.is_none_or(|count| count == 0)
    }

    /// What was added since an earlier reading.
    pub fn since(&self, before: &DiskCounts) -> DiskCounts {
        let difference = |after: Option<u64>, before: Option<u64>| {
            after.zip(before).map(|(after, before)| after.saturating_sub(before))
        };
        DiskCounts {
            reads: difference(self.reads, before.reads),
            writes: difference(self.writes, before.writes),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        }
    }
}

/// A block device by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// The driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

impl Device {
    /// The device on which a file or folder is, if it is on one.
    pub fn under(path: &Path) -> Option<Device> {
        let number = std::fs::metadata(path).ok()?.dev();
        let device = Device { major: rustix::fs::major(number), minor: rustix::fs::minor(number) };
        (device.major != 0).then_some(device)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The source that was chosen.
#[derive(Debug)]
pub enum DiskSource {
    /// `io.stat` at this path.
    Cgroup2(PathBuf),
    /// The blkio files in this folder.
    Cgroup1(PathBuf),
    /// The line of this device.
    Device(Device),
    /// The process's own counters.
    Process(ProcessId),
}

impl fmt::Display for DiskSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiskSource::Cgroup2(path) => write!(f, "cgroup v2 {}", path.display()),
            DiskSource::Cgroup1(path) => {
                write!(f, "cgroup v1 {}, without buffered writes", path.display())
            }
            DiskSource::Device(device) => write!(f, "/proc/diskstats, device {device}, whole device"),
            DiskSource::Process(process) => write!(f, "/proc/{process}/io, bytes only"),
        }
    }
}

impl DiskSource {
    /// The sources that can be read for a server whose data is in this folder, the best first.
    pub fn candidates(server: ProcessId, data_folder: Option<&Path>) -> Vec<DiskSource> {
        let groups = super::read(&server.path("cgroup")).unwrap_or_default();
        let mounts = super::read(Path::new("/proc/self/mounts")).unwrap_or_default();
        let version_2 =
            group_folder(&groups, &mounts, "").map(|folder| DiskSource::Cgroup2(folder.join("io.stat")));
        let version_1 = group_folder(&groups, &mounts, "blkio").map(DiskSource::Cgroup1);
        let device = data_folder.and_then(Device::under).map(DiskSource::Device);
        let all = [version_2, version_1, device, Some(DiskSource::Process(server))];
        all.into_iter().flatten().filter(|source| source.read().is_ok()).collect()
    }

    /// Whether it counts for the server's process.
    pub fn is_process(&self) -> bool {
        matches!(self, DiskSource::Process(_))
    }

    /// Which of the sources is believed, by their last readings: the first that counted anything; if none did, the first
    /// that would see the whole device.
    pub fn believed(sources: &[DiskSource], readings: &[DiskCounts]) -> Option<usize> {
        let counted = readings.iter().position(|counts| !counts.is_zero());
        let device = sources.iter().position(|source| !source.is_group());
        counted.or(device).filter(|place| *place < sources.len())
    }

    fn is_group(&self) -> bool {
        matches!(self, DiskSource::Cgroup1(_) | DiskSource::Cgroup2(_))
    }

    /// Reads the counters.
    pub fn read(&self) -> Result<DiskCounts, CounterError> {
        match self {
            DiskSource::Cgroup2(path) => super::read_parsed(path, cgroup2_io::parse),
            DiskSource::Cgroup1(folder) => {
                let requests = super::read(&folder.join("blkio.throttle.io_serviced_recursive"))?;
                let path = folder.join("blkio.throttle.io_service_bytes_recursive");
                super::read_parsed(&path, |bytes| cgroup1_blkio::parse(&requests, bytes))
            }
            DiskSource::Device(device) => {
                super::read_parsed(Path::new("/proc/diskstats"), |text| diskstats::parse(text, *device))
            }
            DiskSource::Process(process) => super::read_parsed(&process.path("io"), process_io::parse),
        }
    }
}

/// The folder of a process's control group: of version 2 for an empty controller, else of that controller of version 1.
/// The root group is none, since it counts the whole machine.
fn group_folder(groups: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let is_group = |line: &&str| {
        line.split(':')
            .nth(1)
            .is_some_and(|controllers| controllers.split(',').any(|found| found == controller))
    };
    let group = groups.lines().find(is_group)?.splitn(3, ':').nth(2)?;
    let is_mount = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            [_, _, "cgroup2", ..] => controller.is_empty(),
            [_, _, "cgroup", options, ..] => {
                !controller.is_empty() && options.split(',').any(|o| o == controller)
            }
            _ => false,
        }
    };
    let mount = mounts.lines().find(is_mount)?.split_whitespace().nth(1)?;
    let inside = group.trim_start_matches('/');
    (!inside.is_empty()).then(|| Path::new(mount).join(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n\
                          cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";

    #[test]
    fn a_group_of_either_version_is_found_under_its_mount() {
        let groups = "7:blkio:/servers/a\n0::/system.slice/b.service\n";
        let version_1 = group_folder(groups, MOUNTS, "blkio");
        assert_eq!(version_1, Some(PathBuf::from("/sys/fs/cgroup/blkio/servers/a")));
        let version_2 = group_folder(groups, MOUNTS, "");
        assert_eq!(version_2, Some(PathBuf::from("/sys/fs/cgroup/unified/system.slice/b.service")));
    }

    #[test]
    fn the_root_group_is_no_source() {
        assert_eq!(group_folder("7:blkio:/\n0::/\n", MOUNTS, "blkio"), None);
        assert_eq!(group_folder("7:blkio:/\n0::/\n", MOUNTS, ""), None);
    }

    #[test]
    fn differences_keep_what_is_not_counted_uncounted() {
        let at = |reads, bytes| DiskCounts { reads, writes: Some(1), read_bytes: bytes, written_bytes: 0 };
        let expected = DiskCounts { reads: None, writes: Some(0), read_bytes: 5, written_bytes: 0 };
        assert_eq!(at(None, 15).since(&at(Some(3), 10)), expected);
    }

    #[test]
    fn a_group_that_never_counted_anything_is_passed_over() {
        let counts = |bytes| DiskCounts { reads: Some(0), writes: None, read_bytes: bytes, written_bytes: 0 };
        let group = || DiskSource::Cgroup1(PathBuf::from("g"));
        let device = || DiskSource::Device(Device { major: 8, minor: 0 });
        let sources = [group(), device()];
        assert_eq!(DiskSource::believed(&sources, &[counts(0), counts(7)]), Some(1));
        assert_eq!(DiskSource::believed(&sources, &[counts(1), counts(7)]), Some(0));
        assert_eq!(DiskSource::believed(&sources, &[counts(0), counts(0)]), Some(1));
        assert_eq!(DiskSource::believed(&[], &[]), None);
    }

    #[test]
    fn some_source_exists_for_this_process() {
        let folder = std::env::current_dir().expect("there is one");
        let sources = DiskSource::candidates(ProcessId::new(std::process::id()), Some(&folder));
        assert!(sources.last().expect("at least the process's own").read().is_ok());
    }
}
