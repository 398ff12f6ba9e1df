//! `/proc/PID/status`: resident memory.

use super::{CounterError, ProcessId};

/// The bytes of a process that are in memory.
pub fn resident_bytes(process: ProcessId) -> Result<u64, CounterError> {
    super::read_parsed(&process.path("status"), parse)
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
    }
}
