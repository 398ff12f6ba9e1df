//! `/proc/PID/status`: resident memory.

use super::{CounterError, ProcessId};

/// The bytes of a process that are in memory.
pub fn resident_bytes(process: ProcessId) -> Result<u64, CounterError> {
    let path = process.path("status");
    let status = super::read(&path)?;
    match parse(&status) {
        Some(bytes) => Ok(bytes),
        None if has_no_memory(&status) => Err(CounterError::Read {
            path,
            source: std::io::Error::new(std::io::ErrorKind::NotFound, "the process has ended"),
        }),
        None => Err(CounterError::Form { path }),
    }
}

/// A process that is ending, or has ended and nobody has looked after yet, is shown without its memory. It gives that away while its
/// state is still another one.
fn has_no_memory(status: &str) -> bool {
    !status.lines().any(|line| line.starts_with("VmRSS:"))
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
        assert!(
            has_no_memory("Name:\ta\nState:\tZ (zombie)\n")
                && has_no_memory("State:\tR (running)\nThreads:\t1\n")
        );
        assert!(
            !has_no_memory("State:\tS (sleeping)\nVmRSS:\tmany\n"),
            "that is another form, not another state"
        );
    }
}
