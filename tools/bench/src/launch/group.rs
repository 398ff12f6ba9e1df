//! A control group for a started server, version 2 or 1, with its caps; it is removed afterwards.
//!
//! - Version 2 where its root has the controllers that are needed: `memory.max`, `memory.swap.max`, `io.max`.
//! - Else version 1: `memory.limit_in_bytes`, `blkio.throttle.*`. There, buffered writes are not throttled
//!   (they are written back by the kernel, in the root group); reads and direct writes are.
//! - Where the user may not, the message says what to run instead.

use super::Caps;
use super::caps::LimitNames;
use crate::error::{BenchError, unreadable};
use crate::interrupt::{self, Undo};
use pando_measuring::counters::Device;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const VERSION_2: &str = "/sys/fs/cgroup";
/// A process that has ended leaves its group a little later.
const REMOVE_TRIES: u32 = 50;
const REMOVE_STEP: Duration = Duration::from_millis(20);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The folders of a group: one in version 2, one for each controller in version 1.
#[derive(Debug)]
pub struct Group {
    folders: Vec<PathBuf>,
    registered: Vec<interrupt::Registered>,
}

/// A file of a new group, and its text.
struct Setting {
    file: String,
    text: String,
    /// Kernels without swap have no file for it.
    required: bool,
}

impl Group {
    /// Makes a group with these caps; none if there are none.
    pub fn make(caps: Caps, data_folder: Option<&Path>, command: &str) -> Result<Option<Group>, BenchError> {
        if caps.is_none() {
            return Ok(None);
        }
        let device = if caps.io.limits().is_empty() { None } else { Some(device_of(data_folder)?) };
        let mut group = Group { folders: Vec::new(), registered: Vec::new() };
        let made = if has_version_2(caps) {
            group.make_version_2(caps, device)
        } else {
            group.make_version_1(caps, device)
        };
        match made {
            Ok(()) => Ok(Some(group)),
            Err((path, source)) => Err(BenchError::Cap { path, advice: advice(caps, command), source }),
        }
    }

    /// The commands by which a shell enters it.
    pub fn enter_command(&self) -> String {
        let enter = |folder: &PathBuf| format!("echo $$ > {}/cgroup.procs && ", folder.display());
        self.folders.iter().map(enter).collect()
    }

    fn make_version_2(
        &mut self,
        caps: Caps,
        device: Option<Device>,
    ) -> Result<(), (PathBuf, std::io::Error)> {
        let root = Path::new(VERSION_2);
        let controllers = if device.is_some() { "+memory +io" } else { "+memory" };
        write(&root.join("cgroup.subtree_control"), controllers)?;
        let mut settings = Vec::new();
        if let Some(bytes) = caps.memory_bytes {
            settings.push(Setting { file: "memory.max".into(), text: bytes.to_string(), required: true });
            settings.push(Setting { file: "memory.swap.max".into(), text: "0".into(), required: false });
        }
        if let Some(device) = device {
            let limits = caps.io.limits();
            let limits: Vec<String> =
                limits.iter().map(|(names, limit)| format!("{}={limit}", names.group_2)).collect();
            let text = format!("{device} {}", limits.join(" "));
            settings.push(Setting { file: "io.max".into(), text, required: true });
        }
        self.add_folder(root, &settings)
    }

    fn make_version_1(
        &mut self,
        caps: Caps,
        device: Option<Device>,
    ) -> Result<(), (PathBuf, std::io::Error)> {
        if let Some(bytes) = caps.memory_bytes {
            let text = bytes.to_string();
            let settings = [
                Setting { file: "memory.limit_in_bytes".into(), text: text.clone(), required: true },
                Setting { file: "memory.memsw.limit_in_bytes".into(), text, required: false },
            ];
            self.add_folder(&Path::new(VERSION_2).join("memory"), &settings)?;
        }
        if let Some(device) = device {
            let setting = |(names, limit): (LimitNames, u64)| Setting {
                file: format!("blkio.throttle.{}_device", names.group_1),
                text: format!("{device} {limit}"),
                required: true,
            };
            let settings: Vec<Setting> = caps.io.limits().into_iter().map(setting).collect();
            self.add_folder(&Path::new(VERSION_2).join("blkio"), &settings)?;
        }
        Ok(())
    }

    fn add_folder(&mut self, parent: &Path, settings: &[Setting]) -> Result<(), (PathBuf, std::io::Error)> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("pando-bench-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).map_err(|source| (folder.clone(), source))?;
        self.registered.push(interrupt::register(Undo::RemoveGroup(folder.clone())));
        self.folders.push(folder.clone());
        for setting in settings {
            match write(&folder.join(&setting.file), &setting.text) {
                Err(error) if setting.required => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            let mut tries = 0;
            while std::fs::remove_dir(folder).is_err() && tries < REMOVE_TRIES {
                tries += 1;
                std::thread::sleep(REMOVE_STEP);
            }
        }
        self.registered.clear();
    }
}

fn write(path: &Path, text: &str) -> Result<(), (PathBuf, std::io::Error)> {
    std::fs::write(path, text).map_err(|source| (path.to_owned(), source))
}

fn device_of(data_folder: Option<&Path>) -> Result<Device, BenchError> {
    // A folder that the server will make is on the device of the first folder above it that is there.
    let given = data_folder.unwrap_or(Path::new("."));
    // A relative path has no ancestors above the working folder.
    let folder = std::path::absolute(given).map_err(unreadable(given))?;
    folder.ancestors().find_map(Device::under).ok_or_else(|| BenchError::Option {
        option: "io-cap",
        cause: format!("{} is on no block device: name the data folder by --data-dir", folder.display()),
    })
}

fn has_version_2(caps: Caps) -> bool {
    let text = std::fs::read_to_string(Path::new(VERSION_2).join("cgroup.controllers")).unwrap_or_default();
    let has = |name| text.split_whitespace().any(|controller| controller == name);
    has("memory") && (caps.io.limits().is_empty() || has("io"))
}

/// The command to use where this tool may not make a group.
fn advice(caps: Caps, command: &str) -> String {
    let mut properties = Vec::new();
    properties.extend(caps.memory_bytes.map(|bytes| format!("-p MemoryMax={bytes} -p MemorySwapMax=0")));
    let limits = caps.io.limits();
    properties
        .extend(limits.iter().map(|(names, limit)| format!("-p \"{}=/dev/DEVICE {limit}\"", names.systemd)));
    format!("sudo systemd-run --scope {} {command}", properties.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_has_every_cap_and_the_command() {
        let io = "200riops|20MBps".parse().expect("a cap");
        let text = advice(Caps { memory_bytes: Some(640_000_000), io }, "mongod --port 7");
        for part in
            ["MemoryMax=640000000", "IOReadIOPSMax=/dev/DEVICE 200", "IOWriteBandwidthMax", "mongod --port 7"]
        {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_relative_folder_that_the_server_will_make_is_on_the_device_of_the_working_folder() {
        let device = |folder: &Path| device_of(Some(folder)).ok().map(|device| device.to_string());
        let here = std::env::current_dir().expect("it is there");
        assert_eq!(device(Path::new("no-such-folder/below")), device(&here));
    }

    #[test]
    fn a_group_with_a_cap_is_made_and_removed_or_refused_with_advice() {
        let caps = Caps { memory_bytes: Some(64_000_000), ..Caps::default() };
        match Group::make(caps, None, "server") {
            Ok(group) => {
                let group = group.expect("there is a cap");
                let folder = group.folders[0].clone();
                assert!(folder.is_dir() && group.enter_command().contains("cgroup.procs"));
                drop(group);
                assert!(!folder.exists());
            }
            Err(error) => assert!(error.to_string().contains("systemd-run"), "{error}"),
        }
    }
}
