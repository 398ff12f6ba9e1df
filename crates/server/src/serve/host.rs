//! Facts about the machine: name, memory, system. Each is left out where the machine does not tell it.

use std::fs;

use pando_commands::HostFacts;
use rustix::process::{Resource, getrlimit};

/// Finds out what the machine tells.
pub(super) fn facts() -> HostFacts {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let memory_bytes = memory_bytes(&read("/proc/meminfo"));
    let limit = memory_limit(&read("/sys/fs/cgroup/memory.max"));
    HostFacts {
        name: text(names.nodename()),
        memory_bytes,
        memory_limit_bytes: limit.map_or(memory_bytes, |limit| limit.min(memory_bytes)),
        system_name: value_of(&read("/etc/os-release"), "PRETTY_NAME", '=')
            .unwrap_or_else(|| text(names.sysname())),
        kernel_version: text(names.release()),
        processor: value_of(&read("/proc/cpuinfo"), "model name", ':').unwrap_or_default(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        open_files_max: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The value of a line `name = value`, without quotes.
fn value_of(text: &str, name: &str, separator: char) -> Option<String> {
    let found = text.lines().find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        (key.trim() == name).then_some(value)
    })?;
    Some(found.trim().trim_matches('"').to_owned())
}

/// `MemTotal:       16384 kB`.
fn memory_bytes(meminfo: &str) -> u64 {
    let total = value_of(meminfo, "MemTotal", ':').unwrap_or_default();
    total
        .split(' ')
        .next()
        .and_then(|number| number.parse::<u64>().ok())
        .map_or(0, |kilobytes| kilobytes * 1024)
}

/// The limit of the control group; `max` is none.
fn memory_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_the_system_writes_them() {
        assert_eq!(memory_bytes("MemTotal:       16384 kB\nMemFree: 1 kB\n"), 16 << 20);
        assert_eq!(memory_bytes(""), 0);
        assert_eq!(memory_limit("max\n"), None);
        assert_eq!(memory_limit("1048576\n"), Some(1 << 20));
        let release = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(value_of(release, "PRETTY_NAME", '=').unwrap(), "Debian GNU/Linux 12 (bookworm)");
        let found = facts();
        assert!(!found.name.is_empty() && found.memory_bytes > 0 && !found.kernel_version.is_empty());
    }
}
