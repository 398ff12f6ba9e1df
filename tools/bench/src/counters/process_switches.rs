//! `/proc/PID/task/*/status`: context switches of all threads of a process.
//!
//! `/proc/PID/status` speaks of the first thread only, and a thread that ends takes its count with it: so the last count of
//! each thread that was ever seen is kept.

use super::{CounterError, ProcessId};
use std::collections::BTreeMap;

/// The last known count of each thread.
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
            let count = super::read(&entry.path().join("status")).ok().and_then(|text| parse(&text));
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

/// Voluntary and other switches of one thread.
pub fn parse(status: &str) -> Option<u64> {
    let value = |name: &str| -> Option<u64> {
        status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    Some(value("voluntary_ctxt_switches:")? + value("nonvoluntary_ctxt_switches:")?)
}

/// The switches of the calling thread.
pub fn of_this_thread() -> Result<u64, CounterError> {
    super::read_parsed(std::path::Path::new("/proc/thread-self/status"), parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_counted() {
        assert_eq!(
            parse("Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n"),
            Some(157)
        );
        assert_eq!(parse("Name:\tx\n"), None);
    }

    #[test]
    fn a_thread_that_ended_keeps_its_count() {
        let process = ProcessId::new(std::process::id());
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
        assert!(of_this_thread().is_ok());
    }
}
