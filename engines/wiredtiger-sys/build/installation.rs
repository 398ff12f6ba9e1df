//! The installation of WiredTiger on this machine: its header and its library.
//!
//! 1. Folders named by [`HEADER_DIR`] and [`LIB_DIR`] count alone.
//! 2. Otherwise the header lies in one of [`HEADER_FOLDERS`], and the linker finds the library by itself.
//! 3. The version in the header has to be [`VERSION`]: the last series with LSM trees and the calls that the
//!    engine makes. The layout of the structures differs between versions.

use std::path::{Path, PathBuf};

/// Names the folder of `wiredtiger.h`.
pub const HEADER_DIR: &str = "WIREDTIGER_INCLUDE_DIR";
/// Names the folder of the library.
pub const LIB_DIR: &str = "WIREDTIGER_LIB_DIR";
/// The version that the engine is written for.
pub const VERSION: &str = "3.2.";

const HEADER: &str = "wiredtiger.h";
const HEADER_FOLDERS: [&str; 2] = ["/usr/include", "/usr/local/include"];
const CURE: &str = "on Debian and Ubuntu: apt-get install libwiredtiger-dev libclang-dev, or run `make \
                    engine-wiredtiger-library`; elsewhere name the folders of WiredTiger 3.2 by \
                    WIREDTIGER_INCLUDE_DIR and WIREDTIGER_LIB_DIR; or build without the feature engine-wiredtiger";

/// Where the header and the library are.
#[derive(Debug, PartialEq, Eq)]
pub struct Installation {
    /// The header.
    pub header: PathBuf,
    /// `None`: the linker's own folders have the library.
    pub library_folder: Option<PathBuf>,
}

impl Installation {
    /// Looks for the header and checks its version. The error is a sentence with the cure.
    pub fn find(
        header_folder: Option<PathBuf>,
        library_folder: Option<PathBuf>,
    ) -> Result<Installation, String> {
        let folders: Vec<PathBuf> = match header_folder {
            Some(folder) => vec![folder],
            None => HEADER_FOLDERS.iter().map(PathBuf::from).collect(),
        };
        let found = folders.iter().map(|folder| folder.join(HEADER)).find(|header| header.is_file());
        let Some(header) = found else {
            let searched: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
            return Err(format!(
                "the engine wiredtiger needs the library WiredTiger 3.2, and {HEADER} is not in {}: {CURE}",
                searched.join(" or ")
            ));
        };
        check_version(&header)?;
        Ok(Installation { header, library_folder })
    }
}

fn check_version(header: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(header)
        .map_err(|error| format!("cannot read {}: {error}", header.display()))?;
    let line = text.lines().find(|line| line.contains("WIREDTIGER_VERSION_STRING")).unwrap_or_default();
    if line.contains(&format!("WiredTiger {VERSION}")) {
        return Ok(());
    }
    let version = line.split('"').nth(1).unwrap_or("an unknown version");
    Err(format!("{} is of {version}, and the engine needs WiredTiger 3.2: {CURE}", header.display()))
}
