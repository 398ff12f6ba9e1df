//! The state that the connections of one I/O thread share, and the messages that reach the thread.

use std::sync::Arc;
use std::time::Instant;

use pando_commands::StorageError;

use super::blocking_pool::BlockingPools;
use super::buffer_pool::BufferPool;
use super::handler::Handler;
use super::inbox::Inbox;
use super::permits::Permit;
use super::pool_request::PoolReply;
use super::reads::Reads;
use super::responder::Responder;
use super::security::Security;
use super::stream::{Peer, Stream};

/// The number of a connection within its I/O thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(super) usize);

/// The state of one I/O thread, beside its connections.
pub(crate) struct ThreadState<H: Handler> {
    pub(crate) handler: Arc<H>,
    pub(crate) pools: BlockingPools,
    pub(crate) inbox: Arc<Inbox<ThreadMessage<H::Session>>>,
    pub(crate) reads: Reads,
    pub(crate) responder: Responder,
    /// The bytes of the last read of a socket.
    pub(crate) received: Vec<u8>,
    /// The records of the last read of a socket with TLS. Without such connections it takes no memory.
    pub(crate) records: Vec<u8>,
    /// Replies of the connection that has its turn; empty between two turns.
    pub(crate) out: Vec<u8>,
    pub(crate) buffers: BufferPool,
}

impl<H: Handler> ThreadState<H> {
    /// A state whose reads of a socket take up to `receive_bytes`.
    pub(crate) fn new(
        handler: Arc<H>,
        pools: BlockingPools,
        inbox: Arc<Inbox<ThreadMessage<H::Session>>>,
        receive_bytes: usize,
    ) -> ThreadState<H> {
        ThreadState {
            handler,
            pools,
            inbox,
            reads: Reads::default(),
            responder: Responder::default(),
            received: Vec::with_capacity(receive_bytes),
            records: Vec::new(),
            out: Vec::new(),
            buffers: BufferPool::default(),
        }
    }

    /// Replaces the parts that a panic may have left half changed.
    pub(crate) fn reset_after_panic(&mut self, receive_bytes: usize) {
        self.responder = Responder::default();
        self.received = Vec::with_capacity(receive_bytes);
        self.out = Vec::new();
    }
}

/// A connection that was just accepted.
pub(crate) struct Accepted {
    pub(crate) stream: Stream,
    pub(crate) peer: Peer,
    pub(crate) permit: Permit,
    pub(crate) security: Security,
}

/// A message to an I/O thread.
pub(crate) enum ThreadMessage<S> {
    /// A new connection.
    Accepted(Accepted),
    /// A request has come back from the blocking pool.
    Returned(Slot, PoolReply<S>),
    /// The wait of a late reply is over: the reply may go, or will never be true.
    WaitOver(Slot, Result<(), StorageError>),
    /// Answer the requests under way until this time, and begin no other.
    Stop(Instant),
    /// Connections whose clients do not read their replies are given up, because the server stops.
    GiveUp,
}
