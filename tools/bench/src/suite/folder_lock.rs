//! The lock of a suite's folder: one call at a time goes through it. A second one would end the server of the
//! first as left behind, and overwrite its progress.
//!
//! It is an advisory lock on a file in the folder. The kernel releases it when the process ends, however it
//! ends, so that a killed call does not keep the next one out. The file stays, and has the number of the
//! process that locked it last.

use crate::error::{BenchError, unwritable};
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

const FILE: &str = "suite.lock";

/// Holds a folder until it is dropped.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes a folder, which is there; refused while another process has it. `option` is the argument that
    /// names the folder.
    pub fn take(folder: &Path, option: &'static str) -> Result<FolderLock, BenchError> {
        let path = folder.join(FILE);
        let mut options = File::options();
        let opened = options.read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(unwritable(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut process = String::new();
                // The number is advice: without it the refusal says less.
                let _ = file.read_to_string(&mut process);
                let process = process.trim();
                let who = if process.is_empty() { String::new() } else { format!(" (pid {process})") };
                let cause = format!(
                    "another call{who} is using {}: wait until it has ended, or name another folder",
                    folder.display()
                );
                return Err(BenchError::option(option, cause));
            }
            Err(TryLockError::Error(source)) => return Err(unwritable(&path)(source)),
        }
        let noted = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        noted.map_err(unwritable(&path))?;
        Ok(FolderLock { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_taken_by_one_at_a_time_and_free_when_that_one_ends() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let first = FolderLock::take(folder.path(), "out").expect("nobody has it");
        let error = FolderLock::take(folder.path(), "out").expect_err("it is taken").to_string();
        let who = format!("--out: another call (pid {}) is using ", std::process::id());
        assert!(error.starts_with(&who), "{error}");
        drop(first);
        FolderLock::take(folder.path(), "out").expect("it is free again");
    }
}
