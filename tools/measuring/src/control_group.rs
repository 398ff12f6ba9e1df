//! The control group of a process: its place below the mount of a controller.
//!
//! `/proc/PID/cgroup` has a line `NUMBER:CONTROLLERS:PATH` for each hierarchy. Version 2 has one hierarchy,
//! without names of controllers. `/proc/self/mounts` says where each is mounted.

use std::path::{Path, PathBuf};

/// A control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroup {
    mount: PathBuf,
    inside: String,
}

impl ControlGroup {
    /// The group of the process whose groups these are: of version 2 for an empty controller, else of that
    /// controller of version 1.
    pub fn find(groups: &str, mounts: &str, controller: &str) -> Option<ControlGroup> {
        let names_it = |names: &str| names.split(',').any(|name| name == controller);
        let is_group = |line: &&str| line.split(':').nth(1).is_some_and(names_it);
        let group = groups.lines().find(is_group)?.splitn(3, ':').nth(2)?;
        let mount = mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_it = match fields.as_slice() {
                [_, _, "cgroup2", ..] => controller.is_empty(),
                [_, _, "cgroup", options, ..] => !controller.is_empty() && names_it(options),
                _ => false,
            };
            is_it.then(|| PathBuf::from(fields[1]))
        })?;
        Some(ControlGroup { mount, inside: group.trim_start_matches('/').to_owned() })
    }

    /// Whether it is the group that everything belongs to.
    pub fn is_root(&self) -> bool {
        self.inside.is_empty()
    }

    /// The folder of the kernel that stands for it.
    pub fn folder(&self) -> PathBuf {
        if self.is_root() { self.mount.clone() } else { Path::new(&self.mount).join(&self.inside) }
    }
}
