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
    /// Ticks in user mode, low priority included.
    user_ticks: u64,
    /// Ticks in the kernel, interrupts included.
    system_ticks: u64,
    /// Context switches since boot.
    pub switches: u64,
}

impl MachineCounts {
    /// How the time of all cores since another sample was used.
    pub fn shares_since(&self, before: &MachineCounts) -> Shares {
        let total = self.total_ticks.saturating_sub(before.total_ticks);
        let share = |after: u64, before: u64| {
            if total == 0 { 0.0 } else { after.saturating_sub(before) as f64 / total as f64 }
        };
        Shares {
            idle: share(self.idle_ticks, before.idle_ticks),
            user: share(self.user_ticks, before.user_ticks),
            system: share(self.system_ticks, before.system_ticks),
        }
    }
}

/// Shares (0..=1) of the time of all cores, as vmstat shows them.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Shares {
    /// In which nothing ran.
    pub idle: f64,
    /// In user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
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
    let sum = |places: [usize; 3]| places.iter().filter_map(|place| ticks.get(*place)).sum::<u64>();
    let (user_ticks, system_ticks) = (ticks.first()? + ticks.get(1)?, sum([2, 5, 6]));
    let switches = text.lines().find_map(|line| line.strip_prefix("ctxt "))?.trim().parse().ok()?;
    Some(MachineCounts { total_ticks, idle_ticks, user_ticks, system_ticks, switches })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_not_counted_twice_and_waiting_for_disks_is_idle() {
        let text = "cpu  100 10 50 800 40 1 2 3 77 7\ncpu0 1 2 3\nintr 5\nctxt 12345\n";
        let counts = parse(text).expect("the form of the kernel");
        let (user_ticks, system_ticks) = (110, 53);
        let expected =
            MachineCounts { total_ticks: 1006, idle_ticks: 840, user_ticks, system_ticks, switches: 12_345 };
        assert_eq!(counts, expected);
    }

    #[test]
    fn the_idle_share_is_of_the_time_between_samples() {
        let at = |total_ticks, idle_ticks| MachineCounts {
            total_ticks,
            idle_ticks,
            user_ticks: total_ticks - idle_ticks,
            system_ticks: 0,
            switches: 0,
        };
        let shares = at(1200, 150).shares_since(&at(1000, 100));
        assert_eq!(shares, Shares { idle: 0.25, user: 0.75, system: 0.0 });
        assert_eq!(at(1000, 100).shares_since(&at(1000, 100)).idle, 0.0);
    }

    #[test]
    fn another_form_is_no_counter() {
        assert_eq!(parse("cpu  a b c d\nctxt 1\n"), None);
        assert_eq!(parse("cpu  1 2 3 4 5\n"), None);
    }
}
