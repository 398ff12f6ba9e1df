//! A process: its CPU time, page faults, context switches and memory.
//!
//! - CPU time and major faults come from `/proc/PID/stat`, which includes threads that have ended.
//! - Context switches come from `/proc/PID/task/*/status`. `/proc/PID/status` counts the first thread only,
//!   and a thread that ends takes its count with it, so [`Switches`] keeps the last count of each thread that
//!   it has seen.
//!
//! The two `status` files are searched for the few lines that count. Every thread's file is read each second,
//! and a whole parser would show in the client's own CPU time.

use super::{CounterError, kernel_error, read, read_parsed};
use procfs::process::{Process, Stat};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A process of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ProcessId(u32);

impl ProcessId {
    /// The process of this number.
    pub fn new(number: u32) -> ProcessId {
        ProcessId(number)
    }

    /// The calling process.
    pub fn own() -> ProcessId {
        ProcessId(std::process::id())
    }

    /// A path under the process's folder in `/proc`.
    pub fn path(self, file: &str) -> PathBuf {
        Path::new("/proc").join(self.0.to_string()).join(file)
    }

    /// When the process began, in ticks since boot; nothing if it has ended, even if its parent has not
    /// looked after it.
    pub fn began_ticks(self) -> Option<u64> {
        let stat = self.open().ok()?.stat().ok()?;
        (stat.state != 'Z').then_some(stat.starttime)
    }

    /// The process that started it; nothing if there is none, or if this one has ended.
    pub(super) fn parent(self) -> Option<ProcessId> {
        let stat = self.open().ok()?.stat().ok()?;
        u32::try_from(stat.ppid).ok().filter(|number| *number > 0).map(ProcessId)
    }

    /// The process for the parsers of `procfs`.
    pub(super) fn open(self) -> Result<Process, CounterError> {
        let number = i32::try_from(self.0).unwrap_or(i32::MAX);
        Process::new(number).map_err(|error| kernel_error(self.path(""), error))
    }
}

impl std::fmt::Display for ProcessId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The counters of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessCounts {
    /// CPU time in user mode, in microseconds. The kernel counts ticks, mostly 100 in a second.
    pub user_us: f64,
    /// CPU time in the kernel, in microseconds.
    pub system_us: f64,
    /// Page faults that read from the device.
    pub major_faults: u64,
}

impl ProcessCounts {
    /// Reads the counters of a process.
    pub fn of(process: ProcessId) -> Result<ProcessCounts, CounterError> {
        let stat = process.open()?.stat().map_err(|error| kernel_error(process.path("stat"), error))?;
        Ok(ProcessCounts::of_stat(&stat, rustix::param::clock_ticks_per_second()))
    }

    fn of_stat(stat: &Stat, ticks_per_second: u64) -> ProcessCounts {
        let microseconds = |ticks: u64| ticks as f64 * 1e6 / ticks_per_second as f64;
        let (user_us, system_us) = (microseconds(stat.utime), microseconds(stat.stime));
        ProcessCounts { user_us, system_us, major_faults: stat.majflt }
    }
}

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Resident now.
    pub resident_bytes: u64,
    /// The most that was ever resident.
    pub peak_bytes: u64,
}

impl Memory {
    /// The memory of a process.
    pub fn of(process: ProcessId) -> Result<Memory, CounterError> {
        let path = process.path("status");
        let status = read(&path)?;
        match Memory::parse(&status) {
            Some(memory) => Ok(memory),
            // A process that is ending gives its memory away while its state is still another one.
            None if line_of(&status, "VmRSS").is_none() => {
                let source = std::io::Error::new(std::io::ErrorKind::NotFound, "the process has ended");
                Err(CounterError::Read { path, source })
            }
            None => Err(CounterError::Form { path }),
        }
    }

    fn parse(status: &str) -> Option<Memory> {
        let bytes = |name| {
            let kilobytes = line_of(status, name)?.strip_suffix("kB")?;
            kilobytes.trim().parse::<u64>().ok()?.checked_mul(1024)
        };
        Some(Memory { resident_bytes: bytes("VmRSS")?, peak_bytes: bytes("VmHWM")? })
    }
}

/// The last known count of context switches of each thread.
#[derive(Debug, Default)]
pub struct Switches {
    threads: BTreeMap<u32, u64>,
}

impl Switches {
    /// Reads the counts of the threads that are alive.
    pub fn update(&mut self, process: ProcessId) -> Result<(), CounterError> {
        let folder = process.path("task");
        let entries = std::fs::read_dir(&folder)
            .map_err(|source| CounterError::Read { path: folder.clone(), source })?;
        for entry in entries.flatten() {
            let thread = entry.file_name().to_str().and_then(|name| name.parse().ok());
            // A thread that ended since the folder was listed keeps its last count.
            let count = read(&entry.path().join("status")).ok().and_then(|text| switches(&text));
            if let (Some(thread), Some(count)) = (thread, count) {
                self.threads.insert(thread, count);
            }
        }
        Ok(())
    }

    /// The switches of all threads that were ever seen.
    pub fn total(&self) -> u64 {
        self.threads.values().sum()
    }
}

/// The context switches of the calling thread.
pub fn switches_of_this_thread() -> Result<u64, CounterError> {
    read_parsed(Path::new("/proc/thread-self/status"), switches)
}

/// Voluntary and other switches of one thread.
fn switches(status: &str) -> Option<u64> {
    let count = |name| line_of(status, name)?.parse::<u64>().ok();
    Some(count("voluntary_ctxt_switches")? + count("nonvoluntary_ctxt_switches")?)
}

/// The value of the line `NAME: VALUE`.
fn line_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::FromRead;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let text = format!("42 (a) b (c)) S 1 42 42 0 -1 4194560 900 0 7 0 150 50{}", " 0".repeat(37));
        let stat = Stat::from_read(text.as_bytes()).expect("the form of the kernel");
        let expected = ProcessCounts { user_us: 1_500_000.0, system_us: 500_000.0, major_faults: 7 };
        assert_eq!(ProcessCounts::of_stat(&stat, 100), expected);
        assert!(Stat::from_read("42 (a) S 1 42".as_bytes()).is_err(), "a short line is no counter");
    }

    #[test]
    fn this_process_can_be_read() {
        let counts = ProcessCounts::of(ProcessId::own()).expect("/proc is there");
        assert!(counts.user_us >= 0.0 && counts.system_us >= 0.0);
        let memory = Memory::of(ProcessId::own()).expect("/proc is there");
        assert!(0 < memory.resident_bytes && memory.resident_bytes <= memory.peak_bytes);
    }

    #[test]
    fn a_process_that_is_gone_is_named_with_its_path() {
        let error = ProcessCounts::of(ProcessId::new(u32::MAX >> 1)).expect_err("there is none");
        assert!(matches!(&error, CounterError::Read { .. }), "{error}");
        assert!(error.to_string().contains("/proc/2147483647"), "{error}");
    }

    #[test]
    fn resident_memory_is_told_from_its_peak() {
        let found = Memory::parse("VmHWM:\t   900 kB\nVmRSS:\t   512 kB\n");
        assert_eq!(found, Some(Memory { resident_bytes: 524_288, peak_bytes: 921_600 }));
        assert_eq!(Memory::parse("VmHWM:\t9 kB\nVmRSS:\tmany\n"), None);
        assert_eq!(line_of("Name:\ta\nState:\tZ (zombie)\n", "VmRSS"), None);
        assert_eq!(line_of("State:\tR (running)\nThreads:\t1\n", "VmRSS"), None);
        let other_form = "State:\tS (sleeping)\nVmRSS:\tmany\n";
        assert!(line_of(other_form, "VmRSS").is_some(), "that is another form, not another state");
    }

    #[test]
    fn both_kinds_of_switches_are_counted() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(switches(status), Some(157));
        assert_eq!(switches("Name:\tx\n"), None);
    }

    #[test]
    fn a_thread_that_ended_keeps_its_count() {
        let process = ProcessId::own();
        let mut switches = Switches::default();
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            (0..50).for_each(|_| {
                std::thread::yield_now();
                let _ = wait.recv_timeout(std::time::Duration::from_millis(1));
            })
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        switches.update(process).expect("/proc is there");
        let before = switches.total();
        drop(stop);
        thread.join().expect("the thread ends by itself");
        switches.update(process).expect("/proc is there");
        assert!(switches.total() >= before);
        assert!(switches_of_this_thread().is_ok());
    }
}
