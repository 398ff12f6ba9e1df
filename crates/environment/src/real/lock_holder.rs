//! The process that has a file locked: by the kernel's list of locks, where it has the file, else by the
//! number in the lock file. That one is written after the lock is taken, so that for a moment it is the
//! number of the process before, which may have ended.

use std::fs;
use std::io::{Read, Seek};
use std::os::unix::fs::MetadataExt;

/// The list (proc(5)): a line for each lock, such as `1: FLOCK  ADVISORY  WRITE 812 fd:00:1316 0 EOF`, with
/// the process, and the device and inode of the file.
const LOCKS: &str = "/proc/locks";

/// The number of the process that has the file locked, where that is known.
pub(super) fn of(locked: &fs::File) -> Option<u32> {
    let file = locked.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", file.ino());
    holder_in(&fs::read_to_string(LOCKS).ok()?, &place)
}

/// The process of the lock at a place.
fn holder_in(locks: &str, place: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip_while(|word| *word != "FLOCK");
        let (_kind, _advisory, _access) = (words.next()?, words.next()?, words.next()?);
        // Of another PID namespace it is 0 or less.
        let pid = words.next()?.parse().ok().filter(|pid| *pid > 0);
        (words.next()? == place).then_some(pid)?
    })
}

/// The number in a lock file.
pub(super) fn written_in(file: &mut fs::File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_by_the_place_of_the_file() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fd:00:1316 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 812 fd:00:1316 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 9 fd:00:99 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 0 fd:00:13 0 EOF\n\
                     4: FLOCK\n";
        assert_eq!(holder_in(locks, "fd:00:1316"), Some(812));
        assert_eq!((holder_in(locks, "fd:00:13"), holder_in(locks, "fd:00:131")), (None, None));
    }

    #[test]
    fn a_number_that_an_earlier_process_has_left_is_not_taken_for_the_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("LOCK");
        fs::write(&path, "1").unwrap();
        let held = fs::File::open(&path).unwrap();
        held.lock().unwrap();
        let mut other = fs::File::open(&path).unwrap();
        assert_eq!(written_in(&mut other), Some(1));
        // Where the machine has no list of locks, or not of this file system, nothing is known.
        assert!(of(&other).is_none_or(|pid| pid == std::process::id()));
        drop(held);
        assert_eq!(of(&other), None);
    }
}
