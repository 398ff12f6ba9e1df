//! The network side: connections come in, requests go to a [`Handler`], replies go back.
//!
//! It is event-driven:
//! - An idle connection costs no thread and no buffer.
//! - A request that the handler answers from memory is answered on the thread that read it, with one read and
//!   one write.
//! - A request that lacks a block of the device waits for it without a thread.
//! - A request that has to wait for anything else goes to a pool of threads.
//! - A reply that has to wait for the log waits without a thread.
//!
//! # Terms
//! - *I/O thread*: runs an event loop over its share of the connections (`io_thread.rs`). Its connections
//!   share a *thread state* (`thread_state.rs`).
//! - *Acceptor*: the thread that accepts connections and gives them to I/O threads (`acceptor.rs`).
//! - *Responder*: turns a frame into a request and its reply into a frame (`responder.rs`).
//! - *Blocking pool*: threads for requests that wait (`blocking_pool.rs`, `pool_request.rs`). Logins and an
//!   operator's commands have a small one of their own.
//! - *Block reads*: device reads that an I/O thread makes with io_uring (`reads.rs`).
//! - *Security*: whether a listener's connections speak TLS (`security.rs`, `tls_session.rs`). The first
//!   bytes of a connection tell (`connection/opening.rs`).
//! - *Watch list*: the connections that owe a handshake, the rest of a message, or room for replies
//!   (`watch.rs`).
//! - *Handler*: answers requests (`handler.rs`). *Session*: the handler's state of one connection.
//!
//! # The life of a request
//! ```text
//!  socket --read--> connection --frame--> responder --request--> handler, CachedOnly
//!                                                                 |
//!     <--write-- (1) Reply ---------------------------------------+
//!                (2) WouldBlock with the missed read: the I/O thread queues the read and goes on;
//!                    when it is complete, the request is handled again --> handler, CachedOnly
//!                (3) WouldBlock without one: frame and session go to the pool --> handler, MayBlock
//!     <--write by the pool thread-- reply;  the session comes back through the inbox
//!                (4) ReplyLater: the reply waits; the log calls its waker; the inbox wakes the I/O thread
//!     <--write-- reply
//!                (5) Again: the request waits for another one without a thread, on either way; the inbox
//!                    wakes the I/O thread, and the request is handled again as before
//! ```
//! While (2), (3), (4) or (5) is under way, no other request of that connection is handled: replies keep
//! their order.
//!
//! # Invariants
//! - I/O threads share nothing on the path of a cached request. Each takes one lock per poll, that of its own
//!   inbox.
//! - No client can stop other connections by bytes that it sends or fails to read. Its buffers are
//!   bounded, its handshake and its silence are bounded in time, and a panic in its request closes its
//!   connection only.
//! - A connection without TLS pays for TLS with one comparison a read and one a write.
//!
//! # Not here
//! The format of messages: `pando-wire`. The meaning of requests, and users: `pando-commands`.
//! Certificates: `pando-tls`.

mod acceptor;
mod address_book;
mod blocking_pool;
mod buffer_pool;
mod connection;
mod error_document;
mod foreign_protocol;
mod handler;
mod inbox;
mod io_thread;
mod listener;
mod peer_user;
mod permits;
mod phase;
mod placement;
mod pool_handoff;
mod pool_request;
mod reads;
mod refusal_log;
mod responder;
mod security;
mod stream;
mod thread_state;
mod tls_session;
mod watch;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use acceptor::Acceptor;
pub use address_book::AddressLimits;
use blocking_pool::BlockingPools;
pub use handler::{Handler, HangUp, LegacyAnswer, WireRequest};
use inbox::{Inbox, Urgency};
use io_thread::IoThread;
pub use listener::{ListenError, Listener, ProcessUsers};
use permits::Permits;
pub use placement::Placement;
pub use security::{Encryption, PlainText, Security};
pub use stream::Peer;
use thread_state::ThreadMessage;
pub use watch::Patiences;

use crate::error_text::panic_text;

/// The time that requests under way have before a stop asks them to end.
const INTERRUPT_AFTER: Duration = Duration::from_millis(500);
/// The time for which a client may read nothing of its reply once a stop has begun.
const GIVE_UP_AFTER: Duration = Duration::from_millis(500);
/// The time between two looks whether they are over.
const STOP_POLL: Duration = Duration::from_millis(5);

/// The limits of the network side.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads that run event loops, at least 1.
    pub io_threads: usize,
    /// The processors that they run on.
    pub placement: Placement,
    /// Threads for requests of normal priority that wait, at least 1. They are started on demand.
    pub blocking_threads: usize,
    /// Block reads that each I/O thread has under way, 0 to 4,096. With 0, requests that need the device wait
    /// in blocking threads.
    pub queued_reads: usize,
    /// Connections at one time; more are closed as they come.
    pub connections: usize,
    /// The limits of each address.
    pub of_address: AddressLimits,
    /// The times that clients have.
    pub patiences: Patiences,
}

/// A running network side.
pub struct Network<H: Handler> {
    acceptor: JoinHandle<()>,
    acceptor_inbox: Arc<Inbox<()>>,
    threads: Vec<JoinHandle<()>>,
    inboxes: Vec<Arc<Inbox<ThreadMessage<H::Session>>>>,
    connections: Arc<AtomicUsize>,
    pools: BlockingPools,
}

impl<H: Handler> Network<H> {
    /// Starts all threads. From then on connections are served.
    ///
    /// # Errors
    /// The kernel has no more threads or file descriptors.
    pub fn start(handler: Arc<H>, listeners: Vec<Listener>, limits: Limits) -> io::Result<Network<H>> {
        let pools = BlockingPools::new(limits.blocking_threads);
        let mut inboxes = Vec::new();
        let mut threads = Vec::new();
        let processors = placement::processors(limits.placement, limits.io_threads);
        for (number, processor) in processors.into_iter().enumerate() {
            let io_thread = IoThread::new(Arc::clone(&handler), pools.clone(), limits)?;
            inboxes.push(io_thread.inbox());
            let name = format!("pando-io-{number}");
            threads.push(thread::Builder::new().name(name).spawn(move || {
                if let Some(processor) = processor {
                    placement::stay_on(processor);
                }
                io_thread.run();
            })?);
        }
        let permits = Permits::new(limits.connections, limits.io_threads, limits.of_address);
        let connections = permits.count();
        let on_refusal = Box::new(move || handler.rejected());
        let acceptor = Acceptor::new(listeners, permits, inboxes.clone(), on_refusal)?;
        let acceptor_inbox = acceptor.inbox();
        let acceptor =
            thread::Builder::new().name("pando-accept".to_owned()).spawn(move || acceptor.run())?;
        Ok(Network { acceptor, acceptor_inbox, threads, inboxes, connections, pools })
    }

    /// The number of connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The number of threads in the blocking pools.
    pub fn blocking_threads(&self) -> usize {
        self.pools.threads()
    }

    /// Stops. Listeners and idle connections close at once. Requests under way have the time `grace` to be
    /// answered. Those that are not over after a short time are asked to end: by `interrupt`. Connections
    /// whose clients then read nothing of a reply for some time are closed.
    pub fn stop(self, grace: Duration, interrupt: impl FnOnce()) {
        self.acceptor_inbox.push((), Urgency::Now);
        join(self.acceptor);
        let now = Instant::now();
        for inbox in &self.inboxes {
            inbox.push(ThreadMessage::Stop(now + grace), Urgency::Now);
        }
        let interrupt_at = now + INTERRUPT_AFTER.min(grace);
        while Instant::now() < interrupt_at && !self.threads.iter().all(JoinHandle::is_finished) {
            thread::sleep(STOP_POLL);
        }
        interrupt();
        let mut look_at = Instant::now();
        while !self.threads.iter().all(JoinHandle::is_finished) {
            if Instant::now() >= look_at {
                self.inboxes.iter().for_each(|inbox| inbox.push(ThreadMessage::GiveUp, Urgency::Now));
                look_at += GIVE_UP_AFTER;
            }
            thread::sleep(STOP_POLL);
        }
        self.threads.into_iter().for_each(join);
    }
}

fn join(thread: JoinHandle<()>) {
    let name = thread.thread().name().unwrap_or("without a name").to_owned();
    if let Err(panic) = thread.join() {
        tracing::error!(
            "the network thread {name} has panicked ({}), and its connections are gone; report this defect with the log \
             line of the panic",
            panic_text(panic.as_ref())
        );
    }
}
