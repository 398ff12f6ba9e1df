//! The cost of a run: samples of the kernel's counters at the edges of the measured window.
//!
//! 1. [`Sources::find`] looks once which sources there are: the server's process, the best counter of disk
//!    I/O, the data folder.
//! 2. [`Sources::sample`] reads all of them with one time stamp, at both edges of the window and at each of
//!    its seconds. Without the samples in between, threads that end would be forgotten.
//! 3. [`Sources::between`] subtracts two samples. Load, warm-up, connecting and draining are in no window.
//!
//! | module | what it reads |
//! |---|---|
//! | [`machine`] | `/proc/stat`, `/proc/pressure/*`: cores, context switches, waiting |
//! | [`process`] | `/proc/PID/stat`, `/proc/PID/status`, `/proc/PID/task/*/status`: CPU, faults, switches, memory |
//! | [`disk`] | control groups, `/proc/diskstats`, `/proc/PID/io`, and which of them is believed |
//! | [`listener`] | `/proc/net/tcp`, `/proc/*/fd`: the owner of a port |
//! | [`folder`] | the data folder: its place and its size |
//! | [`facts`] | the machine's kernel, processor, memory and file system |
//! | [`open_files`] | `/proc/PID/fdinfo`, `/proc/PID/maps`: buffered, direct, mapped |
//!
//! A server on another machine has no process here, and its columns stay empty.

mod disk;
mod facts;
mod folder;
mod listener;
mod machine;
mod open_files;
mod process;

pub use disk::{Device, DiskCounts, counted_by};
pub use facts::{Facts, queue_folder};
pub use folder::FolderSize;
pub use machine::{Pressure, Shares};
pub use open_files::OpenFiles;
pub use process::{Memory, ProcessCounts, ProcessId, switches_of_this_thread};

use disk::DiskSource;
use machine::MachineCounts;
use process::Switches;
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

/// An error of the parsers as ours: the file is gone, or has another form.
fn kernel_error(path: PathBuf, error: procfs::ProcError) -> CounterError {
    match error {
        procfs::ProcError::NotFound(_) => {
            CounterError::Read { path, source: std::io::ErrorKind::NotFound.into() }
        }
        procfs::ProcError::PermissionDenied(_) => {
            CounterError::Read { path, source: std::io::ErrorKind::PermissionDenied.into() }
        }
        procfs::ProcError::Io(source, _) => CounterError::Read { path, source },
        _ => CounterError::Form { path },
    }
}

/// The difference of two readings; `None` where one of them was not counted.
fn counted_since(after: Option<u64>, before: Option<u64>) -> Option<u64> {
    after.zip(before).map(|(after, before)| after.saturating_sub(before))
}

/// Where the counters of a run come from.
#[derive(Debug)]
pub struct Sources {
    server: Option<ProcessId>,
    switches: Switches,
    disks: Vec<DiskSource>,
    data_folder: Option<PathBuf>,
}

impl Sources {
    /// The sources of a server's process. `data_folder` overrides what the process's command line names.
    pub fn find(server: Option<ProcessId>, data_folder: Option<PathBuf>) -> Sources {
        let data_folder = data_folder.or_else(|| server.and_then(folder::of_process));
        let device_of = data_folder.clone().or_else(|| server.and_then(folder::working_folder));
        let candidates = |server| DiskSource::candidates(server, device_of.as_deref());
        let disks = server.map_or_else(Vec::new, candidates);
        Sources { server, switches: Switches::default(), disks, data_folder }
    }

    /// The server's process, if it is on this machine.
    pub fn server(&self) -> Option<ProcessId> {
        self.server
    }

    /// Which counter the disk columns would come from if they were read now.
    pub fn disk_source(&self) -> String {
        let readings: Result<Vec<DiskCounts>, _> = self.disks.iter().map(DiskSource::read).collect();
        let believed = readings.ok().and_then(|readings| DiskSource::believed(&self.disks, &readings));
        believed.map_or_else(|| "none".to_owned(), |place| self.disks[place].to_string())
    }

    /// The server's data folder, if it is known.
    pub fn data_folder(&self) -> Option<&Path> {
        self.data_folder.as_deref()
    }

    /// Bytes that the server's data folder takes on the device now.
    pub fn folder_bytes(&self) -> Option<u64> {
        self.data_folder.as_deref().map(|folder| FolderSize::of(folder).allocated_bytes)
    }

    /// Reads all counters.
    pub fn sample(&mut self) -> Result<Sample, CounterError> {
        let server = match self.server {
            Some(process) => {
                self.switches.update(process)?;
                Some(ServerSample {
                    process: ProcessCounts::of(process)?,
                    switches: self.switches.total(),
                    resident_bytes: Memory::of(process)?.resident_bytes,
                })
            }
            None => None,
        };
        let disks = self.disks.iter().map(DiskSource::read).collect::<Result<Vec<_>, _>>()?;
        let pressure = Pressure::read();
        Ok(Sample { at: Instant::now(), machine: MachineCounts::read()?, server, disks, pressure })
    }

    /// Bytes that the server's process wrote between two samples, not those of other processes.
    pub fn written_by_server(&self, before: &Sample, after: &Sample) -> Option<u64> {
        let place = self.disks.iter().position(DiskSource::is_process)?;
        Some(after.disks[place].since(&before.disks[place]).written_bytes)
    }

    /// The usage between two samples of these sources.
    pub fn between(&self, before: &Sample, after: &Sample) -> Usage {
        let server = before.server.as_ref().zip(after.server.as_ref());
        let believed = DiskSource::believed(&self.disks, &after.disks);
        let disk = believed.map(|place| DiskUsage {
            counts: after.disks[place].since(&before.disks[place]),
            source: self.disks[place].to_string(),
        });
        Usage {
            seconds: after.at.duration_since(before.at).as_secs_f64(),
            machine: after.machine.shares_since(&before.machine),
            machine_switches: after.machine.switches.saturating_sub(before.machine.switches),
            server: server.map(|(before, after)| ServerUsage::between(before, after)),
            disk,
            pressure: after.pressure.since(&before.pressure),
        }
    }
}

/// All counters at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    at: Instant,
    machine: MachineCounts,
    server: Option<ServerSample>,
    /// One reading of each source.
    disks: Vec<DiskCounts>,
    pressure: Pressure,
}

#[derive(Clone, Debug)]
struct ServerSample {
    process: ProcessCounts,
    switches: u64,
    resident_bytes: u64,
}

/// The usage between two samples.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The width of the window.
    pub seconds: f64,
    /// How the time of all cores was used.
    pub machine: Shares,
    /// Context switches of the whole machine.
    pub machine_switches: u64,
    /// The usage of the server's process, if it is on this machine.
    pub server: Option<ServerUsage>,
    /// Disk I/O, if it can be counted.
    pub disk: Option<DiskUsage>,
    /// How long somebody on this machine waited.
    pub pressure: Pressure,
}

/// Disk I/O, and its source.
#[derive(Clone, Debug)]
pub struct DiskUsage {
    /// The counts.
    pub counts: DiskCounts,
    /// The source that was believed.
    pub source: String,
}

/// The usage of the server's process.
#[derive(Clone, Debug)]
pub struct ServerUsage {
    /// CPU time in user mode, in microseconds.
    pub user_us: f64,
    /// CPU time in the kernel, in microseconds.
    pub system_us: f64,
    /// Context switches, voluntary and not.
    pub switches: u64,
    /// Page faults that read from the device.
    pub major_faults: u64,
    /// Resident memory at the end of the window.
    pub resident_bytes: u64,
}

impl ServerUsage {
    fn between(before: &ServerSample, after: &ServerSample) -> ServerUsage {
        ServerUsage {
            user_us: after.process.user_us - before.process.user_us,
            system_us: after.process.system_us - before.process.system_us,
            switches: after.switches.saturating_sub(before.switches),
            major_faults: after.process.major_faults.saturating_sub(before.process.major_faults),
            resident_bytes: after.resident_bytes,
        }
    }

    /// CPU time, user and system, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}
