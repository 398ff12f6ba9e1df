//! Tests of the queue with files of this machine.

use std::path::Path;

use super::*;
use crate::{Access, Environment, OpenMode};

fn file_of(folder: &Path, bytes: usize) -> Arc<dyn File> {
    let file = Environment::real()
        .files()
        .open(&folder.join("data"), OpenMode::CreateNew, Access::Buffered)
        .unwrap();
    let content: Vec<u8> = (0..bytes).map(|at| (at / 512) as u8).collect();
    file.write_all_at(&content, 0).unwrap();
    file
}

/// A queue; `None` where this kernel has none. Then readers use threads, and the test ends.
fn queue(depth: usize) -> Option<ReadQueue<u64>> {
    match ReadQueue::open(depth) {
        Ok(queue) => Some(queue),
        Err(error) => {
            eprintln!("no io_uring here ({error}): reads are made by threads");
            None
        }
    }
}

fn drain(queue: &mut ReadQueue<u64>) -> Vec<(u64, io::Result<AlignedBuffer>)> {
    let mut back = Vec::new();
    while !queue.is_empty() {
        queue.exchange(&mut back).unwrap();
    }
    back
}

#[test]
fn every_read_comes_back_with_its_ticket_and_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_of(folder.path(), 64 * 512);
    let Some(mut queue) = queue(16) else { return };
    for round in 0..20u64 {
        for at in 0..16 {
            let block = (round * 7 + at * 3) % 64;
            assert!(queue.push(&file, block * 512, 512, block).is_ok());
        }
        let back = drain(&mut queue);
        assert_eq!(back.len(), 16);
        for (block, buffer) in back {
            let buffer = buffer.unwrap();
            assert_eq!(buffer.len(), 512);
            assert!(buffer.iter().all(|byte| u64::from(*byte) == block));
            queue.recycle(buffer);
        }
    }
}

#[test]
fn a_full_queue_hands_the_ticket_back_and_takes_more_after_an_exchange() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_of(folder.path(), 4_096);
    let Some(mut queue) = queue(2) else { return };
    assert!(queue.push(&file, 0, 512, 1).is_ok());
    assert!(queue.push(&file, 512, 512, 2).is_ok());
    assert_eq!(queue.push(&file, 0, 512, 3), Err(3));
    assert_eq!(drain(&mut queue).len(), 2);
    assert!(queue.push(&file, 0, 512, 4).is_ok());
    assert_eq!(queue.push(&file, 0, QUEUED_READ_BYTES_MAX + 1, 5), Err(5));
}

#[test]
fn a_read_past_the_end_is_an_error_and_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_of(folder.path(), 1_024);
    let Some(mut queue) = queue(4) else { return };
    assert!(queue.push(&file, 512, 1_024, 1).is_ok());
    assert!(queue.push(&file, 4_096, 512, 2).is_ok());
    assert!(queue.push(&file, 512, 512, 3).is_ok());
    for (ticket, result) in drain(&mut queue) {
        assert_eq!(result.is_ok(), ticket == 3, "{ticket}");
    }
}

#[test]
fn a_queue_can_be_dropped_with_reads_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_of(folder.path(), 1 << 20);
    for _ in 0..20 {
        let Some(mut queue) = queue(64) else { return };
        for at in 0..64 {
            assert!(queue.push(&file, at * 16_384, 16_384, at).is_ok());
        }
        let mut back = Vec::new();
        queue.exchange(&mut back).unwrap();
    }
}

#[test]
fn files_of_a_simulated_disk_are_read_elsewhere() {
    let simulation = Environment::simulated(1);
    let file = simulation
        .environment
        .files()
        .open(Path::new("data"), OpenMode::CreateNew, Access::Buffered)
        .unwrap();
    let Some(mut queue) = queue(4) else { return };
    assert_eq!(queue.push(&file, 0, 512, 9), Err(9));
    assert!(queue.is_empty());
}
