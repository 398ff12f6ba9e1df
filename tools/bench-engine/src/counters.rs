//! The cost of work: the kernel's counters of this process and of the device under its store.
//!
//! Bytes are this process's own (`/proc/self/io`). The number of reads is known for the whole device only
//! (`/proc/diskstats`). Where others read from it at the same time, this process gets the share that it has
//! of the bytes, and [`Usage::share`] says how much that is.

use std::path::{Path, PathBuf};
use std::time::Instant;

use pando_measuring::counters::{Device, DiskCounts, FolderSize, ProcessCounts, ProcessId};

use crate::error::BenchError;

#[derive(Clone, Debug)]
pub struct Sample {
    at: Instant,
    process: ProcessCounts,
    own: DiskCounts,
    /// `None` where the store is on no device, such as in memory.
    device: Option<DiskCounts>,
}

/// The usage between two samples.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// Bytes that this process read from the device.
    pub read_bytes: f64,
    /// Bytes that this process wrote, or that the kernel will write for it.
    pub written_bytes: f64,
    pub reads: f64,
    /// Share of the device's bytes read that are this process's, up to 1.
    pub share: f64,
}

impl Sample {
    pub fn take(device: Option<Device>) -> Result<Sample, BenchError> {
        let process = ProcessId::own();
        Ok(Sample {
            at: Instant::now(),
            process: ProcessCounts::of(process)?,
            own: process.disk_counts()?,
            device: device.and_then(|device| device.counts().ok()),
        })
    }

    /// The usage since an earlier sample.
    pub fn since(&self, before: &Sample) -> Usage {
        let own = self.own.since(&before.own);
        let device = self.device.as_ref().zip(before.device.as_ref()).map(|(now, before)| now.since(before));
        let read_bytes = own.read_bytes as f64;
        let device_bytes = device.as_ref().map_or(0, |counts| counts.read_bytes) as f64;
        let share = if device_bytes > 0.0 { (read_bytes / device_bytes).min(1.0) } else { 1.0 };
        let cpu_us = |process: &ProcessCounts| process.user_us + process.system_us;
        Usage {
            seconds: self.at.duration_since(before.at).as_secs_f64(),
            cpu_seconds: (cpu_us(&self.process) - cpu_us(&before.process)) / 1e6,
            read_bytes,
            written_bytes: own.written_bytes as f64,
            reads: device.and_then(|counts| counts.reads).unwrap_or(0) as f64 * share,
            share,
        }
    }
}

/// Bytes that a folder with all in it takes on the device.
pub fn folder_bytes(folder: &Path) -> u64 {
    FolderSize::of(folder).allocated_bytes
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_and_its_folder_are_seen() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("inner")).expect("it is empty");
        std::fs::write(folder.path().join("inner/a"), [1; 10_000]).expect("it is writable");
        assert!(folder_bytes(folder.path()) >= 10_000);
        assert_eq!(largest_file(folder.path()).expect("there is one").1, 10_000);
        let device = Device::under(folder.path());
        let before = Sample::take(device).expect("the kernel shows it");
        let usage = Sample::take(device).expect("the kernel shows it").since(&before);
        assert!(usage.seconds >= 0.0 && usage.share <= 1.0);
    }
}
