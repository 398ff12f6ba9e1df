//! The kernel's page cache: files are taken out of it, so that a cold run is cold.

use crate::error::BenchError;
use rustix::fs::{Advice, fadvise};
use std::path::Path;

/// The kernel's switch that drops all clean pages; for root.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Drops what the page cache holds of a folder whose server has ended. Gives how, in words.
pub fn drop_of(folder: &Path) -> Result<&'static str, BenchError> {
    // Dirty pages are kept: everything is written first.
    rustix::fs::sync();
    if std::fs::write(DROP_CACHES, "3").is_ok() {
        return Ok("the machine's page cache dropped");
    }
    let unreadable = |source| BenchError::ReadFile { path: folder.to_owned(), source };
    advise(folder).map_err(unreadable)?;
    Ok("the page cache of its files given back")
}

fn advise(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            advise(&path)?;
        } else if path.is_file() {
            let file = std::fs::File::open(&path)?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_folder_is_given_back_and_a_folder_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("inner")).expect("it is empty");
        std::fs::write(folder.path().join("inner/data"), [1; 10_000]).expect("writable");
        advise(folder.path()).expect("readable");
        assert!(advise(&folder.path().join("missing")).is_err());
    }
}
