//! Parallel reads by one thread that waits for all of them.
//!
//! A flush needs many small pieces that lie apart, such as the pending messages of each child of a node. One
//! after the other they cost one wait for the device each; a device answers dozens in the time of one or two.
//! So all are given to the device together, in a [`ReadQueue`] that belongs to the thread. Without
//! `io_uring`, or for a file that is not the kernel's, the reads are made one by one.
//!
//! # Steps
//! 1. Queue as many reads as there is room for: [`DEPTH`], with buffers of [`UNDER_WAY_BYTES_MAX`] together.
//! 2. Hand over each read that comes back; that makes room for others.
//! 3. Read one by one the pieces that the queue did not take or could not read. Their errors are reported as
//!    usual.
//!
//! # Invariants
//! - Each piece is handed over at most once, and on success exactly once.
//! - No read is under way when a call returns.
//!
//! # Memory
//! Each such thread keeps its queue, and a buffer of 64 KiB for each read that it once had under way at a
//! time.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::sync::Arc;

use crate::{AlignedBuffer, EnvironmentError, File, QUEUED_READ_BYTES_MAX, ReadQueue};

/// Reads under way at a time.
const DEPTH: usize = 32;

/// Bytes of their buffers.
const UNDER_WAY_BYTES_MAX: usize = 2 * QUEUED_READ_BYTES_MAX;

/// The times in a row that the kernel may take no read, or a signal may end the wait.
const REFUSALS_MAX: u32 = 1_000;

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRange {
    /// The first byte; fits the file's alignment.
    pub offset: u64,
    /// How many bytes; fits the file's alignment.
    pub length: usize,
}

/// The thread's queue.
enum Together {
    /// Not asked for yet.
    Unopened,
    /// The kernel gives none to this process.
    OneByOne,
    Queued(Box<ReadQueue<usize>>),
}

thread_local! {
    static TOGETHER: RefCell<Together> = const { RefCell::new(Together::Unopened) };
}

/// Reads pieces of a file, and hands over each as it comes in, in any order: its place among the `ranges`,
/// and its bytes.
///
/// # Errors
/// That of a read which fails; pieces may have been handed over before.
pub fn read_together(
    file: &Arc<dyn File>,
    ranges: &[ReadRange],
    mut take: impl FnMut(usize, &[u8]),
) -> Result<(), EnvironmentError> {
    let mut reads = Reads { file, ranges, is_made: vec![false; ranges.len()] };
    if ranges.len() > 1 && file.descriptor().is_some() {
        // The queue is taken out, so that a read within `take` has a queue of its own. A panic drops this
        // one, which waits for the reads under way.
        let mut together = TOGETHER.replace(Together::Unopened);
        if matches!(together, Together::Unopened) {
            together = opened();
        }
        if let Together::Queued(queue) = &mut together
            && reads.read_queued(queue, &mut take) == Queue::Broken
        {
            together = Together::OneByOne;
        }
        TOGETHER.set(together);
    }
    reads.read_rest(&mut take)
}

fn opened() -> Together {
    match ReadQueue::open(DEPTH) {
        Ok(queue) => Together::Queued(Box::new(queue)),
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
            Together::OneByOne
        }
        // Out of descriptors or memory, say: another time.
        Err(_) => Together::Unopened,
    }
}

/// Whether a queue can be used again.
#[derive(PartialEq, Eq)]
enum Queue {
    Sound,
    /// The kernel does not take what is queued.
    Broken,
}

/// The reads of one call.
struct Reads<'r> {
    file: &'r Arc<dyn File>,
    ranges: &'r [ReadRange],
    /// Which of them were handed over.
    is_made: Vec<bool>,
}

impl Reads<'_> {
    /// Makes them through a queue, but those that it does not take, or that fail.
    fn read_queued(&mut self, queue: &mut ReadQueue<usize>, take: &mut impl FnMut(usize, &[u8])) -> Queue {
        let (mut next, mut under_way, mut refusals, mut back) = (0, 0, 0, Vec::new());
        loop {
            while let Some(ReadRange { offset, length }) = self.ranges.get(next)
                && (under_way == 0 || under_way + length <= UNDER_WAY_BYTES_MAX)
            {
                match queue.push(self.file, *offset, *length, next) {
                    Ok(()) => under_way += length,
                    // Too long for a queue: left for later.
                    Err(_) if queue.is_empty() => {}
                    Err(_) => break,
                }
                next += 1;
            }
            if queue.is_empty() {
                return Queue::Sound;
            }
            refusals = if queue.wait(&mut back).is_err() { refusals + 1 } else { 0 };
            if refusals > REFUSALS_MAX {
                return Queue::Broken;
            }
            for (place, bytes) in back.drain(..) {
                under_way -= self.ranges[place].length;
                if let Ok(buffer) = bytes {
                    take(place, &buffer);
                    self.is_made[place] = true;
                    queue.recycle(buffer);
                }
            }
        }
    }

    /// Makes those that are left, one by one.
    fn read_rest(&mut self, take: &mut impl FnMut(usize, &[u8])) -> Result<(), EnvironmentError> {
        let mut buffer = AlignedBuffer::zeroed(0);
        for (place, ReadRange { offset, length }) in self.ranges.iter().enumerate() {
            if !self.is_made[place] {
                buffer.ensure_length(*length);
                self.file.read_exact_at(&mut buffer, *offset)?;
                take(place, &buffer);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
