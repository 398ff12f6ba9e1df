//! Backups of an open store.

use std::path::{Path, PathBuf};

use bson::doc;

use crate::reply::number;
use crate::results::BackupResult;
use crate::{Error, Pando};

/// A backup of the whole store into a folder, as of one commit, while other calls go on.
#[must_use = "an action does nothing until it is run"]
pub struct Backup<'s> {
    store: &'s Pando,
    to: PathBuf,
    since: Option<PathBuf>,
}

impl<'s> Backup<'s> {
    pub(crate) fn new(store: &'s Pando, to: PathBuf) -> Backup<'s> {
        Backup { store, to, since: None }
    }

    /// Leaves out the content of this earlier backup: both are needed for a restore then. Only the engine
    /// betree has such backups.
    pub fn since(mut self, earlier: impl AsRef<Path>) -> Self {
        self.since = Some(earlier.as_ref().to_owned());
        self
    }

    /// Makes the backup. When this returns, it is on the device.
    ///
    /// # Errors
    /// A folder that is not empty or cannot be written; an earlier backup of another store; an engine without
    /// backups; a closed store.
    pub fn run(self) -> Result<BackupResult, Error> {
        let mut command = doc! { "pandoBackup": 1, "to": whole_path(&self.to)? };
        if let Some(earlier) = &self.since {
            command.insert("since", whole_path(earlier)?);
        }
        let reply = self.store.run("admin", command)?;
        let incremental = reply.get_bool("incremental").unwrap_or(false);
        Ok(BackupResult { bytes: number(&reply, "bytes"), incremental })
    }
}

/// A path from the root on, as the command has it.
fn whole_path(path: &Path) -> Result<String, Error> {
    let whole = std::path::absolute(path).map_err(|error| {
        Error::InvalidArgument(format!("the folder '{}' of a backup: {error}", path.display()))
    })?;
    whole.into_os_string().into_string().map_err(|path| {
        let path = Path::new(&path).display();
        Error::InvalidArgument(format!("the folder {path} of a backup has a name that is not UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use pando_environment::Environment;

    use super::*;
    use crate::{EngineName, Options};

    #[test]
    fn a_second_backup_into_a_folder_is_told_of_the_first() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let to = parent.path().join("backup");
        std::fs::create_dir(&to).expect("a folder");
        for engine in [EngineName::Betree, EngineName::Memory] {
            let options = Options { engine, ..Options::default() };
            let store = Pando::open_with(parent.path().join("store"), &options).expect("a store");
            // As the first backup does while it writes.
            let _first = Environment::real().files().lock(&to).expect("the folder is free");
            let refused = store.backup(&to).run().expect_err("the folder is taken").to_string();
            let told = format!("another backup writes to {}: wait for it, or name", to.display());
            assert!(refused.contains(&told), "{engine:?}: {refused}");
        }
    }
}
