//! What the connections of one I/O thread share, and the notes that reach the thread.

use std::sync::Arc;
use std::time::Instant;

use super::blocking_pool::BlockingPool;
use super::errand::Returned;
use super::exchange::Exchange;
use super::handler::{Handler, Outcome};
use super::inbox::Inbox;
use super::permits::Permit;
use super::reads::Reads;
use super::spare_buffers::SpareBuffers;
use super::stream::{Peer, Stream};

/// The number of a connection within its I/O thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(super) usize);

/// What the connections of one thread share.
pub(crate) struct Desk<H: Handler> {
    pub(crate) handler: Arc<H>,
    pub(crate) pool: BlockingPool,
    pub(crate) inbox: Arc<Inbox<Note<H::Session>>>,
    pub(crate) reads: Reads,
    pub(crate) exchange: Exchange,
    pub(crate) received: Vec<u8>,
    pub(crate) out: Vec<u8>,
    pub(crate) spare: SpareBuffers,
}

impl<H: Handler> Desk<H> {
    /// A desk whose reads take up to `receive_bytes`.
    pub(crate) fn new(
        handler: Arc<H>,
        pool: BlockingPool,
        inbox: Arc<Inbox<Note<H::Session>>>,
        receive_bytes: usize,
    ) -> Desk<H> {
        let received = Vec::with_capacity(receive_bytes);
        let exchange = Exchange::new();
        Desk {
            handler,
            pool,
            inbox,
            reads: Reads::default(),
            exchange,
            received,
            out: Vec::new(),
            spare: SpareBuffers::default(),
        }
    }

    /// Puts everything back after a panic left it half done.
    pub(crate) fn clear_up(&mut self, receive_bytes: usize) {
        self.exchange = Exchange::new();
        self.received = Vec::with_capacity(receive_bytes);
        self.out = Vec::new();
    }
}

/// A connection that was just accepted.
pub(crate) struct Accepted {
    pub(crate) stream: Stream,
    pub(crate) peer: Peer,
    pub(crate) permit: Permit,
}

/// What an I/O thread is told by others.
pub(crate) enum Note<S> {
    /// A new connection.
    Accepted(Accepted),
    /// A request has come back from the pool.
    Back(Slot, Returned<S>),
    /// A late reply may go.
    WaitOver(Slot, Outcome),
    /// Finish what is under way until this time, begin nothing.
    Stop(Instant),
}
