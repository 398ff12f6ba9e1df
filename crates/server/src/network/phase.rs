//! The phase of the request that a connection has under way.

use super::responder::LateReply;

/// The phase of the current request. Only while serving may the next frame be handled.
#[derive(Debug)]
pub(super) enum Phase {
    /// A TLS handshake is under way. No message has come yet.
    Handshake,
    /// No request is under way.
    Serving,
    /// A request, whose frame is the repeated one or stands first in the input, waits for a block read.
    Reading,
    /// A request is in the blocking pool, and the session with it.
    InPool,
    /// A reply waits for the log.
    Waiting(LateReply),
    /// A request waits for another one, without a thread, and is handled again: with this frame in the pool,
    /// or with that at the front of the input.
    Suspended(Option<Vec<u8>>),
    /// No request is handled any more. The connection closes once the output is sent.
    Closing,
}

/// The state of a request at the end of its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// It is answered.
    Answered,
    /// It is handled again.
    RequestGoesOn,
}
