//! A data folder with the keys of its store.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use pando_encryption::Encryption;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFolder {
    path: PathBuf,
    /// The keys, if the store is encrypted.
    pub encryption: Option<Encryption>,
}

impl DataFolder {
    /// A folder of a store that is or becomes encrypted with these keys, or of a plain one.
    pub fn new(path: impl Into<PathBuf>, encryption: Option<Encryption>) -> DataFolder {
        DataFolder { path: path.into(), encryption }
    }
}

impl From<&str> for DataFolder {
    fn from(path: &str) -> DataFolder {
        DataFolder::new(path, None)
    }
}

impl AsRef<Path> for DataFolder {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl Deref for DataFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}
