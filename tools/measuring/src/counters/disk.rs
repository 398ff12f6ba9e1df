//! The source of disk I/O that counts best. The choice, in this order:
//!
//! 1. The server's control group, version 2, then version 1, if all processes in it are the server's. It
//!    counts the server alone. The root group is none of the server's.
//! 2. The device under the data folder (`/proc/diskstats`). It counts everybody's I/O.
//! 3. The server's process (`/proc/PID/io`). It counts bytes only.
//!
//! Each source that can be read is sampled, and the last sample decides which one is believed. Some kernels
//! mount control groups that count nothing, so a group whose counters are all 0 since it was made is passed
//! over. A device number with major 0 (overlay, btrfs, tmpfs) has no device.

use super::{CounterError, ProcessId, counted_since, kernel_error};
use crate::control_group::ControlGroup;
use procfs::DiskStat;
use procfs::process::Io;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A sector of `/proc/diskstats` has 512 bytes on every device.
const SECTOR_BYTES: u64 = 512;

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

    /// The increase since an earlier reading.
    pub fn since(&self, before: &DiskCounts) -> DiskCounts {
        DiskCounts {
            reads: counted_since(self.reads, before.reads),
            writes: counted_since(self.writes, before.writes),
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

    /// Everybody's I/O on this device since boot.
    pub fn counts(self) -> Result<DiskCounts, CounterError> {
        let path = PathBuf::from("/proc/diskstats");
        let devices = procfs::diskstats().map_err(|error| kernel_error(path.clone(), error))?;
        of_device(&devices, self).ok_or(CounterError::Form { path })
    }
}

impl ProcessId {
    /// Bytes that the process read from devices and gave to be written; no count of requests. A write is
    /// counted when a page gets dirty, not when it reaches the device.
    pub fn disk_counts(self) -> Result<DiskCounts, CounterError> {
        let io = self.open()?.io().map_err(|error| kernel_error(self.path("io"), error))?;
        Ok(of_process(&io))
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

/// The thing that a source of disk figures counts, by the source's text in a file ([`DiskSource`] as text).
/// Figures of two sources that count different things do not compare.
pub fn counted_by(source: &str) -> &str {
    let begins_with = |beginning| source.starts_with(beginning);
    match source {
        _ if begins_with("cgroup v2 ") => "the server's control group, version 2",
        _ if begins_with("cgroup v1 ") => "the server's control group, version 1, without buffered writes",
        _ if begins_with("/proc/diskstats") => "the whole device",
        _ if begins_with("/proc/") => "the process, bytes when a page gets dirty",
        other => other,
    }
}

impl DiskSource {
    /// The sources that can be read for a server whose data is in this folder, the best first.
    pub fn candidates(server: ProcessId, data_folder: Option<&Path>) -> Vec<DiskSource> {
        let groups = super::read(&server.path("cgroup")).unwrap_or_default();
        let mounts = super::read(Path::new("/proc/self/mounts")).unwrap_or_default();
        let own_group = |controller| {
            group_folder(&groups, &mounts, controller).filter(|folder| is_of_server(folder, server))
        };
        let version_2 = own_group("").map(|folder| DiskSource::Cgroup2(folder.join("io.stat")));
        let version_1 = own_group("blkio").map(DiskSource::Cgroup1);
        let device = data_folder.and_then(Device::under).map(DiskSource::Device);
        let all = [version_2, version_1, device, Some(DiskSource::Process(server))];
        all.into_iter().flatten().filter(|source| source.read().is_ok()).collect()
    }

    /// Whether it counts for the server's process.
    pub fn is_process(&self) -> bool {
        matches!(self, DiskSource::Process(_))
    }

    /// The source that is believed, by the last readings: the first that counted anything. If none did, it is
    /// the first that would see the whole device.
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
            DiskSource::Cgroup2(path) => super::read_parsed(path, of_group_2),
            DiskSource::Cgroup1(folder) => {
                let requests = super::read(&folder.join("blkio.throttle.io_serviced_recursive"))?;
                let path = folder.join("blkio.throttle.io_service_bytes_recursive");
                super::read_parsed(&path, |bytes| of_group_1(&requests, bytes))
            }
            DiskSource::Device(device) => device.counts(),
            DiskSource::Process(process) => process.disk_counts(),
        }
    }
}

fn of_device(devices: &[DiskStat], device: Device) -> Option<DiskCounts> {
    let numbers = (i32::try_from(device.major).ok()?, i32::try_from(device.minor).ok()?);
    let found = devices.iter().find(|found| (found.major, found.minor) == numbers)?;
    Some(DiskCounts {
        reads: Some(found.reads),
        writes: Some(found.writes),
        read_bytes: found.sectors_read.checked_mul(SECTOR_BYTES)?,
        written_bytes: found.sectors_written.checked_mul(SECTOR_BYTES)?,
    })
}

fn of_process(io: &Io) -> DiskCounts {
    let written_bytes = io.write_bytes.saturating_sub(io.cancelled_write_bytes);
    DiskCounts { reads: None, writes: None, read_bytes: io.read_bytes, written_bytes }
}

/// `io.stat` of a group of version 2: `MAJOR:MINOR rbytes= wbytes= rios= wios= …`, a line per device.
fn of_group_2(text: &str) -> Option<DiskCounts> {
    let sum = |name: &str| -> Option<u64> {
        let fields = text.lines().flat_map(|line| line.split_whitespace().skip(1));
        let values = fields.filter_map(|pair| pair.split_once('=')).filter(|(found, _)| *found == name);
        values.map(|(_, value)| value.parse::<u64>().ok()).sum()
    };
    Some(DiskCounts {
        reads: Some(sum("rios")?),
        writes: Some(sum("wios")?),
        read_bytes: sum("rbytes")?,
        written_bytes: sum("wbytes")?,
    })
}

/// `blkio.throttle.io_serviced_recursive` and `…io_service_bytes_recursive` of a group of version 1:
/// `MAJOR:MINOR Read N`, a line per device and kind. Buffered writes are charged to the root group, not to
/// this one.
fn of_group_1(requests: &str, bytes: &str) -> Option<DiskCounts> {
    let sum = |text: &str, kind: &str| -> Option<u64> {
        let fields = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let of_kind = fields.filter(|fields| fields.len() == 3 && fields[1] == kind);
        of_kind.map(|fields| fields[2].parse::<u64>().ok()).sum()
    };
    Some(DiskCounts {
        reads: Some(sum(requests, "Read")?),
        writes: Some(sum(requests, "Write")?),
        read_bytes: sum(bytes, "Read")?,
        written_bytes: sum(bytes, "Write")?,
    })
}

/// Whether all processes of a control group, and of the groups in it, are the server or its descendants. A
/// login or a container has one group for everything that runs in it, this tool included.
fn is_of_server(folder: &Path, server: ProcessId) -> bool {
    let Ok(processes) = super::read(&folder.join("cgroup.procs")) else { return false };
    let is_its = |line: &str| {
        // The system writes 0 for a process of another namespace.
        let process = line.trim().parse().ok().filter(|number: &u32| *number > 0).map(ProcessId::new);
        // One that has ended since the file was read does nothing any more.
        let is_over = |process: ProcessId| process.began_ticks().is_none();
        process
            .is_some_and(|process| process == server || is_descendant_of(process, server) || is_over(process))
    };
    let within = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    processes.lines().all(is_its)
        && within.filter(|path| path.is_dir()).all(|folder| is_of_server(&folder, server))
}

/// Whether a process has the other among its ancestors.
fn is_descendant_of(process: ProcessId, ancestor: ProcessId) -> bool {
    let mut parent = process.parent();
    // The chain ends at process 1, whose parent is 0.
    while let Some(process) = parent {
        if process == ancestor {
            return true;
        }
        parent = process.parent();
    }
    false
}

/// The folder of a process's control group. The root group is none, since it counts the whole machine.
fn group_folder(groups: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let group = ControlGroup::find(groups, mounts, controller)?;
    (!group.is_root()).then(|| group.folder())
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::FromRead;

    fn counts(requests: (u64, u64), bytes: (u64, u64)) -> DiskCounts {
        DiskCounts {
            reads: Some(requests.0),
            writes: Some(requests.1),
            read_bytes: bytes.0,
            written_bytes: bytes.1,
        }
    }

    #[test]
    fn devices_of_a_group_add_up_and_totals_are_left_out() {
        let requests =
            "254:0 Read 3\n254:0 Write 4\n254:0 Sync 7\n254:0 Total 7\n8:0 Read 2\n8:0 Write 0\nTotal 9\n";
        let bytes = "254:0 Read 4096\n254:0 Write 8192\n254:0 Total 12288\nTotal 12288\n";
        assert_eq!(of_group_1(requests, bytes), Some(counts((5, 4), (4096, 8192))));
        assert_eq!(of_group_1("254:0 Read x\n", ""), None);
        let text = "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n8:16 rbytes=100 wbytes=0 rios=3 wios=0\n";
        assert_eq!(of_group_2(text), Some(counts((4, 2), (4196, 8192))));
    }

    #[test]
    fn a_group_that_did_no_io_has_an_empty_file() {
        assert_eq!(of_group_2("").map(|counts| counts.reads), Some(Some(0)));
        assert_eq!(of_group_2("8:0 rbytes=many\n"), None);
    }

    #[test]
    fn the_line_of_the_device_is_read() {
        let text =
            " 254       0 vda 100 5 2000 7 50 6 800 9 0 1 2\n 254       1 vda1 1 1 1 1 1 1 1 1 0 1 2\n";
        let lines: Result<Vec<_>, _> = text.lines().map(DiskStat::from_line).collect();
        let devices = lines.expect("the form of the kernel");
        let found = of_device(&devices, Device { major: 254, minor: 0 });
        assert_eq!(found, Some(counts((100, 50), (1_024_000, 409_600))));
        assert_eq!(of_device(&devices, Device { major: 8, minor: 0 }), None);
    }

    #[test]
    fn device_bytes_are_told_from_all_bytes() {
        let text = "rchar: 999\nwchar: 999\nsyscr: 9\nsyscw: 9\nread_bytes: 4096\nwrite_bytes: 8192\n\
                    cancelled_write_bytes: 4096\n";
        let expected = DiskCounts { reads: None, writes: None, read_bytes: 4096, written_bytes: 4096 };
        assert_eq!(of_process(&Io::from_read(text.as_bytes()).expect("the form of the kernel")), expected);
        assert!(Io::from_read("rchar: 1\n".as_bytes()).is_err());
    }

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
    fn a_group_is_believed_if_all_processes_in_it_are_the_servers() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it starts");
        let (server, helper) = (ProcessId::own(), child.id());
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).expect("writable");
        let write = |folder: &Path, text: String| {
            std::fs::write(folder.join("cgroup.procs"), text).expect("writable");
        };
        assert!(!is_of_server(folder.path(), server), "it says nothing");
        write(&inner, String::new());
        write(folder.path(), format!("{server}\n{helper}\n"));
        assert!(is_of_server(folder.path(), server), "a child is the server's");
        assert!(!is_of_server(folder.path(), ProcessId::new(helper)), "somebody else is in it");
        write(&inner, "1\n".to_owned());
        assert!(!is_of_server(folder.path(), server), "somebody else is in a group below");
        child.kill().and_then(|()| child.wait()).expect("it ends");
    }

    #[test]
    fn sources_that_count_different_things_are_told_apart_by_their_texts() {
        let sources = [
            DiskSource::Cgroup2(PathBuf::from("/a/io.stat")),
            DiskSource::Cgroup1(PathBuf::from("/a")),
            DiskSource::Device(Device { major: 8, minor: 0 }),
            DiskSource::Process(ProcessId::own()),
        ];
        let mut counted: Vec<String> =
            sources.iter().map(|source| counted_by(&source.to_string()).to_owned()).collect();
        counted.sort();
        counted.dedup();
        assert_eq!(counted.len(), sources.len(), "{counted:?}");
        let of = |device| counted_by(&DiskSource::Device(device).to_string()).to_owned();
        assert_eq!(of(Device { major: 8, minor: 0 }), of(Device { major: 254, minor: 1 }));
    }

    #[test]
    fn some_source_exists_for_this_process() {
        let folder = std::env::current_dir().expect("there is one");
        let sources = DiskSource::candidates(ProcessId::own(), Some(&folder));
        assert!(sources.last().expect("at least the process's own").read().is_ok());
    }
}
