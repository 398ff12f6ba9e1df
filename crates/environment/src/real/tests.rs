//! Tests of the real files, on the file systems that the machine has.

use super::*;
use crate::AlignedBuffer;

fn fixture() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn written_bytes_are_read_back_by_direct_and_by_buffered_access() {
    let folder = fixture();
    for (name, access) in [("direct", Access::Direct), ("buffered", Access::Buffered)] {
        let path = folder.path().join(name);
        let file = RealFileSystem.open(&path, OpenMode::CreateNew, access).unwrap();
        let mut buffer = AlignedBuffer::zeroed(8_192);
        buffer.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
        file.write_all_at(&buffer, 4_096).unwrap();
        file.sync_data().unwrap();
        let unit = file.alignment().max(512);
        let mut read = AlignedBuffer::zeroed(unit);
        file.read_exact_at(&mut read, 4_096 + unit as u64).unwrap();
        assert_eq!(&read[..], &buffer[unit..2 * unit], "{name}");
        assert_eq!(file.length().unwrap(), 12_288);
    }
}

#[test]
fn a_file_system_without_direct_access_gives_buffered_access_and_says_so() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let path = folder.path().join("file");
    let file = RealFileSystem.open(&path, OpenMode::CreateNew, Access::Direct).unwrap();
    // Newer kernels give tmpfs direct access; both answers are right as long as they are true.
    match file.access() {
        Access::Buffered => assert_eq!(file.alignment(), 1),
        Access::Direct => assert!(file.alignment() >= 512),
    }
    let mut block = AlignedBuffer::zeroed(4_096);
    block[7] = 7;
    file.write_all_at(&block, 0).unwrap();
    let mut read = AlignedBuffer::zeroed(4_096);
    file.read_exact_at(&mut read, 0).unwrap();
    assert_eq!(read[7], 7);
}

#[test]
fn a_read_past_the_end_is_told_apart_from_other_errors() {
    let folder = fixture();
    let file = RealFileSystem.open(&folder.path().join("f"), OpenMode::CreateNew, Access::Buffered).unwrap();
    file.write_all_at(b"abc", 0).unwrap();
    let error = file.read_exact_at(&mut [0; 4], 0).unwrap_err();
    assert!(error.is_past_end(), "{error}");
    let missing = RealFileSystem.open(&folder.path().join("g"), OpenMode::ReadOnly, Access::Buffered);
    assert!(missing.err().unwrap().is_not_found());
}

#[test]
fn a_locked_folder_is_refused_with_the_holder_until_the_lock_is_dropped() {
    let folder = fixture();
    let lock = RealFileSystem.lock(folder.path()).unwrap();
    let error = RealFileSystem.lock(folder.path()).unwrap_err();
    match &error {
        EnvironmentError::Locked { pid, .. } => assert_eq!(*pid, Some(std::process::id())),
        EnvironmentError::Io { .. } | EnvironmentError::Replaced { .. } => panic!("{error}"),
    }
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    drop(lock);
    RealFileSystem.lock(folder.path()).unwrap();
}

#[test]
fn a_lock_to_read_changes_nothing_and_excludes_the_other_lock() {
    let folder = fixture();
    for has_file in [false, true] {
        let lock = RealFileSystem.lock_to_read(folder.path()).unwrap();
        assert_eq!(folder.path().join(LOCK_FILE).exists(), has_file);
        let refused = RealFileSystem.lock(folder.path()).unwrap_err();
        assert!(matches!(refused, EnvironmentError::Locked { .. }), "{refused}");
        drop(lock);
        let lock = RealFileSystem.lock(folder.path()).unwrap();
        let refused = RealFileSystem.lock_to_read(folder.path()).unwrap_err();
        assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");
        drop(lock);
    }
}

#[test]
fn a_lock_file_that_takes_no_number_of_the_process_keeps_no_folder_closed() {
    let folder = fixture();
    let path = folder.path().join(LOCK_FILE);
    // A pipe has no length, so that this call fails as every write to a full disk does.
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .unwrap();
    let lock = RealFileSystem.lock(folder.path()).unwrap();
    let opened = fs::File::open(folder.path()).unwrap();
    assert!(matches!(opened.try_lock(), Err(fs::TryLockError::WouldBlock)));
    drop(lock);
}

#[test]
fn a_link_in_the_place_of_a_lock_file_is_not_followed() {
    let folder = fixture();
    let other = folder.path().join("other");
    fs::write(&other, "content").unwrap();
    std::os::unix::fs::symlink(&other, folder.path().join(LOCK_FILE)).unwrap();
    assert!(RealFileSystem.lock(folder.path()).is_err());
    assert!(RealFileSystem.lock_to_read(folder.path()).is_err());
    assert_eq!(fs::read_to_string(&other).unwrap(), "content");
}

#[test]
fn a_folder_whose_lock_file_was_removed_is_still_locked() {
    let folder = fixture();
    let lock = RealFileSystem.lock(folder.path()).unwrap();
    std::fs::remove_file(folder.path().join(LOCK_FILE)).unwrap();
    for _ in 0..2 {
        let error = RealFileSystem.lock(folder.path()).unwrap_err();
        assert!(matches!(error, EnvironmentError::Locked { .. }), "{error}");
    }
    drop(lock);
    RealFileSystem.lock(folder.path()).unwrap();
}

#[test]
fn folders_are_listed_sorted_and_files_renamed_and_removed() {
    let folder = fixture();
    let inner = folder.path().join("a/b");
    RealFileSystem.create_dir(&inner).unwrap();
    RealFileSystem.create_dir(&inner).unwrap();
    for name in ["2", "1", "3"] {
        RealFileSystem.open(&inner.join(name), OpenMode::CreateNew, Access::Buffered).unwrap();
    }
    RealFileSystem.rename(&inner.join("3"), &inner.join("0")).unwrap();
    RealFileSystem.remove(&inner.join("2")).unwrap();
    RealFileSystem.sync_dir(&inner).unwrap();
    assert_eq!(RealFileSystem.list(&inner).unwrap(), ["0", "1"]);
    assert!(RealFileSystem.exists(&inner.join("0")).unwrap());
    assert!(!RealFileSystem.exists(&inner.join("2")).unwrap());
    assert!(RealFileSystem.free_bytes(&inner).unwrap() > 0);
}

#[test]
fn room_is_reserved_and_given_back_without_changing_what_lies_beside_it() {
    let folder = fixture();
    let file = RealFileSystem.open(&folder.path().join("f"), OpenMode::CreateNew, Access::Buffered).unwrap();
    file.allocate(0, 1 << 20).unwrap();
    assert_eq!(file.length().unwrap(), 1 << 20);
    file.write_all_at(&[5; 12_288], 0).unwrap();
    file.punch_hole(4_096, 4_096).unwrap();
    let mut read = [0; 12_288];
    file.read_exact_at(&mut read, 0).unwrap();
    assert_eq!((read[4_095], read[8_192]), (5, 5));
    file.set_length(100).unwrap();
    assert_eq!(file.length().unwrap(), 100);
}

#[test]
fn temporary_files_leave_some_to_others() {
    for (limit, first_refused) in [(1024, 960), (300, 236), (64, 48), (3, 3)] {
        assert!(leaves_files(first_refused - 1, Some(limit)), "{limit}");
        assert!(!leaves_files(first_refused, Some(limit)), "{limit}");
    }
    assert!(leaves_files(100_000, None));
}

#[test]
fn a_folder_that_is_a_link_to_nothing_is_named_so() {
    let folder = fixture();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("absent"), &link).unwrap();
    let refused = RealFileSystem.create_dir(&link).unwrap_err().to_string();
    assert!(refused.contains("symbolic link to a path that does not exist"), "{refused}");
}
