//! The owner of a data folder keeps it where root works there: files that root makes would be root's, so that
//! the server of that user could not open its store any more.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid};
use rustix::process::geteuid;

use crate::error_text::tell_line;

/// Files of a data folder that are root's at its end are given to the owner of the folder.
#[must_use]
pub(crate) struct KeptOwner {
    folder: PathBuf,
    owner: Option<Owner>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    user: u32,
    group: u32,
}

impl KeptOwner {
    /// Of a folder that this process is about to change. Where it is no other user's, or this process is not
    /// root's, nothing happens.
    pub fn of(folder: &Path) -> KeptOwner {
        // A folder that is not there has no owner yet.
        let found = std::fs::metadata(folder).ok().filter(|_| geteuid().is_root());
        let owner = found.map(|found| Owner { user: found.uid(), group: found.gid() });
        KeptOwner { folder: folder.to_owned(), owner: owner.filter(|owner| owner.user != 0) }
    }
}

impl Drop for KeptOwner {
    fn drop(&mut self) {
        let Some(owner) = self.owner else { return };
        let (folder, user) = (self.folder.display(), owner.user);
        if let Err(error) = give_back(&self.folder, owner) {
            tell_line!(
                "pando: files in {folder} that this made as root cannot be given to user {user} ({error}): give them by \
                 chown -R {user}: {folder}, or the server of that user cannot open them"
            );
        }
    }
}

fn give_back(folder: &Path, owner: Owner) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    give_inside(rustix::fs::open(folder, flags, Mode::empty())?, owner)
}

/// Gives what is root's in an open folder, at any depth, to an owner. That user may exchange names meanwhile:
/// so links are not followed, and a file that has a second name, which may lie anywhere, stays root's.
fn give_inside(folder: OwnedFd, owner: Owner) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(owner.user), Gid::from_raw(owner.group));
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&file)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        let is_single = kind == FileType::Directory || found.st_nlink == 1;
        if found.st_uid == 0 && is_single {
            rustix::fs::chownat(&file, c"", Some(user), Some(group), AtFlags::EMPTY_PATH)?;
        }
        if kind == FileType::Directory {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            give_inside(rustix::fs::openat(&folder, name, flags, Mode::empty())?, owner)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::lchown;

    use super::*;

    #[test]
    fn files_that_root_makes_in_the_folder_of_another_are_given_to_that_one() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir_all(data.join("wal")).unwrap();
        if !geteuid().is_root() {
            assert_eq!(KeptOwner::of(&data).owner, None);
            return;
        }
        assert_eq!(KeptOwner::of(&data).owner, None, "it is root's own");
        assert_eq!(KeptOwner::of(&folder.path().join("new")).owner, None);
        lchown(&data, Some(1_000), Some(1_001)).unwrap();
        let kept = KeptOwner::of(&data);
        std::fs::write(data.join("wal/1"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path(), data.join("link")).unwrap();
        std::fs::write(folder.path().join("own"), "x").unwrap();
        std::fs::hard_link(folder.path().join("own"), data.join("second name")).unwrap();
        drop(kept);
        for name in ["wal", "wal/1", "link"] {
            let found = std::fs::symlink_metadata(data.join(name)).unwrap();
            assert_eq!((found.uid(), found.gid()), (1_000, 1_001), "{name}");
        }
        assert_eq!(std::fs::metadata(folder.path()).unwrap().uid(), 0, "a link is not followed");
        assert_eq!(std::fs::metadata(folder.path().join("own")).unwrap().uid(), 0);
    }
}
