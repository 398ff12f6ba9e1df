//! The facts of the machine without which a figure does not compare with another.

use super::ProcessId;
use super::disk::Device;
use super::open_files::OpenFiles;
use std::path::{Path, PathBuf};

/// The machine and the device under the data folder. Unknown facts are left out.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Facts {
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Model name of the CPU.
    pub cpu_model: Option<String>,
    /// Hardware threads.
    pub cores: usize,
    /// Memory in kilobytes.
    pub memory_kb: Option<u64>,
    /// Frequency governor of the first core.
    pub governor: Option<String>,
    /// Transparent huge pages: the mode in brackets is on.
    pub huge_pages: Option<String>,
    /// Load averages over 1, 5 and 15 minutes when the run began: is the machine quiet?
    pub load_average: Option<String>,
    /// The data folder.
    pub data_folder: Option<PathBuf>,
    /// Its file system and mount options.
    pub file_system: Option<String>,
    /// Its device: MAJOR:MINOR.
    pub device: Option<String>,
    /// The device's scheduler: the one in brackets is on.
    pub scheduler: Option<String>,
    /// The device's readahead, on which results with buffered reads hang.
    pub read_ahead_kb: Option<u64>,
    /// How the server has its data files open: through the page cache, past it, or mapped into memory.
    #[serde(default)]
    pub open_files: Option<OpenFiles>,
}

impl Facts {
    /// Looks at this machine and at a server's data folder.
    pub fn gather(data_folder: Option<&Path>, server: Option<ProcessId>) -> Facts {
        let device = data_folder.and_then(Device::under);
        let queue = device.and_then(queue_folder);
        let of_queue = |file: &str| queue.as_ref().and_then(|folder| line_of(&folder.join(file)));
        let proc_line = |file: &str, name: &str| value_of(&super::read(Path::new(file)).ok()?, name);
        Facts {
            kernel: line_of(Path::new("/proc/sys/kernel/osrelease")),
            cpu_model: proc_line("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_kb: proc_line("/proc/meminfo", "MemTotal")
                .and_then(|value| value.trim_end_matches("kB").trim().parse().ok()),
            governor: line_of(Path::new("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
            huge_pages: line_of(Path::new("/sys/kernel/mm/transparent_hugepage/enabled")),
            load_average: line_of(Path::new("/proc/loadavg"))
                .map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" ")),
            data_folder: data_folder.map(Path::to_path_buf),
            file_system: data_folder.and_then(file_system),
            device: device.map(|device| device.to_string()),
            scheduler: of_queue("scheduler"),
            read_ahead_kb: of_queue("read_ahead_kb").and_then(|value| value.parse().ok()),
            open_files: data_folder.zip(server).and_then(|(folder, server)| OpenFiles::of(server, folder)),
        }
    }
}

fn line_of(path: &Path) -> Option<String> {
    super::read(path).ok().map(|text| text.trim().to_owned())
}

/// The value of the first line `NAME : VALUE`.
fn value_of(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.into_iter().find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// The queue of a device; a partition has its disk's.
pub fn queue_folder(device: Device) -> Option<PathBuf> {
    let folder = Path::new("/sys/dev/block").join(device.to_string());
    [folder.join("queue"), folder.join("../queue")].into_iter().find(|queue| queue.is_dir())
}

/// Type and options of the file system under a folder.
fn file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    mounted_under(&super::read(Path::new("/proc/self/mounts")).ok()?, &folder)
}

fn mounted_under(mounts: &str, folder: &Path) -> Option<String> {
    let lines = mounts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let under = lines.filter(|fields| fields.len() >= 4 && folder.starts_with(fields[1]));
    // Of mounts at one place the last one is seen.
    under.max_by_key(|fields| fields[1].len()).map(|fields| format!("{} {}", fields[2], fields[3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "/dev/a / ext4 rw 0 0\n/dev/b /data xfs rw,noatime 0 0\n/dev/c /database xfs ro 0 0\n";
        assert_eq!(mounted_under(mounts, Path::new("/data/x")), Some("xfs rw,noatime".into()));
        assert_eq!(mounted_under(mounts, Path::new("/elsewhere")), Some("ext4 rw".into()));
    }

    #[test]
    fn values_are_found_by_name() {
        assert_eq!(value_of("MemTotal:   16 kB\nMemFree: 1 kB\n", "MemTotal"), Some("16 kB".into()));
        assert_eq!(value_of("model name\t: A\nmodel name\t: B\n", "model name"), Some("A".into()));
    }

    #[test]
    fn this_machine_has_a_kernel_and_cores() {
        let facts = Facts::gather(None, None);
        assert!(facts.kernel.is_some() && facts.cores > 0);
    }
}
