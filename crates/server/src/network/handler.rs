//! The handler of requests, as the network side sees it. The trait exists so that the network side is tested
//! without a store.
//!
//! The words [`BlockingMode`] and [`Handled`] are those of `pando-commands`. A [`WireRequest`] is one step
//! before a request of that crate: its documents are framed soundly, and their fields are not read yet.

use pando_commands::{BlockingMode, Handled, LegacyProtocol, MessageTraffic, Priority, StreamState};
use pando_wire::{DocumentSequence, LegacyRequest, ReplyFields};

use super::{Encryption, Peer};

/// A request as bytes; borrows from the connection's input.
#[derive(Clone, Copy, Debug)]
pub struct WireRequest<'a> {
    /// The command: one BSON document, of which only the length and the final zero are checked.
    pub body: &'a [u8],
    /// The document sequences beside it.
    pub sequences: &'a [DocumentSequence<'a>],
}

/// The outcome of a request of an older operation.
pub struct LegacyAnswer {
    /// As for any request.
    pub handled: Handled,
    /// The fields in front of the documents that were appended; they mean nothing where no reply is due.
    pub fields: ReplyFields,
}

/// Tells a request that its peer has closed the connection.
pub type HangUp = Box<dyn Fn() + Send>;

/// Answers requests. One handler serves all connections from many threads.
pub trait Handler: Send + Sync + 'static {
    /// The handler's state of one connection. It needs no lock: a connection has one request under way at a
    /// time.
    type Session: Send + 'static;

    /// Begins the session of a new connection.
    fn connected(&self, peer: &Peer) -> Self::Session;

    /// A connection was closed as it came, because there are too many.
    fn rejected(&self) {}

    /// The TLS handshake of a new connection is complete.
    fn encrypted(&self, session: &mut Self::Session, encryption: Encryption) {
        let _is_of_no_interest = (session, encryption);
    }

    /// Whether the client may send messages of any size and in its own time: always, unless it has to log in
    /// first.
    fn is_trusted(&self, session: &Self::Session) -> bool {
        let _needs_no_login = session;
        true
    }

    /// Answers one request by appending one document to `reply`. A panic is caught and closes the connection.
    ///
    /// After [`Handled::WouldBlock`] the next request of the session is the same one, so the session may keep
    /// its state.
    fn handle(
        &self,
        session: &mut Self::Session,
        request: &WireRequest<'_>,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> Handled;

    /// Answers one request of an older operation, as [`Handler::handle`] does a message. The reply is any
    /// number of documents.
    fn handle_legacy(
        &self,
        session: &mut Self::Session,
        request: &LegacyRequest<'_>,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> LegacyAnswer;

    /// The threads that a request takes where it has to wait, by its command document.
    fn priority(&self, command: &[u8]) -> Priority {
        let _is_one_of_many = command;
        Priority::Normal
    }

    /// Whether older operations come to [`Handler::handle_legacy`], beside the first commands of today's
    /// drivers.
    fn legacy_protocol(&self) -> LegacyProtocol {
        LegacyProtocol::Refused
    }

    /// Whether the request that was just answered has further replies. Its client is asked no further: the
    /// same request is handled again for each. Only clients that allow it get such a stream.
    fn has_further_replies(&self, session: &Self::Session) -> bool {
        let _has_one_reply = session;
        false
    }

    /// A function that tells the request of a session, while it is on another thread, that the peer has
    /// closed the connection. The answer may not be needed any more.
    fn on_hang_up(&self, session: &Self::Session) -> Option<HangUp> {
        let _cannot_be_told = session;
        None
    }

    /// The peer does not read its replies, so the connection cannot go on for an unknown time. A request that
    /// [would have blocked](Handled::WouldBlock) is handled again only then, and must hold no resource
    /// meanwhile. The replies take so many bytes of memory.
    fn stalled(&self, session: &mut Self::Session, unsent_bytes: usize) {
        let _holds_nothing = (session, unsent_bytes);
    }

    /// The peer has read the replies of a connection that was [stalled](Handler::stalled).
    fn resumed(&self, session: &mut Self::Session) {
        let _holds_nothing = session;
    }

    /// A message was answered, or needs no answer.
    fn exchanged(&self, session: &Self::Session, traffic: MessageTraffic) {
        let _is_not_counted = (session, traffic);
    }

    /// Ends the session of a closed connection, perhaps within a stream of replies.
    fn disconnected(&self, session: Self::Session, stream: StreamState) {
        drop((session, stream));
    }
}
