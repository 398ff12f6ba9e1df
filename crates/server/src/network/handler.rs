//! What the network side needs of whoever answers requests, and nothing about how it is done.

use std::sync::Arc;

use pando_environment::MissedRead;
use pando_wire::DocumentSequence;

use super::Peer;

/// In which of the two forms a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// OP_MSG.
    Message,
    /// OP_QUERY on `<database>.$cmd` with a hello in it: the first message of many drivers. It has no `$db`.
    LegacyHello,
}

/// A request; borrows from the connection's input.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The command: one BSON document, framed soundly, not looked into.
    pub body: &'a [u8],
    /// The document sequences beside it.
    pub sequences: &'a [DocumentSequence<'a>],
    /// How it came.
    pub form: Form,
}

/// Whether the handler may wait for the device, for a lock, for anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// On a thread that serves many connections: answer from memory or say [`Handled::WouldBlock`].
    CachedOnly,
    /// On a thread of its own: wait as long as it takes.
    MayBlock,
}

/// What came of a request.
pub enum Handled {
    /// The reply's document was appended.
    Reply,
    /// The reply's document was appended, and must not be sent before the wait is over.
    ReplyLater(Wait),
    /// Nothing was changed and nothing of use was appended: ask again with [`Attempt::MayBlock`], or after this read was made. The
    /// next request of the session is the same one; the handler may keep what it has worked out until then.
    WouldBlock(Option<Arc<dyn MissedRead>>),
}

/// Something to wait for without a thread: called once with what is to be called when it is over.
pub type Wait = Box<dyn FnOnce(WaitOver) + Send>;

/// To be called once, on any thread, when the wait is over. Quick: it hands over and returns.
pub type WaitOver = Box<dyn FnOnce(Outcome) + Send>;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Well: the reply goes out.
    Send,
    /// What the reply says will never be true: the connection is closed without it, so that nobody is told.
    Close,
}

/// Answers requests. One handler serves all connections from many threads.
pub trait Handler: Send + Sync + 'static {
    /// What the handler keeps of one connection. One request of a connection is handled at a time, so it needs no lock.
    type Session: Send + 'static;

    /// A connection begins.
    fn connected(&self, peer: &Peer) -> Self::Session;

    /// Answers one request by appending one document to `reply`. A panic is caught: it costs its connection, nothing else.
    fn handle(
        &self,
        session: &mut Self::Session,
        request: &Request<'_>,
        attempt: Attempt,
        reply: &mut Vec<u8>,
    ) -> Handled;

    /// The connection cannot go on before its peer reads what was sent, which may take any time: a request that
    /// [would have blocked](Handled::WouldBlock) is handled again only then, and must hold nothing meanwhile.
    fn stalled(&self, session: &mut Self::Session) {
        let _holds_nothing = session;
    }

    /// A connection has ended.
    fn disconnected(&self, session: Self::Session) {
        drop(session);
    }
}
