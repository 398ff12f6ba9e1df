//! The network side: connections come in, requests go to a [`Handler`], replies go back.
//!
//! It is event-driven. An idle connection costs no thread and no buffer; a request that the handler can answer from memory is
//! answered on the thread that read it, with one read and one write; one that lacks a block waits for it without a thread; one that
//! has to wait for anything else goes to a pool of threads; a reply that has to wait for the log waits without a thread.
//!
//! # Terms
//! - *I/O thread*: runs an event loop over its share of the connections (`io_thread.rs`).
//! - *Acceptor*: the thread that accepts connections and gives them to I/O threads (`acceptor.rs`).
//! - *Blocking pool*: threads for requests that wait (`blocking_pool.rs`).
//! - *Reads*: the device reads that an I/O thread has under way by itself (`reads.rs`).
//! - *Handler*: whoever answers requests (`handler.rs`). *Session*: what it keeps per connection.
//!
//! # The life of a request
//! ```text
//!  socket --read--> connection --frame--> exchange --request--> handler, CachedOnly
//!                                                                 |
//!     <--write-- (1) reply ---------------------------------------+
//!                (2) WouldBlock, with the read that is missing: the I/O thread queues it and goes on with others;
//!                    once it has come back, the request is handled again --> handler, CachedOnly
//!                (3) WouldBlock: frame and session go to a pool thread --> handler, MayBlock
//!     <--write by the pool thread-- reply;  session back through the inbox
//!                (4) ReplyLater: the reply is parked; the log calls WaitOver; the inbox wakes the I/O thread
//!     <--write-- reply
//! ```
//! While (2), (3) or (4) is under way, no other request of that connection is handled: replies keep their order.
//!
//! # Invariants
//! - Between I/O threads nothing is shared on the path of a cached request, and each takes only its own inbox's lock, once per
//!   poll.
//! - Whatever a client sends or fails to read, other connections go on: its buffers are bounded, and a panic while its request
//!   is handled ends its connection only.
//!
//! # Not here
//! What a message is: `pando-wire`. What a request means: `pando-commands`. Users, TLS: not yet.

mod acceptor;
mod blocking_pool;
mod connection;
mod desk;
mod errand;
mod error_document;
mod exchange;
mod handler;
mod inbox;
mod io_thread;
mod listener;
mod permits;
mod placement;
mod reads;
mod rendezvous;
mod spare_buffers;
mod stream;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use acceptor::Acceptor;
use blocking_pool::BlockingPool;
use desk::Note;
pub(crate) use exchange::panic_text;
pub use handler::{Attempt, Form, Handled, Handler, Outcome, Request, Wait, WaitOver};
use inbox::{Inbox, Urgency};
use io_thread::IoThread;
pub use listener::{ListenError, Listener};
use permits::Permits;
pub use placement::Placement;
pub use stream::Peer;

/// How much of everything the network side may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads that run event loops, at least 1.
    pub io_threads: usize,
    /// Where they run.
    pub placement: Placement,
    /// Threads for requests that wait, at least 1. They are started on demand.
    pub blocking_threads: usize,
    /// Reads that each I/O thread has under way by itself, 0 to 4,096; with 0 all that need the device wait in blocking threads.
    pub queued_reads: usize,
    /// Connections at one time; more are closed as they come.
    pub connections: usize,
}

/// A running network side.
pub struct Network<H: Handler> {
    acceptor: JoinHandle<()>,
    acceptor_inbox: Arc<Inbox<()>>,
    threads: Vec<JoinHandle<()>>,
    inboxes: Vec<Arc<Inbox<Note<H::Session>>>>,
    connections: Arc<AtomicUsize>,
    pool: BlockingPool,
}

impl<H: Handler> Network<H> {
    /// Starts all threads; from here on connections are served.
    ///
    /// # Errors
    /// The kernel's, if it has no more threads or file descriptors.
    pub fn start(handler: Arc<H>, listeners: Vec<Listener>, limits: Limits) -> io::Result<Network<H>> {
        let pool = BlockingPool::new(limits.blocking_threads);
        let mut inboxes = Vec::new();
        let mut threads = Vec::new();
        let processors = placement::processors(limits.placement, limits.io_threads);
        for (number, processor) in processors.into_iter().enumerate() {
            let io_thread = IoThread::new(Arc::clone(&handler), pool.clone(), limits.queued_reads)?;
            inboxes.push(io_thread.inbox());
            let name = format!("pando-io-{number}");
            threads.push(thread::Builder::new().name(name).spawn(move || {
                if let Some(processor) = processor {
                    placement::stay_on(processor);
                }
                io_thread.run();
            })?);
        }
        let permits = Permits::new(limits.connections, limits.io_threads);
        let connections = permits.count();
        let acceptor = Acceptor::new(listeners, permits, inboxes.clone())?;
        let acceptor_inbox = acceptor.inbox();
        let acceptor =
            thread::Builder::new().name("pando-accept".to_owned()).spawn(move || acceptor.run())?;
        Ok(Network { acceptor, acceptor_inbox, threads, inboxes, connections, pool })
    }

    /// Connections at the moment.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Threads of the blocking pool at the moment.
    pub fn blocking_threads(&self) -> usize {
        self.pool.threads()
    }

    /// Stops: the listeners close at once, connections at rest close, requests under way have `grace` to be answered.
    pub fn stop(self, grace: Duration) {
        self.acceptor_inbox.push((), Urgency::Now);
        join(self.acceptor);
        let stop_at = Instant::now() + grace;
        for inbox in &self.inboxes {
            inbox.push(Note::Stop(stop_at), Urgency::Now);
        }
        self.threads.into_iter().for_each(join);
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread of the network side has panicked");
    }
}
