//! The time after a run of inserts until the server is idle, and its cost. An engine puts work off (merges,
//! checkpoints), and still owes it when the last insert is answered. Its rate to that moment is not the rate
//! that it can keep.
//!
//! A server is idle if its process used less than [`IDLE_CORES`] of a core and wrote less than [`IDLE_BYTES`]
//! a second, for [`IDLE_S`] seconds in a row. Others may use the device meanwhile. The tool does not wait for
//! a server on another machine, because it cannot see that process.

use crate::error::BenchError;
use pando_measuring::counters::{Sources, Usage};
use std::time::Duration;

const IDLE_CORES: f64 = 0.05;
const IDLE_BYTES: u64 = 1_000_000;
/// Idle seconds in a row, so that a server that only pauses is not taken for one that is idle.
pub(crate) const IDLE_S: u32 = 3;

/// The time between a run and an idle server.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Seconds until the server began to be idle, or until the waiting ended.
    pub seconds: f64,
    pub is_idle: bool,
    /// Bytes that the server's process wrote meanwhile, where that is counted.
    pub written: Option<u64>,
    /// Bytes of work that the server says it has put off, and still owes then. A server may be idle and owe
    /// work: buffers of a tree are flushed by later inserts.
    pub owed: Option<u64>,
}

/// Waits until the server is idle, so many seconds at most; nothing if its process is not here.
pub fn settle(sources: &mut Sources, most_s: u32) -> Result<Option<Settled>, BenchError> {
    if most_s == 0 || sources.server().is_none() {
        return Ok(None);
    }
    let first = sources.sample()?;
    let (mut last, mut idle_s) = (first.clone(), 0);
    for second in 1..=most_s {
        std::thread::sleep(Duration::from_secs(1));
        let sample = sources.sample()?;
        let written = sources.written_by_server(&last, &sample);
        idle_s = if is_idle(&sources.between(&last, &sample), written) { idle_s + 1 } else { 0 };
        last = sample;
        if idle_s == IDLE_S || second == most_s {
            break;
        }
    }
    let seconds = (sources.between(&first, &last).seconds - f64::from(idle_s)).max(0.0);
    let written = sources.written_by_server(&first, &last);
    Ok(Some(Settled { seconds, is_idle: idle_s == IDLE_S, written, owed: None }))
}

fn is_idle(usage: &Usage, written: Option<u64>) -> bool {
    let cores = usage.server.as_ref().map_or(0.0, |server| server.cpu_us() / 1e6 / usage.seconds);
    cores < IDLE_CORES && (written.unwrap_or(0) as f64) < IDLE_BYTES as f64 * usage.seconds
}

impl Settled {
    /// A line for a run that did so many operations (in the plural) in so many seconds.
    pub fn line(&self, operations: &str, done: u64, seconds: f64) -> String {
        let rate = |seconds: f64| done as f64 / seconds.max(1e-6);
        let written = self.written.map_or_else(String::new, |bytes| {
            format!(", {:.3} KB more written for each", bytes as f64 / 1024.0 / done.max(1) as f64)
        });
        let ended = if self.is_idle { "idle" } else { "not yet idle, when the waiting ended," };
        let owed = self.owed.filter(|bytes| *bytes > 0).map_or_else(String::new, |bytes| {
            format!("; {:.1} MB of deferred work are still owed, and not in this rate", bytes as f64 / 1e6)
        });
        format!(
            "to the last insert: {:.0} {operations}/s; {ended} after {:.0} s more: {:.0} {operations}/s{written}{owed}",
            rate(seconds),
            self.seconds,
            rate(seconds + self.seconds)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_measuring::counters::{Pressure, ServerUsage, Shares};

    fn usage(cpu_us: f64) -> Usage {
        Usage {
            seconds: 1.0,
            machine: Shares { idle: 0.0, user: 0.0, system: 0.0 },
            machine_switches: 0,
            server: Some(ServerUsage {
                user_us: cpu_us,
                system_us: 0.0,
                switches: 0,
                major_faults: 0,
                resident_bytes: 0,
            }),
            disk: None,
            pressure: Pressure::default(),
        }
    }

    #[test]
    fn a_server_that_works_or_writes_is_not_idle() {
        assert!(is_idle(&usage(10_000.0), Some(4096)) && is_idle(&usage(0.0), None));
        assert!(!is_idle(&usage(200_000.0), Some(4096)) && !is_idle(&usage(0.0), Some(5_000_000)));
    }

    #[test]
    fn the_rate_to_idle_counts_what_was_owed() {
        let mut settled = Settled { seconds: 10.0, is_idle: true, written: Some(1024 * 2000), owed: Some(0) };
        assert_eq!(
            settled.line("documents", 1000, 10.0),
            "to the last insert: 100 documents/s; idle after 10 s more: 50 documents/s, 2.000 KB more written for each"
        );
        settled.owed = Some(12_340_000);
        let line = settled.line("documents", 1000, 10.0);
        assert!(line.ends_with("; 12.3 MB of deferred work are still owed, and not in this rate"), "{line}");
    }
}
