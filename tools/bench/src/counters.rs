//! What a run costs the machine: samples of the kernel's counters at the edges of the measured window.
//!
//! 1. [`Sources::find`] looks once for what there is: the server's process, where disk I/O is counted best, the data folder.
//! 2. [`Sources::sample`] reads everything with one time stamp, at the beginning and at the end of the window (and in
//!    between, so that threads which end are not forgotten).
//! 3. [`Usage::between`] subtracts. Load, warm-up, connecting and draining are in no window.
//!
//! One file per source:
//!
//! | module | file of the kernel |
//! |---|---|
//! | [`machine`] | `/proc/stat` |
//! | [`process_stat`] | `/proc/PID/stat`: CPU, major faults |
//! | [`process_switches`] | `/proc/PID/task/*/status`: context switches |
//! | [`process_memory`] | `/proc/PID/status`: resident memory |
//! | [`process_io`] | `/proc/PID/io` |
//! | [`cgroup2_io`], [`cgroup1_blkio`], [`diskstats`] | the others that count disk I/O; [`disk`] chooses |
//! | [`listener`] | `/proc/net/tcp`, `/proc/*/fd`: whose port it is |
//! | [`folder`] | the data folder |
//! | [`facts`] | what the machine is |
//!
//! A server on another machine has no process here; its columns stay empty.

mod cgroup1_blkio;
mod cgroup2_io;
mod disk;
mod diskstats;
mod facts;
mod folder;
mod listener;
mod machine;
mod process_io;
mod process_memory;
mod process_stat;
mod process_switches;

pub use disk::DiskCounts;
pub use facts::Facts;
pub use folder::FolderSize;
pub use process_stat::ProcessId;
pub use process_switches::of_this_thread as switches_of_this_thread;

use disk::DiskSource;
use machine::MachineCounts;
use process_stat::ProcessCounts;
use process_switches::Switches;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Why a counter cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CounterError {
    /// The kernel does not show the file, often because the process is gone.
    #[error("cannot read {path}: is the server still running?")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file has another form than this tool knows.
    #[error("{path} has an unexpected form: please report it with the kernel's version")]
    Form {
        /// The file.
        path: PathBuf,
    },
}

/// Reads one of the kernel's files.
fn read(path: &Path) -> Result<String, CounterError> {
    // Names of commands in these files need not be UTF-8.
    let bytes = std::fs::read(path).map_err(|source| CounterError::Read { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads and parses one of the kernel's files.
fn read_parsed<T>(path: &Path, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, CounterError> {
    parse(&read(path)?).ok_or_else(|| CounterError::Form { path: path.to_owned() })
}

/// Where the counters of a run come from.
#[derive(Debug)]
pub struct Sources {
    server: Option<ProcessId>,
    switches: Switches,
    disk: Option<DiskSource>,
    data_folder: Option<PathBuf>,
}

impl Sources {
    /// Looks for the server behind an address. `process` and `data_folder` override what would be found.
    pub fn find(address: SocketAddr, process: Option<ProcessId>, data_folder: Option<PathBuf>) -> Sources {
        let server = process.or_else(|| listener::process_behind(address));
        let data_folder = data_folder.or_else(|| server.and_then(folder::of_process));
        let device_of = data_folder.clone().or_else(|| server.and_then(folder::working_folder));
        let disk = server.and_then(|server| DiskSource::choose(server, device_of.as_deref()));
        Sources { server, switches: Switches::default(), disk, data_folder }
    }

    /// The server's process, if it is on this machine.
    pub fn server(&self) -> Option<ProcessId> {
        self.server
    }

    /// Which counter the disk columns come from.
    pub fn disk_source(&self) -> String {
        self.disk.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
    }

    /// The server's data folder, if it is known.
    pub fn data_folder(&self) -> Option<&Path> {
        self.data_folder.as_deref()
    }

    /// Notices the server's threads, so that one which ends before the next sample is not forgotten.
    pub fn notice_threads(&mut self) -> Result<(), CounterError> {
        self.server.map_or(Ok(()), |server| self.switches.update(server))
    }

    /// Reads all counters.
    pub fn sample(&mut self) -> Result<Sample, CounterError> {
        let server = match self.server {
            Some(process) => {
                self.switches.update(process)?;
                Some(ServerSample {
                    process: process_stat::read(process)?,
                    switches: self.switches.total(),
                    resident_bytes: process_memory::resident_bytes(process)?,
                })
            }
            None => None,
        };
        let disk = self.disk.as_ref().map(DiskSource::read).transpose()?;
        Ok(Sample { at: Instant::now(), machine: machine::read()?, server, disk })
    }
}

/// All counters at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    at: Instant,
    machine: MachineCounts,
    server: Option<ServerSample>,
    disk: Option<DiskCounts>,
}

#[derive(Clone, Debug)]
struct ServerSample {
    process: ProcessCounts,
    switches: u64,
    resident_bytes: u64,
}

/// What happened between two samples.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The width of the window.
    pub seconds: f64,
    /// Share (0..=1) of all cores' time in which nothing ran.
    pub machine_idle: f64,
    /// Context switches of the whole machine.
    pub machine_switches: u64,
    /// What the server's process used, if it is on this machine.
    pub server: Option<ServerUsage>,
    /// Disk I/O, if it can be counted.
    pub disk: Option<DiskCounts>,
}

/// What the server's process used.
#[derive(Clone, Debug)]
pub struct ServerUsage {
    /// CPU time, user and system, in microseconds.
    pub cpu_us: f64,
    /// Context switches, voluntary and not.
    pub switches: u64,
    /// Page faults that read from the device.
    pub major_faults: u64,
    /// Resident memory at the end of the window.
    pub resident_bytes: u64,
}

impl Usage {
    /// The difference of two samples.
    pub fn between(before: &Sample, after: &Sample) -> Usage {
        let server = before.server.as_ref().zip(after.server.as_ref()).map(|(before, after)| ServerUsage {
            cpu_us: after.process.cpu_us - before.process.cpu_us,
            switches: after.switches.saturating_sub(before.switches),
            major_faults: after.process.major_faults.saturating_sub(before.process.major_faults),
            resident_bytes: after.resident_bytes,
        });
        Usage {
            seconds: after.at.duration_since(before.at).as_secs_f64(),
            machine_idle: after.machine.idle_share_since(&before.machine),
            machine_switches: after.machine.switches.saturating_sub(before.machine.switches),
            server,
            disk: before.disk.as_ref().zip(after.disk.as_ref()).map(|(before, after)| after.since(before)),
        }
    }
}
