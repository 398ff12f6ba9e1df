//! The figures of the machine: processor times, memory, disks, faults, as Linux counts them since its start.
//!
//! They come from `/proc/stat`, `/proc/meminfo`, `/proc/diskstats` and `/proc/vmstat`. Figures that the
//! system does not tell are missing.

use std::path::Path;

/// The counters of a disk in `/proc/diskstats`, in order.
const DISK_COUNTERS: [&str; 11] = [
    "reads",
    "reads_merged",
    "read_sectors",
    "read_time_ms",
    "writes",
    "writes_merged",
    "write_sectors",
    "write_time_ms",
    "io_in_progress",
    "io_time_ms",
    "io_queued_ms",
];

/// Kinds of processor time in `/proc/stat`, in order.
const PROCESSOR_TIMES: [&str; 10] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];

/// The other counters of `/proc/stat`.
const SYSTEM_COUNTERS: [&str; 5] = ["ctxt", "btime", "processes", "procs_running", "procs_blocked"];

/// The sizes of `/proc/meminfo` that are told.
const MEMORY_SIZES: [&str; 15] = [
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "SwapCached",
    "Active",
    "Inactive",
    "Active(anon)",
    "Inactive(anon)",
    "Active(file)",
    "Inactive(file)",
    "SwapTotal",
    "SwapFree",
    "Dirty",
];

/// The counters of `/proc/vmstat` that are told.
const MEMORY_EVENTS: [&str; 8] = [
    "nr_mlock",
    "pswpin",
    "pswpout",
    "pgfault",
    "pgmajfault",
    "numa_pages_migrated",
    "balloon_inflate",
    "balloon_deflate",
];

/// Names with their figures.
type Figures = Vec<(&'static str, u64)>;

/// The figures at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFigures {
    /// Processors.
    pub processors: u64,
    /// Time of all processors by kind, in milliseconds.
    pub processor_ms: Figures,
    /// Context switches, the start of the system in seconds of Unix time, processes.
    pub system: Figures,
    /// Sizes in kilobytes.
    pub memory_kb: Figures,
    /// Physical disks, whole, with their counters.
    pub disks: Vec<(String, Figures)>,
    /// Page faults and the like.
    pub memory_events: Figures,
}

/// Asks for the figures.
pub fn machine_figures() -> MachineFigures {
    let text = |name: &str| std::fs::read_to_string(format!("/proc/{name}")).unwrap_or_default();
    let disks = physical_disks(Path::new("/sys/block"));
    let mut figures = MachineFigures::default();
    add_processors(&text("stat"), ticks_per_second(), &mut figures);
    figures.memory_kb = chosen(&text("meminfo"), &MEMORY_SIZES);
    figures.memory_events = chosen(&text("vmstat"), &MEMORY_EVENTS);
    figures.disks = disk_counters(&text("diskstats"), &disks);
    figures
}

fn ticks_per_second() -> u64 {
    // SAFETY: the call has no memory of ours.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|ticks| *ticks > 0).unwrap_or(100)
}

fn add_processors(stat: &str, ticks_per_second: u64, figures: &mut MachineFigures) {
    for line in stat.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        let mut numbers = words.map(|word| word.parse::<u64>().unwrap_or(0));
        if name == "cpu" {
            let millis = |ticks: u64| ticks.saturating_mul(1000) / ticks_per_second;
            figures.processor_ms = PROCESSOR_TIMES.into_iter().zip(numbers.map(millis)).collect();
        } else if name.starts_with("cpu") {
            figures.processors += 1;
        } else if let Some(name) = SYSTEM_COUNTERS.into_iter().find(|known| *known == name) {
            figures.system.push((name, numbers.next().unwrap_or(0)));
        }
    }
}

/// The wanted ones of lines such as `MemTotal:  24684084 kB` and `pgfault 912`.
fn chosen(text: &str, wanted: &[&'static str]) -> Figures {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let name = words.next()?.trim_end_matches(':');
            let known = wanted.iter().find(|known| **known == name)?;
            Some((*known, words.next()?.parse().ok()?))
        })
        .collect()
}

/// The names of the block devices that have hardware, or a virtual machine's stand-in for it, beneath.
///
/// Loop devices, mapped volumes and RAID sets have none: what they read and write is counted in the disks
/// that they lie on, and MongoDB does not tell them either.
fn physical_disks(block_devices: &Path) -> Vec<String> {
    let Ok(found) = std::fs::read_dir(block_devices) else { return Vec::new() };
    found
        .flatten()
        .filter(|entry| entry.path().join("device").exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// The counters of the disks of these names that were ever used.
fn disk_counters(text: &str, disks: &[String]) -> Vec<(String, Figures)> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace().skip(2);
            let name = words.next().filter(|name| disks.iter().any(|disk| disk == name))?;
            let numbers = words.map(|word| word.parse::<u64>().unwrap_or(0));
            let counters: Figures = DISK_COUNTERS.into_iter().zip(numbers).collect();
            let is_used = counters.iter().any(|(_, number)| *number > 0);
            is_used.then(|| (name.to_owned(), counters))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_become_figures() {
        let stat = "cpu  100 2 30 400 5 0 6 7 0 0\ncpu0 50 1 15 200 2 0 3 3 0 0\ncpu1 50 1 15 200 3 0 3 4 0 0\n\
                    intr 5 6 7\nctxt 99\nbtime 17\nprocesses 12\nprocs_running 2\nprocs_blocked 1\n";
        let mut figures = MachineFigures::default();
        add_processors(stat, 100, &mut figures);
        assert_eq!(figures.processors, 2);
        assert_eq!(figures.processor_ms[..2], [("user", 1000), ("nice", 20)]);
        assert_eq!(figures.processor_ms.len(), 10);
        assert_eq!(figures.system[..2], [("ctxt", 99), ("btime", 17)]);
        let memory =
            chosen("MemTotal:  24684084 kB\nHugePages_Total: 0\nActive(anon): 184 kB\n", &MEMORY_SIZES);
        assert_eq!(memory, [("MemTotal", 24_684_084), ("Active(anon)", 184)]);
    }

    #[test]
    fn disks_are_told_without_their_partitions_and_those_that_were_never_used() {
        let text = "254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13\n254 1 vda1 1 2 3 4 5 6 7 8 9 10 11\n7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n";
        let disks = disk_counters(text, &["vda".to_owned(), "loop0".to_owned()]);
        assert_eq!(disks.len(), 1);
        assert_eq!(disks[0].0, "vda");
        assert_eq!((disks[0].1[0], disks[0].1[10]), (("reads", 1), ("io_queued_ms", 11)));
    }

    #[test]
    fn devices_without_hardware_are_no_disks() {
        let block_devices = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(block_devices.path().join("vda/device")).unwrap();
        std::fs::create_dir_all(block_devices.path().join("loop0/queue")).unwrap();
        assert_eq!(physical_disks(block_devices.path()), ["vda"]);
        assert!(physical_disks(&block_devices.path().join("missing")).is_empty());
    }

    #[test]
    fn this_machine_has_processors_and_memory() {
        let figures = machine_figures();
        assert!(figures.processors > 0 && !figures.processor_ms.is_empty(), "{figures:?}");
        assert!(figures.memory_kb.iter().any(|(name, size)| *name == "MemTotal" && *size > 0), "{figures:?}");
    }
}
