//! A thread that drives many clients with one epoll loop.
//!
//! 1. Every client sends its first request.
//! 2. A reply that comes is timed and judged, and its client's next request goes out at once.
//! 3. The *edges* of the run (beginning of the window, each of its seconds, its end) are noticed with the time that each
//!    reply needs anyway: one comparison per reply. What is done within the window counts, wherever it began.
//! 4. After the end nobody sends any more; the loop ends when the last replies have come or [`GRACE`] is over.
//!
//! A client whose connection breaks counts a failure and is out; its worker goes on while it has clients.

use super::{Connection, Tally, ThreadUsage};
use crate::error::BenchError;
use mio::{Events, Interest, Poll, Token};
use std::time::{Duration, Instant};

/// How long to wait for the last replies.
const GRACE: Duration = Duration::from_secs(5);
/// Room for one read. Replies of point queries have some hundred bytes; longer ones come in pieces.
const BUFFER_BYTES: usize = 64 * 1024;
/// Events taken from the kernel at once.
const EVENTS: usize = 256;
const SECOND: Duration = Duration::from_secs(1);

/// The measured part of a run.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Its beginning, after the warm-up.
    pub from: Instant,
    /// Its length in whole seconds.
    pub seconds: u32,
}

impl Window {
    /// Its end.
    pub fn to(&self) -> Instant {
        self.from + SECOND * self.seconds
    }
}

/// A worker, its clients, and what it has counted so far.
pub struct Worker {
    poll: Poll,
    connections: Vec<Connection>,
    /// Clients that are not out.
    alive: usize,
    buffer: Vec<u8>,
    window: Window,
    phase: Phase,
    next_edge: Instant,
    usage_before: ThreadUsage,
    tally: Tally,
}

/// Where in the run the worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    WarmUp,
    /// In the window, in this second of it.
    Measuring(u32),
    /// Waiting for the last replies.
    Draining,
    Over,
}

impl Worker {
    /// A worker for these clients.
    pub fn new(mut connections: Vec<Connection>, window: Window) -> Result<Worker, BenchError> {
        let resource = |source| BenchError::Resource { what: "an epoll instance", source };
        let poll = Poll::new().map_err(resource)?;
        for (index, connection) in connections.iter_mut().enumerate() {
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(connection.source(), Token(index), interest).map_err(resource)?;
        }
        Ok(Worker {
            poll,
            alive: connections.len(),
            connections,
            buffer: vec![0; BUFFER_BYTES],
            window,
            phase: Phase::WarmUp,
            next_edge: window.from,
            usage_before: ThreadUsage::default(),
            tally: Tally::new(),
        })
    }

    /// Runs to the end.
    pub fn run(mut self) -> Result<Tally, BenchError> {
        let mut events = Events::with_capacity(EVENTS);
        for index in 0..self.connections.len() {
            let sent = self.connections[index].send(Instant::now());
            self.count_out(index, sent);
        }
        while self.phase != Phase::Over && self.alive > 0 {
            let now = Instant::now();
            self.pass_edges(now)?;
            let timeout = self.next_edge.saturating_duration_since(now);
            match self.poll.poll(&mut events, Some(timeout)) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(BenchError::Resource { what: "waiting for events", source }),
            }
            for event in &events {
                let index = event.token().0;
                let served = self.serve(index, event.is_readable());
                self.count_out(index, served);
            }
            self.end_if_drained();
        }
        // Without clients the window has no edges that anybody would notice.
        self.pass_edges(self.window.to().max(Instant::now()))?;
        Ok(self.tally)
    }

    fn serve(&mut self, index: usize, readable: bool) -> Result<(), BenchError> {
        self.connections[index].write_on()?;
        if !readable || !self.connections[index].is_waiting() {
            return Ok(());
        }
        let Some(reply) = self.connections[index].receive(&mut self.buffer)? else { return Ok(()) };
        self.pass_edges(reply.received_at)?;
        if let Phase::Measuring(second) = self.phase {
            let latency = reply.received_at.duration_since(reply.sent_at);
            self.tally.record(second as usize, latency, reply.verdict);
        }
        match self.phase {
            // The next request is sent as of this reply's arrival: making it is part of its latency.
            Phase::WarmUp | Phase::Measuring(_) => self.connections[index].send(reply.received_at),
            Phase::Draining | Phase::Over => Ok(()),
        }
    }

    /// A client whose connection broke is out.
    fn count_out(&mut self, index: usize, served: Result<(), BenchError>) {
        let Err(error) = served else { return };
        self.alive = self.alive.saturating_sub(1);
        // Nothing can be done about a source that the kernel has forgotten already.
        let _ = self.poll.registry().deregister(self.connections[index].source());
        let cause = std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
        self.tally.fail(format!("{error}{cause}"));
    }

    /// Moves on through the phases whose edges have passed.
    fn pass_edges(&mut self, now: Instant) -> Result<(), BenchError> {
        while now >= self.next_edge && self.phase != Phase::Over {
            (self.phase, self.next_edge) = match self.phase {
                Phase::WarmUp => {
                    self.usage_before = ThreadUsage::now()?;
                    (Phase::Measuring(0), self.window.from + SECOND)
                }
                Phase::Measuring(second) if second + 1 < self.window.seconds => {
                    (Phase::Measuring(second + 1), self.next_edge + SECOND)
                }
                Phase::Measuring(_) => {
                    self.tally.threads = vec![ThreadUsage::now()?.since(&self.usage_before)];
                    (Phase::Draining, self.window.to() + GRACE)
                }
                Phase::Draining | Phase::Over => (Phase::Over, self.next_edge),
            };
        }
        Ok(())
    }

    fn end_if_drained(&mut self) {
        if self.phase == Phase::Draining && !self.connections.iter().any(Connection::is_waiting) {
            self.phase = Phase::Over;
        }
    }
}
