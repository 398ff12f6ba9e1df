//! The folders of the simulated disk: the names, and the operations on them that a power cut may undo.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::SeededRandom;

/// A file's number, which no rename changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct InodeNumber(pub(super) u64);

type Names = BTreeMap<PathBuf, InodeNumber>;

/// A change that is durable only when its folder is synced.
#[derive(Clone)]
enum Change {
    Link {
        path: PathBuf,
        inode: InodeNumber,
    },
    Unlink {
        path: PathBuf,
    },
    /// Atomic: both names change or none.
    Rename {
        from: PathBuf,
        to: PathBuf,
        inode: InodeNumber,
    },
    CreateFolder {
        path: PathBuf,
    },
}

impl Change {
    fn touches(&self, folder: &Path) -> bool {
        match self {
            Change::Link { path, .. } | Change::Unlink { path } | Change::CreateFolder { path } => {
                path.parent() == Some(folder)
            }
            Change::Rename { from, to, .. } => from.parent() == Some(folder) || to.parent() == Some(folder),
        }
    }

    fn apply(&self, names: &mut Names, folders: &mut BTreeSet<PathBuf>) {
        match self {
            Change::Link { path, inode } => {
                names.insert(path.clone(), *inode);
            }
            Change::Unlink { path } => {
                names.remove(path);
            }
            Change::Rename { from, to, inode } => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
            Change::CreateFolder { path } => {
                folders.insert(path.clone());
            }
        }
    }
}

#[derive(Clone, Default)]
pub(super) struct Namespace {
    names: Names,
    folders: BTreeSet<PathBuf>,
    durable_names: Names,
    durable_folders: BTreeSet<PathBuf>,
    /// In the order they were made.
    unsynced: Vec<Change>,
}

impl Namespace {
    pub(super) fn find(&self, path: &Path) -> Option<InodeNumber> {
        self.names.get(path).copied()
    }

    pub(super) fn has_folder(&self, path: &Path) -> bool {
        // The root and the folder that relative paths begin in are always there.
        path.parent().is_none() || path.as_os_str().is_empty() || self.folders.contains(path)
    }

    pub(super) fn inodes(&self) -> BTreeSet<InodeNumber> {
        self.names.values().copied().collect()
    }

    pub(super) fn list(&self, folder: &Path) -> Vec<String> {
        let children = self.names.keys().chain(&self.folders).filter(|path| path.parent() == Some(folder));
        let mut names: Vec<String> =
            children.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
        names.sort_unstable();
        names
    }

    pub(super) fn link(&mut self, path: &Path, inode: InodeNumber) {
        self.change(Change::Link { path: path.to_owned(), inode });
    }

    pub(super) fn unlink(&mut self, path: &Path) {
        self.change(Change::Unlink { path: path.to_owned() });
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, inode: InodeNumber) {
        self.change(Change::Rename { from: from.to_owned(), to: to.to_owned(), inode });
    }

    pub(super) fn create_folder(&mut self, path: &Path) {
        let ancestors: Vec<&Path> = path.ancestors().collect();
        for folder in ancestors.into_iter().rev() {
            if !self.has_folder(folder) {
                self.change(Change::CreateFolder { path: folder.to_owned() });
            }
        }
    }

    pub(super) fn sync(&mut self, folder: &Path) {
        let (synced, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.unsynced).into_iter().partition(|change| change.touches(folder));
        self.unsynced = rest;
        for change in synced {
            change.apply(&mut self.durable_names, &mut self.durable_folders);
        }
    }

    pub(super) fn crash(&mut self, random: &SeededRandom) {
        for change in std::mem::take(&mut self.unsynced) {
            // A new folder always survives here: the creation of a test folder is not the store's affair.
            if matches!(change, Change::CreateFolder { .. }) || random.below(2) == 0 {
                change.apply(&mut self.durable_names, &mut self.durable_folders);
            }
        }
        self.names = self.durable_names.clone();
        self.folders = self.durable_folders.clone();
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names, &mut self.folders);
        self.unsynced.push(change);
    }
}
