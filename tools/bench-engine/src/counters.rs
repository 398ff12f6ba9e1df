//! What work costs: the kernel's counters of this process and of the device under its store.
//!
//! Bytes are this process's own (`/proc/self/io`). The number of reads is known for the whole device only
//! (`/proc/diskstats`); where others read from it at the same time, this process gets the share that it has of the bytes, and
//! [`Usage::share`] tells how much that is.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::error::{BenchError, on_file};

/// Unit of `/proc/diskstats`, whatever the device's sectors are.
const SECTOR_BYTES: u64 = 512;
/// Unit of `st_blocks`.
const BLOCK_BYTES: u64 = 512;
/// Unit of the times in `/proc/self/stat`: USER_HZ, which is 100 on every Linux.
const TICKS_A_SECOND: f64 = 100.0;

/// The device under a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    major: u32,
    minor: u32,
}

impl Device {
    /// The device that a folder lies on.
    pub fn under(folder: &Path) -> Result<Device, BenchError> {
        let number = std::fs::metadata(folder).map_err(on_file("look at", folder))?.dev();
        Ok(Device { major: rustix::fs::major(number), minor: rustix::fs::minor(number) })
    }
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    at: Instant,
    read_bytes: u64,
    written_bytes: u64,
    device: DeviceCounts,
    cpu_seconds: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct DeviceCounts {
    reads: u64,
    read_bytes: u64,
}

/// What happened between two samples.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    /// Time that passed.
    pub seconds: f64,
    /// Time of processors that this process took.
    pub cpu_seconds: f64,
    /// Bytes that this process read from the device.
    pub read_bytes: f64,
    /// Bytes that this process wrote, or that the kernel will write for it.
    pub written_bytes: f64,
    /// Reads of the device.
    pub reads: f64,
    /// Share of the device's bytes read that are this process's, up to 1.
    pub share: f64,
}

impl Sample {
    /// Reads the counters.
    pub fn take(device: Device) -> Result<Sample, BenchError> {
        let io = read("/proc/self/io")?;
        let of = |name| value_of(&io, name).ok_or_else(|| form("/proc/self/io"));
        let written = of("write_bytes")?.saturating_sub(of("cancelled_write_bytes")?);
        let device = parse_diskstats(&read("/proc/diskstats")?, device).unwrap_or_default();
        let cpu_seconds = parse_cpu(&read("/proc/self/stat")?).ok_or_else(|| form("/proc/self/stat"))?;
        Ok(Sample {
            at: Instant::now(),
            read_bytes: of("read_bytes")?,
            written_bytes: written,
            device,
            cpu_seconds,
        })
    }

    /// What happened since an earlier sample.
    pub fn since(&self, before: &Sample) -> Usage {
        let read_bytes = self.read_bytes.saturating_sub(before.read_bytes) as f64;
        let device_bytes = self.device.read_bytes.saturating_sub(before.device.read_bytes) as f64;
        let share = if device_bytes > 0.0 { (read_bytes / device_bytes).min(1.0) } else { 1.0 };
        Usage {
            seconds: self.at.duration_since(before.at).as_secs_f64(),
            cpu_seconds: self.cpu_seconds - before.cpu_seconds,
            read_bytes,
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes) as f64,
            reads: self.device.reads.saturating_sub(before.device.reads) as f64 * share,
            share,
        }
    }
}

/// Memory of this process: now, and at most so far, in bytes.
pub fn resident_bytes() -> Result<(u64, u64), BenchError> {
    let path = "/proc/self/status";
    let text = read(path)?;
    let kilobytes = |name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    match (kilobytes("VmRSS"), kilobytes("VmHWM")) {
        (Some(now), Some(most)) => Ok((now * 1024, most * 1024)),
        _ => Err(form(path)),
    }
}

/// Bytes that a folder with all in it takes on the device.
pub fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            let inner = if metadata.is_dir() { folder_bytes(&entry.path()) } else { 0 };
            Some(metadata.blocks() * BLOCK_BYTES + inner)
        })
        .sum()
}

/// The largest file in a folder and those below.
pub fn largest_file(folder: &Path) -> Option<(PathBuf, u64)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        if metadata.is_dir() { largest_file(&entry.path()) } else { Some((entry.path(), metadata.len())) }
    });
    files.max_by_key(|(_, bytes)| *bytes)
}

fn read(path: &'static str) -> Result<String, BenchError> {
    std::fs::read_to_string(path).map_err(on_file("read", path))
}

fn form(path: &'static str) -> BenchError {
    BenchError::Form { path: path.into() }
}

/// The value of the line `NAME: VALUE`.
fn value_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().parse().ok()
}

fn parse_diskstats(text: &str, device: Device) -> Option<DeviceCounts> {
    let fields = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|fields| {
        fields.first() == Some(&device.major.to_string().as_str())
            && fields.get(1) == Some(&device.minor.to_string().as_str())
    })?;
    let reads = fields.get(3)?.parse().ok()?;
    let sectors: u64 = fields.get(5)?.parse().ok()?;
    Some(DeviceCounts { reads, read_bytes: sectors * SECTOR_BYTES })
}

/// User and system time; the fields after the command's name, which may hold anything but ends with the last parenthesis.
fn parse_cpu(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_A_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_its_numbers() {
        let text = " 254 0 vda 10 0 80 5 7 0 9 1 0 1 1\n 254 16 vdb 1 0 2 5 7 0 9 1 0 1 1\n";
        let counts = parse_diskstats(text, Device { major: 254, minor: 0 });
        assert_eq!(counts, Some(DeviceCounts { reads: 10, read_bytes: 80 * SECTOR_BYTES }));
        assert_eq!(parse_diskstats(text, Device { major: 8, minor: 0 }), None);
    }

    #[test]
    fn a_command_with_spaces_and_parentheses_does_not_hide_its_times() {
        let stat = "7 (a b) c) S 1 1 1 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 1 0 0 0 0";
        assert_eq!(parse_cpu(stat), Some(2.0));
    }

    #[test]
    fn this_process_and_its_folder_are_seen() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("inner")).expect("it is empty");
        std::fs::write(folder.path().join("inner/a"), [1; 10_000]).expect("it is writable");
        assert!(folder_bytes(folder.path()) >= 10_000);
        assert_eq!(largest_file(folder.path()).expect("there is one").1, 10_000);
        let device = Device::under(folder.path()).expect("it exists");
        let before = Sample::take(device).expect("the kernel shows it");
        let usage = Sample::take(device).expect("the kernel shows it").since(&before);
        assert!(usage.seconds >= 0.0 && usage.share <= 1.0);
        let (now, most) = resident_bytes().expect("the kernel shows it");
        assert!(0 < now && now <= most);
    }
}
