//! `/proc/PID/status`: resident memory.

use super::{CounterError, ProcessId};

/// The bytes of a process that are in memory.
pub fn resident_bytes(process: ProcessId) -> Result<u64, CounterError> {
    let path = process.path("status");
    let status = super::read(&path)?;
    match parse(&status) {
        Some(bytes) => Ok(bytes),
        None if has_ended(&status) => Err(CounterError::Read {
            path,
            source: std::io::Error::new(std::io::ErrorKind::NotFound, "the process has ended"),
        }),
        None => Err(CounterError::Form { path }),
    }
}

/// A process that has ended and that nobody has looked after yet is shown without its memory.
fn has_ended(status: &str) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("State:"))
        .is_some_and(|state| state.trim().starts_with(['Z', 'X']))
}

fn parse(status: &str) -> Option<u64> {
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix("kB")?;
    kilobytes.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_told_from_its_peak() {
        assert_eq!(parse("VmHWM:\t   900 kB\nVmRSS:\t   512 kB\n"), Some(524_288));
        assert_eq!(parse("VmRSS:\tmany\n"), None);
        assert!(has_ended("Name:\ta\nState:\tZ (zombie)\n") && !has_ended("State:\tS (sleeping)\n"));
    }
}
