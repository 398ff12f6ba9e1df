//! Facts about the machine: name, memory, system. Each is left out where the machine does not tell it.

use std::fs;
use std::path::Path;

use pando_commands::HostFacts;
use rustix::process::{Resource, getrlimit};

/// Finds out what the machine tells.
pub(super) fn facts() -> HostFacts {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let memory_bytes = memory_bytes(&read("/proc/meminfo"));
    let limit = memory_limit(&read("/proc/self/cgroup"), read);
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

/// The least limit of memory of the control groups that the process is in, such as that of a systemd unit and
/// of its slice. A container without a view of the groups around it has its own at the root.
///
/// `groups` is the text of `/proc/self/cgroup`: `0::/system.slice/pando.service` for version 2,
/// `4:memory:/docker/1` for version 1. A limit `max` is none.
fn memory_limit(groups: &str, read: impl Fn(&str) -> String) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let groups = Path::new(path).ancestors().filter_map(Path::to_str);
        groups
            .filter_map(|group| {
                read(&format!("{root}{}/{file}", group.trim_end_matches('/'))).trim().parse::<u64>().ok()
            })
            .min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_up_the_tree_of_control_groups_counts() {
        let files = [
            ("/sys/fs/cgroup/system.slice/pando.service/memory.max", "2097152\n"),
            ("/sys/fs/cgroup/system.slice/free.service/memory.max", "max\n"),
            ("/sys/fs/cgroup/system.slice/memory.max", "4194304\n"),
            ("/sys/fs/cgroup/box/memory.max", "max\n"),
            ("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "1048576\n"),
        ];
        let read = |path: &str| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map_or_else(String::new, |(_, text)| (*text).to_owned())
        };
        let limit = |groups: &str| memory_limit(groups, read);
        assert_eq!(limit("0::/system.slice/pando.service\n"), Some(2 << 20));
        assert_eq!(limit("0::/system.slice/free.service\n"), Some(4 << 20), "that of its slice");
        assert_eq!(limit("0::/box\n"), None);
        assert_eq!(limit("5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/docker/1\n"), Some(1 << 20));
        assert_eq!(limit(""), None);
        // A container sees its own group as the root.
        let own = |path: &str| {
            if path == "/sys/fs/cgroup/memory.max" { "1048576\n".to_owned() } else { String::new() }
        };
        assert_eq!(memory_limit("0::/\n", own), Some(1 << 20));
        assert_eq!(memory_limit("0::/docker/1\n", own), Some(1 << 20));
    }

    #[test]
    fn facts_are_read_as_the_system_writes_them() {
        assert_eq!(memory_bytes("MemTotal:       16384 kB\nMemFree: 1 kB\n"), 16 << 20);
        assert_eq!(memory_bytes(""), 0);
        let release = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(value_of(release, "PRETTY_NAME", '=').unwrap(), "Debian GNU/Linux 12 (bookworm)");
        let found = facts();
        assert!(!found.name.is_empty() && found.memory_bytes > 0 && !found.kernel_version.is_empty());
    }
}
