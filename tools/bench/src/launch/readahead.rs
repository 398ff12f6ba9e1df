//! The readahead of a device, which may be changed for some runs and is set back afterwards.
//!
//! A file keeps the readahead that its device had when the file was opened, so a server must be started anew
//! to notice a change.

use crate::error::{BenchError, read_text};
use crate::interrupt::{self, Undo};
use pando_measuring::counters::{Device, queue_folder};
use std::path::{Path, PathBuf};

/// A readahead that was changed, until it is dropped.
#[derive(Debug)]
pub struct Readahead {
    file: PathBuf,
    before: String,
    _registered: interrupt::Registered,
}

impl Readahead {
    /// Sets the readahead of the device under a folder, in kilobytes.
    pub fn set(folder: &Path, kilobytes: u32) -> Result<Readahead, BenchError> {
        let file = Device::under(folder).and_then(queue_folder).map(|queue| queue.join("read_ahead_kb"));
        let file = file.ok_or_else(|| BenchError::Option {
            option: "readahead-sweep",
            cause: format!("{} is on no device whose readahead is known", folder.display()),
        })?;
        let before = read_text(&file)?;
        let registered = interrupt::register(Undo::Write(file.clone(), before.clone()));
        std::fs::write(&file, kilobytes.to_string()).map_err(|source| BenchError::KernelSetting {
            advice: format!("echo {kilobytes} > {}", file.display()),
            path: file.clone(),
            source,
        })?;
        Ok(Readahead { file, before, _registered: registered })
    }
}

impl Drop for Readahead {
    fn drop(&mut self) {
        if std::fs::write(&self.file, &self.before).is_err() {
            err_line!("could not set {} back to {}", self.file.display(), self.before.trim());
        }
    }
}
