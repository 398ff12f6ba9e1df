//! The block reads that an I/O thread makes for its requests with io_uring, without a thread for each.
//!
//! 1. A handler that lacks a block names the missed read. The request stays in the input of its connection,
//!    whose phase is *reading*.
//! 2. All reads of one turn of the event loop go to the kernel together ([`ReadQueue`]).
//! 3. The bytes of a completed read go to the cache that missed them, and the request is handled again, from
//!    memory.
//!
//! Where the kernel has no such queue, or the queue is full, the request goes to the blocking pool.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pando_environment::{AlignedBuffer, MissedRead, ReadQueue};
use tracing::{error, info, warn};

use super::thread_state::Slot;
use crate::error_text::panic_text;

/// Completed reads whose requests are handled in one turn of the event loop. Answering a request takes longer
/// than finding out which read another one misses. So few are handled at a time, and the device does not run
/// out of reads meanwhile.
const HANDED_OVER_MAX: usize = 2;

/// Whether a read was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The connection goes on when it is complete.
    Yes,
    /// The request has to wait elsewhere.
    No,
}

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// The cache has the bytes.
    Fulfilled,
    /// The device failed. The request goes to the pool, whose read tells the client of the failure.
    Failed,
}

/// The reads of one I/O thread.
#[derive(Default)]
pub(crate) struct Reads {
    queue: Option<ReadQueue<Waiting>>,
    /// Completed reads whose requests are not handled yet.
    completed: VecDeque<(Waiting, io::Result<AlignedBuffer>)>,
    /// The last exchange completed some reads. The kernel may have more, and does not report them by an
    /// event.
    more: bool,
    /// The kernel refused all reads at the last exchange, and the log has a line about it.
    refused: bool,
}

/// A connection that waits for a read.
struct Waiting {
    slot: Slot,
    missed: Arc<dyn MissedRead>,
}

impl Reads {
    /// Opens a queue of this many reads at a time; 0 opens none. To be called by the thread that uses it.
    pub(crate) fn open(depth: usize) -> Reads {
        if depth == 0 {
            return Reads::default();
        }
        match ReadQueue::open(depth) {
            Ok(queue) => Reads { queue: Some(queue), ..Reads::default() },
            Err(error) => {
                info!(
                    "io_uring cannot be used ({error}); requests that need the device wait in blocking threads"
                );
                Reads::default()
            }
        }
    }

    /// The descriptor that a poll watches for completed reads.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        self.queue.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Takes a read for the connection in the slot.
    pub(crate) fn push(&mut self, slot: Slot, missed: &Arc<dyn MissedRead>) -> Taken {
        let Some(queue) = &mut self.queue else { return Taken::No };
        let waiting = Waiting { slot, missed: Arc::clone(missed) };
        match queue.push(missed.file(), missed.offset(), missed.length(), waiting) {
            Ok(()) => Taken::Yes,
            Err(_) => Taken::No,
        }
    }

    /// Whether there is a read to give to the kernel, or a completed one to handle.
    pub(crate) fn is_busy(&self) -> bool {
        let queued = self.queue.as_ref().is_some_and(ReadQueue::has_queued);
        queued || self.more || !self.completed.is_empty()
    }

    /// Gives the queued reads to the kernel, hands over the bytes of some completed ones, and appends their
    /// connections.
    pub(crate) fn exchange(&mut self, ended: &mut Vec<(Slot, ReadEnd)>) {
        let Some(queue) = &mut self.queue else { return };
        if queue.has_queued() || self.completed.is_empty() {
            // Reads that the kernel refuses stay queued, and are offered again in the next turn.
            let exchanged = queue.exchange(&mut self.completed);
            if let Err(error) = &exchanged
                && !self.refused
            {
                warn!(
                    "the kernel refuses block reads ({error}); their requests wait and are tried again; if this lasts, \
                     restart with --queued-reads 0"
                );
            }
            self.refused = exchanged.is_err();
            self.more = !self.completed.is_empty();
        }
        let some = self.completed.len().min(HANDED_OVER_MAX);
        for (waiting, result) in self.completed.drain(..some) {
            let end = match result {
                Ok(buffer) => {
                    let end = hand_over(&*waiting.missed, &buffer);
                    queue.recycle(buffer);
                    end
                }
                Err(_) => ReadEnd::Failed,
            };
            ended.push((waiting.slot, end));
        }
    }
}

/// Hands the bytes over. A panic of the receiver must not end the I/O thread. The pool handles the request
/// then; if it panics there, its connection closes.
fn hand_over(missed: &dyn MissedRead, bytes: &[u8]) -> ReadEnd {
    match catch_unwind(AssertUnwindSafe(|| missed.fulfil(bytes))) {
        Ok(()) => ReadEnd::Fulfilled,
        Err(panic) => {
            error!(
                "taking the bytes of a read panicked ({}): {missed:?}; its request goes to the blocking pool; report this \
                 defect with the log line of the panic",
                panic_text(panic.as_ref())
            );
            ReadEnd::Failed
        }
    }
}
