//! The outcome of a request, for the caller that brings replies to clients.

use std::sync::Arc;

use pando_environment::MissedRead;

use crate::reply_wait::ReplyWait;

/// The outcome of a request.
pub enum Handled {
    /// The reply document stands in the buffer and may be sent.
    Reply,
    /// The reply document stands in the buffer and must not be sent before the wait is over.
    ReplyLater(Box<dyn ReplyWait>),
    /// The answer needs the device. The request has changed and written nothing. Handle it again with
    /// [`BlockingMode::MayBlock`](crate::BlockingMode::MayBlock), or after the missed read was made, where
    /// the engine can name it. The next request of the connection is the same one; until then the connection
    /// keeps the state of a suspended find.
    WouldBlock(Option<Arc<dyn MissedRead>>),
    /// The request has changed and written nothing, and cannot go on before the end of the wait. Handle it
    /// again then, in the same way. Only for a [resumable](crate::ConnectionState::resumable) connection.
    Again(Box<dyn ReplyWait>),
}
