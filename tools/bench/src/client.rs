//! The client: lean, so that it is not what is measured. No driver, no allocation per request.
//!
//! - [`Session`]: a blocking connection, for commands outside the measured window and for loading.
//! - [`Connection`]: one client of a run: its socket, its [`Script`], what it waits for.
//! - [`Worker`]: a thread that drives many connections with one epoll loop; each query costs one read and one write.
//! - [`Tally`]: what a worker counted in the measured window.
//! - [`NullServer`]: answers everything at once with the same reply, to measure the client itself.
//!
//! The loop is closed: a client sends its next request when it has the reply to its last. So a stall of the server
//! shows once per client, and latencies are service times.

mod connection;
mod null_server;
mod reply;
mod session;
mod tally;
mod thread_usage;
mod worker;

pub use connection::Connection;
pub use null_server::NullServer;
pub use reply::{Outcome, outcome_of};
pub use session::Session;
pub use tally::Tally;
pub use thread_usage::ThreadUsage;
pub use worker::{Window, Worker};

/// What one client does.
pub trait Script: Send {
    /// Appends the next request, with this id, to `out`.
    fn request(&mut self, request_id: i32, out: &mut Vec<u8>);

    /// Looks at the body of the reply to the request before; `body` is a whole document by its length and its end.
    fn judge(&mut self, body: &pando_document::RawDocument) -> Verdict;
}

/// How a request went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did what it should.
    Done,
    /// The server answered well, but did not find what must be there.
    Missed,
    /// The server refused it, or the reply is not what it must be.
    Failed(String),
}
