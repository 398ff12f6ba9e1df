//! The kernel's page cache of files whose server has ended, or has not begun.

use rustix::fs::{Advice, fadvise};
use std::path::Path;

/// Brings the files of a folder and of those in it to the device, and takes them out of the page cache.
pub fn forget(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            forget(&path)?;
        } else if path.is_file() {
            let file = std::fs::File::open(&path)?;
            // Dirty pages would stay.
            file.sync_data()?;
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
        forget(folder.path()).expect("readable");
        assert!(forget(&folder.path().join("missing")).is_err());
    }
}
