//! Tests with files of this machine and with the simulated disk.

use std::path::Path;

use super::*;
use crate::{Access, Environment, OpenMode};

/// A file whose every 512 bytes say which they are.
fn file_of(environment: &Environment, folder: &Path, blocks: usize) -> Arc<dyn File> {
    environment.files().create_dir(folder).unwrap();
    let path = folder.join("data");
    let file = environment.files().open(&path, OpenMode::CreateNew, Access::Buffered).unwrap();
    let content: Vec<u8> = (0..blocks * 512).map(|at| (at / 512) as u8).collect();
    file.write_all_at(&content, 0).unwrap();
    file
}

fn blocks(list: impl IntoIterator<Item = (u64, usize)>) -> Vec<ReadRange> {
    list.into_iter().map(|(block, count)| ReadRange { offset: block * 512, length: count * 512 }).collect()
}

/// Reads them, checks that each comes once with its bytes, and gives the order in which they came.
fn read_all(file: &Arc<dyn File>, ranges: &[ReadRange]) -> Result<Vec<usize>, EnvironmentError> {
    let mut order = Vec::new();
    read_together(file, ranges, |place, bytes| {
        let ReadRange { offset, length } = ranges[place];
        assert_eq!(bytes.len(), length);
        let expected = (offset / 512..).flat_map(|block| [block as u8; 512]).take(length);
        assert!(bytes.iter().copied().eq(expected), "the bytes of {place}");
        order.push(place);
    })?;
    let mut places = order.clone();
    places.sort_unstable();
    assert_eq!(places, (0..ranges.len()).collect::<Vec<_>>());
    Ok(order)
}

#[test]
fn every_piece_comes_once_however_many_and_long_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_of(&Environment::real(), &folder.path().join("store"), 6_000);
    for count in [0, 1, 2, 31, 32, 33, 500] {
        read_all(&file, &blocks((0..count).map(|at| (at * 37 % 5_990, 1 + at as usize % 9)))).unwrap();
    }
    // Longer than a queue takes, between short ones; and more at once than there are buffers for.
    read_all(&file, &blocks([(7, 1), (0, 5_000), (9, 2), (1, 2_048), (3, 2_048), (5, 2_048), (8, 1)]))
        .unwrap();
}

#[test]
fn a_disk_without_a_descriptor_is_read_one_by_one_in_order() {
    let simulation = Environment::simulated(1);
    let file = file_of(&simulation.environment, Path::new("/store"), 64);
    let order = read_all(&file, &blocks((0..40).map(|at| (at, 1)))).unwrap();
    assert_eq!(order, (0..40).collect::<Vec<_>>());
}

#[test]
fn a_piece_beyond_the_end_is_an_error_and_the_queue_goes_on_working() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_of(&Environment::real(), &folder.path().join("store"), 64);
    let mut ranges = blocks((0..50).map(|at| (at, 1)));
    ranges.insert(20, ReadRange { offset: 63 * 512, length: 1024 });
    let error = read_together(&file, &ranges, |_, _| {}).unwrap_err();
    assert!(error.is_past_end(), "{error}");
    ranges.remove(20);
    read_all(&file, &ranges).unwrap();
}

#[test]
fn without_a_queue_all_are_read_one_by_one_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_of(&Environment::real(), &folder.path().join("store"), 64);
    TOGETHER.set(Together::OneByOne);
    let order = read_all(&file, &blocks((0..40).map(|at| (at, 1 + at as usize % 3)))).unwrap();
    assert_eq!(order, (0..40).collect::<Vec<_>>());
}

#[test]
fn where_the_kernel_gives_a_queue_it_is_used_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_of(&Environment::real(), &folder.path().join("store"), 64);
    read_all(&file, &blocks((0..40).map(|at| (at, 1)))).unwrap();
    let is_queued = TOGETHER.with_borrow(|together| matches!(together, Together::Queued(_)));
    assert_eq!(is_queued, ReadQueue::<usize>::open(1).is_ok());
}

#[test]
fn reads_within_reads_and_panics_leave_a_thread_that_reads_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_of(&Environment::real(), &folder.path().join("store"), 64);
    let ranges = blocks((0..40).map(|at| (at, 1)));
    let mut inner = 0;
    read_together(&file, &ranges, |_, _| inner += read_all(&file, &ranges[..3]).unwrap().len()).unwrap();
    assert_eq!(inner, 120);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        read_together(&file, &ranges, |_, _| panic!("in the middle"))
    }));
    assert!(panicked.is_err());
    read_all(&file, &ranges).unwrap();
}
