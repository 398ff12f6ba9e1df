//! `/proc/stat`: the time of all cores, and the context switches of the machine.

use super::CounterError;
use std::path::Path;

/// The counters of the whole machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineCounts {
    /// Ticks of all cores, busy or not.
    total_ticks: u64,
    /// Ticks in which nothing ran, waiting for disks included.
    idle_ticks: u64,
    /// Context switches since boot.
    pub switches: u64,
}

impl MachineCounts {
    /// The share (0..=1) of the time since another sample in which nothing ran.
    pub fn idle_share_since(&self, before: &MachineCounts) -> f64 {
        let total = self.total_ticks.saturating_sub(before.total_ticks);
        let idle = self.idle_ticks.saturating_sub(before.idle_ticks);
        if total == 0 { 0.0 } else { idle as f64 / total as f64 }
    }
}

/// Reads the counters.
pub fn read() -> Result<MachineCounts, CounterError> {
    super::read_parsed(Path::new("/proc/stat"), parse)
}

fn parse(text: &str) -> Option<MachineCounts> {
    let cpu = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = cpu.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    // user nice system idle iowait irq softirq steal guest guest_nice: guests are counted in user and nice already.
    let total_ticks = ticks.iter().take(8).sum();
    let idle_ticks = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
    let switches = text.lines().find_map(|line| line.strip_prefix("ctxt "))?.trim().parse().ok()?;
    Some(MachineCounts { total_ticks, idle_ticks, switches })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_not_counted_twice_and_waiting_for_disks_is_idle() {
        let text = "cpu  100 10 50 800 40 1 2 3 77 7\ncpu0 1 2 3\nintr 5\nctxt 12345\n";
        let counts = parse(text).expect("the form of the kernel");
        assert_eq!(counts, MachineCounts { total_ticks: 1006, idle_ticks: 840, switches: 12_345 });
    }

    #[test]
    fn the_idle_share_is_of_the_time_between_samples() {
        let at = |total_ticks, idle_ticks| MachineCounts { total_ticks, idle_ticks, switches: 0 };
        assert_eq!(at(1200, 150).idle_share_since(&at(1000, 100)), 0.25);
        assert_eq!(at(1000, 100).idle_share_since(&at(1000, 100)), 0.0);
    }

    #[test]
    fn another_form_is_no_counter() {
        assert_eq!(parse("cpu  a b c d\nctxt 1\n"), None);
        assert_eq!(parse("cpu  1 2 3 4 5\n"), None);
    }
}
