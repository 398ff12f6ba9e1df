//! The clients. They are lean, so that a run measures the server and not them: no driver, no allocation per
//! request.
//!
//! - [`Session`]: a blocking connection, for commands outside the measured window, and for tasks.
//! - [`Script`]: what a client does, request by request; [`Connection`] is its socket, and what it waits for.
//! - [`Worker`]: a thread that drives many connections with one epoll loop; each query costs one read and one
//!   write.
//! - [`Task`]: what a client does that has a thread of its own; [`Crew`] is all of these.
//! - [`EmbeddedStore`]: an engine in this process, whose clients have no socket.
//! - [`Pace`]: a closed loop, or an open one with its [`Schedule`](schedule::Schedule).
//! - [`Tally`]: what was counted in the measured window.
//! - [`NullServer`]: answers everything at once with the same reply, to measure the client itself.
//!
//! In a closed loop a client begins its next unit when the last is over: a stall of the server shows once per
//! client, and latencies are service times. In an open loop units begin by schedule, and latencies count from
//! there.

mod address;
mod connection;
mod crew;
mod embedded;
mod login;
mod null_server;
mod reply;
mod schedule;
mod script;
mod server_stream;
mod session;
mod session_id;
mod tally;
mod task;
mod thread_usage;
mod timer;
mod worker;

pub use address::{Address, Place};
pub use null_server::Listening;
pub use script::{Kind, Note, Turn, Verdict};
pub use task::{ClientState, Performed, Statement, Task};

pub(crate) use connection::Connection;
pub(crate) use crew::{Crew, GRACE as CREW_GRACE};
pub(crate) use embedded::{
    EmbeddedClient, EmbeddedSession, EmbeddedStore, Record, SCHEME as EMBEDDED_SCHEME,
};
pub(crate) use login::Login;
pub(crate) use null_server::NullServer;
pub(crate) use reply::{Outcome, outcome_of};
pub(crate) use schedule::{Draws, Pace, Schedule, Spacing};
pub(crate) use script::{Judgement, Next, Script};
pub(crate) use server_stream::TlsOf;
pub(crate) use session::Session;
pub(crate) use session_id::session_id;
#[cfg(test)]
pub(crate) use tally::UnitEnd;
pub(crate) use tally::{INTERVAL_S, IntervalTally, KindTally, Misses, Second, Tally};
pub(crate) use thread_usage::ThreadUsage;
pub(crate) use worker::{Orders, Window, Worker};

/// All clients of a run.
#[derive(Default)]
pub struct Clients {
    /// Connections that a few threads drive.
    pub scripts: Vec<Box<dyn Script>>,
    /// Threads that wait. Beside scripts they keep their own pace.
    pub tasks: Vec<Box<dyn Task>>,
}

impl Clients {
    /// Scripts only.
    pub fn of_scripts(scripts: Vec<Box<dyn Script>>) -> Clients {
        Clients { scripts, tasks: Vec::new() }
    }
}
