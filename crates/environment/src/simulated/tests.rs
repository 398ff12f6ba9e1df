//! Tests of the simulated disk: it keeps the promises of a disk, and breaks all others.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::{Access, AlignedBuffer, File, FileSystem, OpenMode, Operation};

fn disk_with_file() -> (Arc<SimulatedDisk>, Arc<dyn File>) {
    let disk = SimulatedDisk::new(1);
    disk.create_dir(Path::new("/s")).unwrap();
    let file = disk.open(Path::new("/s/f"), OpenMode::CreateNew, Access::Buffered).unwrap();
    disk.sync_dir(Path::new("/s")).unwrap();
    (disk, file)
}

fn reopen(disk: &Arc<SimulatedDisk>) -> Arc<dyn File> {
    disk.open(Path::new("/s/f"), OpenMode::Existing, Access::Buffered).unwrap()
}

#[test]
fn synced_bytes_survive_every_crash() {
    for seed in 0..200 {
        let (disk, file) = disk_with_file();
        file.write_all_at(&[1; 2_000], 100).unwrap();
        file.sync_data().unwrap();
        file.write_all_at(&[2; 700], 600).unwrap();
        disk.crash(seed);
        let mut read = [0; 2_100];
        reopen(&disk).read_exact_at(&mut read, 0).unwrap();
        assert_eq!(&read[..100], &[0; 100], "seed {seed}");
        assert!(read[100..600].iter().all(|byte| *byte == 1), "seed {seed}");
        assert!(read[600..1_300].iter().all(|byte| [1, 2].contains(byte)), "seed {seed}");
        assert!(read[1_300..].iter().all(|byte| *byte == 1), "seed {seed}");
    }
}

#[test]
fn unsynced_sectors_survive_vanish_and_tear_independently_over_many_crashes() {
    let (mut survived, mut vanished, mut torn, mut between, mut reordered) = (0, 0, 0, 0, 0);
    for seed in 0..400 {
        let (disk, file) = disk_with_file();
        file.write_all_at(&[1; 1_024], 0).unwrap();
        file.sync_data().unwrap();
        file.write_all_at(&[2; 512], 0).unwrap();
        file.write_all_at(&[3; 1_024], 0).unwrap();
        disk.crash(seed);
        let content = disk.content(Path::new("/s/f"));
        let (first, second) = content.split_at(512);
        match (first[0], first[511]) {
            (3, 3) => survived += 1,
            (1, 1) => vanished += 1,
            (2, 2) => between += 1,
            _ => torn += 1,
        }
        reordered += i32::from(first[0] == 1 && second[511] == 3);
    }
    let outcomes = [survived, vanished, torn, between, reordered];
    assert!(outcomes.iter().all(|count| *count > 5), "outcomes {outcomes:?}");
}

#[test]
fn the_same_seed_gives_the_same_crash() {
    let crashed = |seed| {
        let (disk, file) = disk_with_file();
        file.write_all_at(&[7; 40_000], 0).unwrap();
        disk.crash(seed);
        disk.content(Path::new("/s/f"))
    };
    assert_eq!(crashed(11), crashed(11));
    assert!((0..10).any(|seed| crashed(seed) != crashed(11)));
}

#[test]
fn a_kill_loses_nothing_that_reached_the_kernel_and_every_handle_of_the_process() {
    let (disk, file) = disk_with_file();
    let lock = disk.lock(Path::new("/s")).unwrap();
    file.write_all_at(b"unsynced", 0).unwrap();
    disk.kill();
    assert!(file.write_all_at(b"late", 0).is_err());
    assert!(file.read_exact_at(&mut [0; 4], 0).is_err());
    assert_eq!(disk.content(Path::new("/s/f")), b"unsynced");
    let again = disk.lock(Path::new("/s")).unwrap();
    // The dead process's lock does not take the living one's with it.
    drop(lock);
    assert!(disk.lock(Path::new("/s")).is_err());
    drop(again);
    disk.lock(Path::new("/s")).unwrap();
}

#[test]
fn folder_operations_may_be_lost_until_the_folder_is_synced() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..60 {
        let (disk, file) = disk_with_file();
        file.write_all_at(b"x", 0).unwrap();
        file.sync_data().unwrap();
        disk.rename(Path::new("/s/f"), Path::new("/s/g")).unwrap();
        assert_eq!(disk.list(Path::new("/s")).unwrap(), ["g"]);
        disk.crash(seed);
        match disk.list(Path::new("/s")).unwrap().as_slice() {
            [name] if name == "g" => kept += 1,
            [name] if name == "f" => lost += 1,
            other => panic!("seed {seed}: a rename is atomic, but the folder holds {other:?}"),
        }
        let (disk, _file) = disk_with_file();
        disk.remove(Path::new("/s/f")).unwrap();
        disk.sync_dir(Path::new("/s")).unwrap();
        disk.crash(seed);
        assert!(disk.list(Path::new("/s")).unwrap().is_empty());
    }
    assert!(kept > 5 && lost > 5, "kept {kept}, lost {lost}");
}

#[test]
fn the_power_goes_at_the_chosen_call_and_stays_away_until_the_crash() {
    let (disk, file) = disk_with_file();
    disk.crash_at_call(2);
    file.write_all_at(b"one", 0).unwrap();
    assert!(disk.has_power());
    assert!(file.sync_data().is_err());
    assert!(!disk.has_power());
    assert!(file.read_exact_at(&mut [0], 0).is_err());
    assert!(disk.open(Path::new("/s/f"), OpenMode::ReadOnly, Access::Buffered).is_err());
    disk.crash(5);
    assert!(disk.has_power());
    reopen(&disk).write_all_at(b"two", 0).unwrap();
}

#[test]
fn a_failed_sync_drops_the_data_and_the_next_one_succeeds_without_it() {
    let (disk, file) = disk_with_file();
    file.write_all_at(&[1; 512], 0).unwrap();
    file.sync_data().unwrap();
    file.write_all_at(&[2; 512], 0).unwrap();
    disk.inject(FaultRule::new(Operation::Sync, Fault::InputOutputError).on("/s/f"));
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    assert_eq!(disk.content(Path::new("/s/f")), [2; 512]);
    disk.crash(0);
    assert_eq!(disk.content(Path::new("/s/f")), [1; 512]);
}

#[test]
fn faults_strike_at_the_chosen_call_on_the_chosen_path() {
    let (disk, file) = disk_with_file();
    disk.inject(FaultRule::new(Operation::Write, Fault::NoSpace).on("/s/f").after(1).times(2));
    file.write_all_at(b"a", 0).unwrap();
    assert!(file.write_all_at(b"b", 0).unwrap_err().is_no_space());
    assert!(file.write_all_at(b"c", 0).unwrap_err().is_no_space());
    file.write_all_at(b"d", 0).unwrap();
    assert_eq!(disk.content(Path::new("/s/f")), b"d");
}

#[test]
fn silent_faults_change_what_arrives_and_report_success() {
    let (disk, file) = disk_with_file();
    let path = Path::new("/s/f");
    file.write_all_at(&[1; 2_048], 0).unwrap();
    disk.inject(FaultRule::new(Operation::Write, Fault::LostWrite));
    file.write_all_at(&[2; 512], 0).unwrap();
    assert_eq!(disk.content(path), [1; 2_048]);
    disk.inject(FaultRule::new(Operation::Write, Fault::MisdirectedWrite { sectors: 2 }));
    file.write_all_at(&[3; 512], 0).unwrap();
    assert_eq!((disk.content(path)[0], disk.content(path)[1_024]), (1, 3));
    disk.inject(FaultRule::new(Operation::Write, Fault::BitFlip { bit: 8 }));
    file.write_all_at(&[0; 4], 0).unwrap();
    assert_eq!(&disk.content(path)[..4], &[0, 1, 0, 0]);
    disk.inject(FaultRule::new(Operation::Read, Fault::StaleRead));
    let mut read = [0; 4];
    file.read_exact_at(&mut read, 0).unwrap();
    assert_eq!(read, [1; 4]);
    disk.inject(FaultRule::new(Operation::Write, Fault::ShortWrite));
    assert!(file.write_all_at(&[9; 4], 0).is_err());
    assert_eq!(&disk.content(path)[..4], &[9, 9, 0, 0]);
}

#[test]
fn a_full_disk_refuses_growth_and_allows_overwriting() {
    let (disk, file) = disk_with_file();
    file.allocate(0, 4_096).unwrap();
    disk.set_capacity(Some(5_000));
    assert_eq!(disk.free_bytes(Path::new("/s")).unwrap(), 904);
    file.write_all_at(&[1; 4_096], 0).unwrap();
    assert!(file.write_all_at(&[1; 1_000], 4_096).unwrap_err().is_no_space());
    assert!(file.allocate(4_096, 4_096).unwrap_err().is_no_space());
    assert_eq!(file.length().unwrap(), 4_096);
    disk.set_capacity(None);
    file.allocate(4_096, 4_096).unwrap();
}

#[test]
fn cut_and_extended_lengths_are_durable_only_after_a_sync() {
    let lengths: std::collections::BTreeSet<usize> = (0..60)
        .map(|seed| {
            let (disk, file) = disk_with_file();
            file.write_all_at(&[1; 3_000], 0).unwrap();
            file.sync_data().unwrap();
            file.set_length(1_000).unwrap();
            disk.crash(seed);
            let content = disk.content(Path::new("/s/f"));
            assert!(content[..1_000].iter().all(|byte| *byte == 1), "seed {seed}");
            content.len()
        })
        .collect();
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [1_000, 3_000]);
}

#[test]
#[should_panic(expected = "not aligned")]
fn direct_access_without_alignment_is_a_mistake_that_shows() {
    let (disk, _file) = disk_with_file();
    let file = disk.open(Path::new("/s/f"), OpenMode::Existing, Access::Direct).unwrap();
    let buffer = AlignedBuffer::zeroed(512);
    let _unreached = file.write_all_at(&buffer[..100], 0);
}

#[test]
fn a_disk_without_direct_access_grants_buffered_access() {
    let (disk, _file) = disk_with_file();
    disk.set_direct_alignment(None);
    let file = disk.open(Path::new("/s/f"), OpenMode::Existing, Access::Direct).unwrap();
    assert_eq!((file.access(), file.alignment()), (Access::Buffered, 1));
}
