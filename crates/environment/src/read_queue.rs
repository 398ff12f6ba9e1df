//! A queue of reads, by which one thread has many reads under way.
//!
//! A thread that serves many clients cannot wait for one read. Handing each read to a thread of its own costs
//! two context switches and a wake-up, which on few cores is more than the read. Here the thread leaves its
//! reads in a ring that it shares with the kernel (`io_uring`). One system call sends all that have gathered,
//! and the answers are found in the ring.
//!
//! # Terms
//! - *Ticket*: a value of the caller's that comes back with the answer.
//! - *Queued*: in the ring, not yet sent. *Under way*: with the kernel, which writes into the buffer.
//!
//! # The life of a read
//! 1. [`push`](ReadQueue::push) gives it a buffer and puts it into the ring.
//! 2. [`exchange`](ReadQueue::exchange) sends all queued reads with one system call, and collects those that
//!    have come back.
//! 3. The queue's descriptor reports to a poll when more have come back.
//!
//! # Invariants
//! - A buffer and its file live until the kernel is done with the read, also when the queue is dropped with
//!   reads under way.
//! - The queue takes as many reads as it was opened for. Beyond that the ticket is handed back at once.
//! - A short read is an error: blocks never cross the end of their file.
//!
//! # Not here
//! Writes, syncs, and files without a descriptor of the kernel (the simulated disk). Their readers wait in
//! threads.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use io_uring::{IoUring, opcode, types};
use rustix::event::EventfdFlags;
use slab::Slab;

use crate::{AlignedBuffer, File};

/// Buffers that grew beyond this are not kept for the next read, in bytes.
const KEPT_BUFFER_BYTES: usize = 64 * 1024;

/// The longest read that a queue takes, in bytes.
pub const QUEUED_READ_BYTES_MAX: usize = 1024 * 1024;

/// A queue of reads; it stays with the thread that opened it.
pub struct ReadQueue<T> {
    ring: IoUring,
    /// Raised by the kernel when a read has ended. The ring's own descriptor does not report that: with
    /// deferred task work an end becomes a completion only when it is asked for.
    ended: OwnedFd,
    reads: Slab<Read<T>>,
    spare: Vec<AlignedBuffer>,
    depth: usize,
    queued: usize,
}

struct Read<T> {
    ticket: T,
    buffer: AlignedBuffer,
    // Keeps the descriptor open while the kernel reads.
    _file: Arc<dyn File>,
}

impl<T> ReadQueue<T> {
    /// A queue for this many reads at a time (1 to 4,096). To be called by the thread that will use it.
    ///
    /// # Errors
    /// The kernel's: it is too old (before 6.1), or does not allow it (`kernel.io_uring_disabled`, a
    /// container's filter). Reads are then made by threads that wait.
    pub fn open(depth: usize) -> io::Result<ReadQueue<T>> {
        assert!((1..=4096).contains(&depth), "a read queue has a depth of 1 to 4,096, not {depth}");
        let entries = u32::try_from(depth).expect("bounded above").next_power_of_two();
        // One thread submits, and takes its completions when it asks for them: no interrupt of what it is
        // doing.
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_defer_taskrun()
            .setup_cqsize(2 * entries)
            .build(entries)?;
        let ended = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        ring.submitter().register_eventfd(ended.as_raw_fd())?;
        Ok(ReadQueue { ring, ended, reads: Slab::with_capacity(depth), spare: Vec::new(), depth, queued: 0 })
    }

    /// Queues a read of `length` bytes at `offset`; both fit the file's alignment.
    ///
    /// # Errors
    /// The ticket, where the queue is full, the read too long for it, or the file not one of the kernel's.
    pub fn push(&mut self, file: &Arc<dyn File>, offset: u64, length: usize, ticket: T) -> Result<(), T> {
        let Some(descriptor) = file.descriptor() else { return Err(ticket) };
        if self.reads.len() == self.depth || length > QUEUED_READ_BYTES_MAX {
            return Err(ticket);
        }
        let descriptor = types::Fd(descriptor.as_raw_fd());
        let mut buffer = self.spare.pop().unwrap_or_else(|| AlignedBuffer::zeroed(length));
        buffer.ensure_length(length);
        let entry = self.reads.vacant_entry();
        let length = u32::try_from(length).expect("bounded above");
        let operation = opcode::Read::new(descriptor, buffer.as_mut_ptr(), length)
            .offset(offset)
            .build()
            .user_data(entry.key() as u64);
        entry.insert(Read { ticket, buffer, _file: Arc::clone(file) });
        // SAFETY: the buffer and the file live in `reads` until the completion with this number was seen.
        // They are taken out in `collect` only, and `drop` waits for the reads under way. The buffer's memory
        // does not move with the `Read`.
        let pushed = unsafe { self.ring.submission().push(&operation) };
        pushed.expect("the ring has room for as many reads as the queue takes");
        self.queued += 1;
        Ok(())
    }

    /// Whether there is nothing to [`exchange`](ReadQueue::exchange).
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Sends what is queued to the kernel and appends what has come back: tickets with their bytes, or the
    /// reason why not. Does not wait. Hand the buffers back with [`recycle`](ReadQueue::recycle).
    ///
    /// The kernel hands over a bounded number of ends at a call (20 in Linux 6.13 and later), and does not
    /// report those that it kept back. So a caller that gets any has to call again, until none comes, before
    /// it may wait for a report.
    ///
    /// # Errors
    /// The kernel's, when it takes no read for the moment: queued reads stay queued.
    pub fn exchange(&mut self, back: &mut impl Extend<(T, io::Result<AlignedBuffer>)>) -> io::Result<()> {
        self.turn(0, back)
    }

    /// As [`exchange`](ReadQueue::exchange), but waits until something has come back, if anything is queued
    /// or under way.
    ///
    /// # Errors
    /// As there; also where a signal ends the wait.
    pub fn wait(&mut self, back: &mut impl Extend<(T, io::Result<AlignedBuffer>)>) -> io::Result<()> {
        self.turn(1, back)
    }

    /// Whether the kernel has not been told of all reads: there is something to
    /// [`exchange`](ReadQueue::exchange) at once.
    pub fn has_queued(&self) -> bool {
        self.queued > 0
    }

    /// Takes back a buffer for later reads.
    pub fn recycle(&mut self, buffer: AlignedBuffer) {
        if buffer.capacity() <= KEPT_BUFFER_BYTES && self.spare.len() < self.depth {
            self.spare.push(buffer);
        }
    }

    fn turn(
        &mut self,
        wanted: u32,
        back: &mut impl Extend<(T, io::Result<AlignedBuffer>)>,
    ) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let sent = self.enter(wanted);
        self.collect(back);
        sent
    }

    /// Submits, and waits for at least `wanted` completions.
    fn enter(&mut self, wanted: u32) -> io::Result<()> {
        // With deferred task work completions appear only within a call that asks for them.
        const GET_EVENTS: u32 = 1;
        let queued = u32::try_from(self.queued).expect("bounded by the depth");
        // SAFETY: no argument is passed; the entries in the ring are sound, see `push`.
        let sent = unsafe { self.ring.submitter().enter::<u64>(queued, wanted, GET_EVENTS, None) };
        self.queued -= sent?;
        Ok(())
    }

    fn collect(&mut self, back: &mut impl Extend<(T, io::Result<AlignedBuffer>)>) {
        for completion in self.ring.completion() {
            let number = usize::try_from(completion.user_data()).expect("numbers of reads are small");
            let Read { ticket, buffer, .. } = self.reads.remove(number);
            let result = match usize::try_from(completion.result()) {
                Ok(read) if read == buffer.len() => Ok(buffer),
                Ok(read) => Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("{read} bytes came of {}", buffer.len()),
                )),
                Err(_) => Err(io::Error::from_raw_os_error(-completion.result())),
            };
            back.extend([(ticket, result)]);
        }
    }
}

/// The descriptor for a poll, edge-triggered. It is never read from.
impl<T> AsRawFd for ReadQueue<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.ended.as_raw_fd()
    }
}

impl<T> Drop for ReadQueue<T> {
    fn drop(&mut self) {
        let mut back: Vec<(T, io::Result<AlignedBuffer>)> = Vec::new();
        // Reads that were never sent to the kernel need no waiting for.
        while self.queued < self.reads.len() {
            if let Err(error) = self.enter(1)
                && error.kind() != io::ErrorKind::Interrupted
            {
                // The kernel may still write into the buffers: they are left to it.
                std::mem::take(&mut self.reads).into_iter().for_each(std::mem::forget);
                return;
            }
            self.collect(&mut back);
        }
    }
}

#[cfg(test)]
mod tests;
