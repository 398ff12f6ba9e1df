//! The machine: the time of all cores and the context switches (`/proc/stat`). Also the time that some task
//! waited for CPU, disk or memory (`/proc/pressure/*`, the lines `some`).

use super::{CounterError, counted_since, kernel_error};
use procfs::{Current, CurrentSI, KernelStats};

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
    /// Reads the counters.
    pub fn read() -> Result<MachineCounts, CounterError> {
        let stats = KernelStats::current().map_err(|error| kernel_error("/proc/stat".into(), error))?;
        Ok(MachineCounts::of(&stats))
    }

    fn of(stats: &KernelStats) -> MachineCounts {
        let all = &stats.total;
        let sum = |some: [Option<u64>; 4]| some.into_iter().flatten().sum::<u64>();
        // Guests are counted in user and nice already.
        let (user_ticks, idle_ticks) = (all.user + all.nice, all.idle + all.iowait.unwrap_or(0));
        let system_ticks = sum([Some(all.system), all.irq, all.softirq, None]);
        let total_ticks = user_ticks + idle_ticks + system_ticks + all.steal.unwrap_or(0);
        MachineCounts { total_ticks, idle_ticks, user_ticks, system_ticks, switches: stats.ctxt }
    }

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
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Shares {
    /// In which nothing ran.
    pub idle: f64,
    /// In user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

/// Microseconds in which some task waited; `None` where the kernel does not count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Pressure {
    /// For a core.
    pub cpu_us: Option<u64>,
    /// For a device.
    pub io_us: Option<u64>,
    /// For memory.
    pub memory_us: Option<u64>,
}

impl Pressure {
    /// As of now, since boot.
    pub fn read() -> Pressure {
        Pressure {
            cpu_us: procfs::CpuPressure::current().ok().map(|all| all.some.total),
            io_us: procfs::IoPressure::current().ok().map(|all| all.some.total),
            memory_us: procfs::MemoryPressure::current().ok().map(|all| all.some.total),
        }
    }

    /// The difference from an earlier reading.
    pub fn since(&self, before: &Pressure) -> Pressure {
        Pressure {
            cpu_us: counted_since(self.cpu_us, before.cpu_us),
            io_us: counted_since(self.io_us, before.io_us),
            memory_us: counted_since(self.memory_us, before.memory_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::{ExplicitSystemInfo, FromReadSI};

    fn stats(text: &str) -> Option<KernelStats> {
        let system = ExplicitSystemInfo {
            boot_time_secs: 0,
            ticks_per_second: 100,
            page_size: 4096,
            is_little_endian: true,
        };
        KernelStats::from_read(text.as_bytes(), &system).ok()
    }

    #[test]
    fn guests_are_not_counted_twice_and_waiting_for_disks_is_idle() {
        let text =
            "cpu  100 10 50 800 40 1 2 3 77 7\ncpu0 1 2 3 4\nintr 5\nctxt 12345\nbtime 1\nprocesses 2\n";
        let counts = MachineCounts::of(&stats(text).expect("the form of the kernel"));
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
        assert!(stats("cpu  a b c d\nctxt 1\n").is_none());
        assert!(stats("cpu  1 2 3 4 5\n").is_none());
        assert!(MachineCounts::read().is_ok());
    }

    #[test]
    fn figures_that_are_not_counted_stay_uncounted() {
        let at = |io_us| Pressure { cpu_us: None, io_us: Some(io_us), memory_us: None };
        assert_eq!(at(9).since(&at(4)), at(5));
    }
}
