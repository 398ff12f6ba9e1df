//! The reads that requests of one I/O thread wait for, without a thread of their own.
//!
//! 1. A handler that would have to wait says which read is missing. The request stays where it is, its connection is *reading*.
//! 2. All reads that gathered in a turn of the event loop go to the kernel together ([`ReadQueue`]).
//! 3. What comes back is handed to whoever missed it, and the request is handled again, from memory.
//!
//! Where the kernel has no such queue, or it is full, requests go to the blocking pool as others do.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pando_environment::{AlignedBuffer, MissedRead, ReadQueue};
use tracing::{error, info, warn};

use super::desk::Slot;
use super::exchange::panic_text;

/// Reads handed over in a turn of the event loop. What they answer takes longer than what other requests need to find out which
/// read they miss: few at a time, so that the device does not run out of reads meanwhile.
const HANDED_OVER_MAX: usize = 2;

/// Whether a read was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Its connection hears of it.
    Yes,
    /// The request has to wait elsewhere.
    No,
}

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// The bytes were handed over.
    Fulfilled,
    /// The device said no: whoever asks with `MayBlock` is told.
    Failed,
}

/// The reads of one I/O thread.
#[derive(Default)]
pub(crate) struct Reads {
    queue: Option<ReadQueue<Waiting>>,
    /// Came back, and is not handed over.
    back: VecDeque<(Waiting, io::Result<AlignedBuffer>)>,
    /// The last exchange brought something, so that the kernel may have kept more back, of which it does not report.
    more: bool,
    /// The kernel took nothing at the last exchange, which the log has been told.
    refused: bool,
}

/// Who waits for a read.
struct Waiting {
    slot: Slot,
    missed: Arc<dyn MissedRead>,
}

impl Reads {
    /// Opens the queue, for this many reads at a time; 0 opens none. To be called by the thread that uses it.
    pub(crate) fn open(depth: usize) -> Reads {
        if depth == 0 {
            return Reads::default();
        }
        match ReadQueue::open(depth) {
            Ok(queue) => Reads { queue: Some(queue), ..Reads::default() },
            Err(error) => {
                info!(%error, "io_uring cannot be used here: requests that need the device wait in blocking threads");
                Reads::default()
            }
        }
    }

    /// What a poll watches to hear of reads that came back.
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

    /// Whether there is something to exchange without anything new coming in.
    pub(crate) fn is_busy(&self) -> bool {
        let untold = self.queue.as_ref().is_some_and(ReadQueue::has_queued);
        untold || self.more || !self.back.is_empty()
    }

    /// Tells the kernel what was taken, hands over some of what has come back, and appends who waited for it.
    pub(crate) fn exchange(&mut self, ended: &mut Vec<(Slot, ReadEnd)>) {
        let Some(queue) = &mut self.queue else { return };
        if queue.has_queued() || self.back.is_empty() {
            // What was not taken stays queued, and is offered again in the next turn.
            let exchanged = queue.exchange(&mut self.back);
            if let Err(error) = &exchanged
                && !self.refused
            {
                warn!(%error, "the kernel takes no reads at the moment");
            }
            self.refused = exchanged.is_err();
            self.more = !self.back.is_empty();
        }
        let some = self.back.len().min(HANDED_OVER_MAX);
        for (waiting, result) in self.back.drain(..some) {
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

/// Hands the bytes over. A panic of the receiver must not end the thread: the request is answered by the pool, or panics there and
/// costs its connection.
fn hand_over(missed: &dyn MissedRead, bytes: &[u8]) -> ReadEnd {
    match catch_unwind(AssertUnwindSafe(|| missed.fulfil(bytes))) {
        Ok(()) => ReadEnd::Fulfilled,
        Err(panic) => {
            error!(read = ?missed, panic = panic_text(panic.as_ref()), "a read that was handed over panicked");
            ReadEnd::Failed
        }
    }
}
