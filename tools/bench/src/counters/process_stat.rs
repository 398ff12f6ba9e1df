//! `/proc/PID/stat`: CPU time and major faults of a process, those of its threads that have ended included.

use super::CounterError;
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

    /// A path under the process's folder in `/proc`.
    pub fn path(self, file: &str) -> PathBuf {
        Path::new("/proc").join(self.0.to_string()).join(file)
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
    /// CPU time in user mode, in microseconds; it grows by ticks, of which a second has 100.
    pub user_us: f64,
    /// CPU time in the kernel, alike.
    pub system_us: f64,
    /// Page faults that had to read from the device.
    pub major_faults: u64,
}

/// Reads the counters of a process.
pub fn read(process: ProcessId) -> Result<ProcessCounts, CounterError> {
    let ticks_per_second = rustix::param::clock_ticks_per_second();
    super::read_parsed(&process.path("stat"), |text| parse(text, ticks_per_second))
}

fn parse(text: &str, ticks_per_second: u64) -> Option<ProcessCounts> {
    // The command's name may hold spaces and parentheses; the fields are counted after the last one.
    let (_, after_name) = text.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    // `fields[0]` is field 3 of the manual page.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let microseconds = |ticks: u64| ticks as f64 * 1e6 / ticks_per_second as f64;
    let (user_us, system_us) = (microseconds(field(14)?), microseconds(field(15)?));
    Some(ProcessCounts { user_us, system_us, major_faults: field(12)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b (c)) S 1 42 42 0 -1 4194560 900 0 7 0 150 50 0 0 20 0 30 0 100 0 0";
        let counts = parse(text, 100).expect("the form of the kernel");
        assert_eq!(counts, ProcessCounts { user_us: 1_500_000.0, system_us: 500_000.0, major_faults: 7 });
    }

    #[test]
    fn a_short_line_is_no_counter() {
        assert_eq!(parse("42 (a) S 1 42", 100), None);
        assert_eq!(parse("", 100), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let counts = read(ProcessId::new(std::process::id())).expect("/proc is there");
        assert!(counts.user_us >= 0.0 && counts.system_us >= 0.0);
    }
}
