//! A thread that drives many clients with one epoll loop.
//!
//! # Closed loop
//! 1. Every client sends the first request of its first unit.
//! 2. A reply that comes is timed and judged; its client's next request, of the same unit or the next, goes
//!    out at once.
//!
//! # Open loop
//! 1. All clients are idle; a [`Schedule`] says when the next unit is to begin, and a [`Timer`] rings then.
//! 2. An idle client takes each unit that is due. If none is idle, the unit waits for the first that gets
//!    free; its latency counts from when it was due.
//!
//! # Both
//! - The *edges* of the run (beginning of the window, each of its seconds, its end) are noticed with the time
//!   that each reply needs anyway: one comparison per reply. Work that ends within the window counts,
//!   wherever it began.
//! - After the end nobody begins a unit any more; units under way go on to their end, or until [`GRACE`] is
//!   over.
//! - A client whose connection breaks counts a failure and is out; its worker goes on while it has clients. A
//!   client whose script is over is out, too; when all are, the worker is over, before the end of the window
//!   if need be.

use super::connection::{Reply, State};
use super::schedule::{Pace, Schedule};
use super::script::{Next, Note};
use super::tally::{Misses, Notes, UnitEnd, add_notes};
use super::timer::Timer;
use super::{Connection, Statement, Tally, ThreadUsage};
use crate::error::{BenchError, no_resource};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long to wait for the last replies: a server may stand still for a checkpoint when the window ends.
const GRACE: Duration = Duration::from_secs(30);
/// Room for one read. Replies of point queries have some hundred bytes; longer ones come in pieces.
const BUFFER_BYTES: usize = 64 * 1024;
/// Events taken from the kernel at once.
const EVENTS: usize = 256;
const SECOND: Duration = Duration::from_secs(1);
/// The token of the timer; connections have their places.
const TIMER: Token = Token(usize::MAX);

#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// When the clients begin.
    pub start: Instant,
    /// Its beginning, after the warm-up.
    pub from: Instant,
    /// Its length in whole seconds.
    pub seconds: u32,
}

impl Window {
    pub fn to(&self) -> Instant {
        self.from + SECOND * self.seconds
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Orders {
    pub window: Window,
    /// How fast to go.
    pub pace: Pace,
    /// Its place among the workers, from 0.
    pub part: u32,
    /// How many workers there are.
    pub parts: u32,
    pub kinds: usize,
    /// Whether a miss is a fault or part of the work.
    pub misses: Misses,
    /// Seconds of the intervals whose latencies are kept apart.
    pub interval_s: u32,
}

impl Orders {
    /// A tally for what is ordered.
    pub fn tally(&self) -> Tally {
        let tally = match self.pace {
            Pace::Closed => Tally::new(self.kinds, self.misses),
            Pace::Open { .. } => Tally::of_open_loop(self.kinds, self.misses),
        };
        tally.by_intervals_of(self.interval_s)
    }
}

/// A worker, its clients, and what it has counted so far.
pub struct Worker {
    poll: Poll,
    connections: Vec<Connection>,
    /// Clients that are not out.
    alive: usize,
    /// Of an open loop: when units are due, what wakes for them, and who is free.
    arrivals: Option<Arrivals>,
    buffer: Vec<u8>,
    window: Window,
    phase: Phase,
    next_edge: Instant,
    usage_before: ThreadUsage,
    tally: Tally,
    /// The counts of the scripts when the window opened. A client that was out by then is not among them, so
    /// that its end is told.
    notes_before: Notes,
    /// Operations that were done as of the last edge, for whoever prints progress.
    done: Arc<AtomicU64>,
}

struct Arrivals {
    schedule: Schedule,
    timer: Timer,
    /// The clients between two units; the one that got free last begins next, its memory being warm.
    idle: Vec<usize>,
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
    /// A worker for these clients; it tells in `done`, every second, how many operations it has done.
    pub fn new(
        connections: Vec<Connection>,
        orders: Orders,
        done: Arc<AtomicU64>,
    ) -> Result<Worker, BenchError> {
        let resource = no_resource("an epoll instance");
        let poll = Poll::new().map_err(resource)?;
        for (index, connection) in connections.iter().enumerate() {
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry()
                .register(&mut SourceFd(&connection.file()), Token(index), interest)
                .map_err(resource)?;
        }
        let Orders { window, pace, part, parts, .. } = orders;
        let arrivals = match pace.schedule(window.start, part, parts) {
            Some(schedule) => {
                let timer = Timer::new(poll.registry(), TIMER)?;
                Some(Arrivals { schedule, timer, idle: (0..connections.len()).collect() })
            }
            None => None,
        };
        Ok(Worker {
            poll,
            alive: connections.len(),
            connections,
            arrivals,
            buffer: vec![0; BUFFER_BYTES],
            window,
            phase: Phase::WarmUp,
            next_edge: window.from,
            usage_before: ThreadUsage::default(),
            tally: orders.tally(),
            notes_before: Notes::new(),
            done,
        })
    }

    pub fn run(mut self) -> Result<Tally, BenchError> {
        let mut events = Events::with_capacity(EVENTS);
        self.usage_before = ThreadUsage::now()?;
        if self.arrivals.is_none() {
            for index in 0..self.connections.len() {
                let now = Instant::now();
                let begun = self.connections[index].begin_unit(now, now);
                self.after(index, begun);
            }
        }
        while self.phase != Phase::Over && self.alive > 0 {
            let now = Instant::now();
            self.pass_edges(now)?;
            self.begin_due_units(now)?;
            // The clients of an open loop may all be idle at the end: no event would come.
            self.end_if_drained();
            if self.phase == Phase::Over {
                break;
            }
            let timeout = self.next_edge.saturating_duration_since(now);
            match self.poll.poll(&mut events, Some(timeout)) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(BenchError::Resource { what: "waiting for events", source }),
            }
            // Scripts count replies when they judge them: an edge is to be noticed before that.
            self.pass_edges(Instant::now())?;
            for event in events.iter().filter(|event| event.token() != TIMER) {
                let index = event.token().0;
                let served = self.serve(index, event.is_readable());
                self.after(index, served);
            }
        }
        self.finish()
    }

    fn serve(&mut self, index: usize, readable: bool) -> Result<(), BenchError> {
        let connection = &mut self.connections[index];
        if connection.state() == State::Out {
            return Ok(());
        }
        connection.write_on()?;
        if !readable || connection.state() != State::Waiting {
            return Ok(());
        }
        let Some(reply) = connection.receive(&mut self.buffer)? else { return Ok(()) };
        self.pass_edges(reply.received_at)?;
        let (next, received_at) = (reply.judgement.next, reply.received_at);
        self.count(reply);
        match (next, self.phase) {
            (Next::Request | Next::Again, _) => self.connections[index].go_on(),
            (Next::Unit { .. }, Phase::Draining | Phase::Over) => Ok(()),
            (Next::Unit { .. }, _) => match &mut self.arrivals {
                // The next unit begins as of this reply's arrival: making its request is part of its latency.
                None => self.connections[index].begin_unit(received_at, received_at),
                Some(arrivals) => {
                    arrivals.idle.push(index);
                    Ok(())
                }
            },
        }
    }

    fn count(&mut self, reply: Reply) {
        let Reply { times, received_at, judgement } = reply;
        let second = match self.phase {
            Phase::WarmUp => return,
            Phase::Measuring(second) => second,
            Phase::Draining | Phase::Over => {
                self.tally.answered_late(times.intended, self.window.to());
                return;
            }
        };
        let since = |moment| received_at.saturating_duration_since(moment);
        if judgement.next == Next::Again {
            self.tally.retried += 1;
            return;
        }
        if let Some(kind) = judgement.statement {
            let latency = since(times.statement);
            let statement = Statement { kind, latency, verdict: judgement.verdict.clone() };
            self.tally.statement(&statement, second as usize, received_at);
        }
        if let Next::Unit { operations } = judgement.next {
            let (latency, service) = (since(times.intended), since(times.begun));
            let verdict = judgement.verdict;
            self.tally.unit(UnitEnd { second: second as usize, latency, service, verdict, operations });
        }
    }

    /// Of an open loop: lets idle clients take the units that are due, and sets the timer for the next one.
    fn begin_due_units(&mut self, now: Instant) -> Result<(), BenchError> {
        let mut began = Vec::new();
        {
            let Some(arrivals) = &mut self.arrivals else { return Ok(()) };
            if matches!(self.phase, Phase::Draining | Phase::Over) {
                return Ok(());
            }
            while arrivals.schedule.due() <= now {
                let Some(index) = arrivals.idle.pop() else { return self.note_begun(began) };
                let intended = arrivals.schedule.take();
                began.push((index, self.connections[index].begin_unit(intended, Instant::now())));
            }
            arrivals.timer.ring_after(arrivals.schedule.due().saturating_duration_since(Instant::now()))?;
        }
        self.note_begun(began)
    }

    fn note_begun(&mut self, began: Vec<(usize, Result<(), BenchError>)>) -> Result<(), BenchError> {
        began.into_iter().for_each(|(index, begun)| self.after(index, begun));
        Ok(())
    }

    /// After a client did something: one whose connection broke, or whose script is over, is out.
    fn after(&mut self, index: usize, served: Result<(), BenchError>) {
        let connection = &mut self.connections[index];
        if let Err(error) = served {
            let cause =
                std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
            self.tally.fail(format!("{error}{cause}"));
        } else if connection.state() != State::Over {
            return;
        }
        connection.leave();
        // The kernel may have forgotten the source already.
        let _ = self.poll.registry().deregister(&mut SourceFd(&connection.file()));
        self.alive = self.alive.saturating_sub(1);
    }

    fn pass_edges(&mut self, now: Instant) -> Result<(), BenchError> {
        while now >= self.next_edge && self.phase != Phase::Over {
            (self.phase, self.next_edge) = match self.phase {
                Phase::WarmUp => {
                    self.usage_before = ThreadUsage::now()?;
                    let is_in = |connection: &&Connection| connection.state() != State::Out;
                    let clients = self.connections.iter().filter(is_in);
                    clients.for_each(|client| add_notes(&mut self.notes_before, &client.notes()));
                    (Phase::Measuring(0), self.window.from + SECOND)
                }
                Phase::Measuring(second) if second + 1 < self.window.seconds => {
                    self.done.store(self.tally.operations(), Ordering::Relaxed);
                    (Phase::Measuring(second + 1), self.next_edge + SECOND)
                }
                Phase::Measuring(_) => {
                    self.tally.threads = vec![ThreadUsage::now()?.since(&self.usage_before)];
                    self.note_window();
                    (Phase::Draining, self.window.to() + GRACE)
                }
                Phase::Draining | Phase::Over => (Phase::Over, self.next_edge),
            };
        }
        Ok(())
    }

    fn end_if_drained(&mut self) {
        let waits = |connection: &Connection| connection.state() == State::Waiting;
        if self.phase == Phase::Draining && !self.connections.iter().any(waits) {
            self.phase = Phase::Over;
        }
    }

    /// The counts; a worker whose clients were all out before the window's end says when.
    fn finish(mut self) -> Result<Tally, BenchError> {
        let now = Instant::now();
        self.pass_edges(now)?;
        if matches!(self.phase, Phase::WarmUp | Phase::Measuring(_)) {
            self.tally.threads = vec![ThreadUsage::now()?.since(&self.usage_before)];
            self.tally.over_at = Some(now);
            self.note_window();
        }
        let undone = self.connections.iter().filter(|connection| connection.state() == State::Waiting);
        self.tally.fail_unanswered(undone.count(), GRACE);
        // No unit has begun after the window.
        self.tally.schedules.extend(self.arrivals.map(|arrivals| arrivals.schedule));
        Ok(self.tally)
    }

    /// Takes in what the scripts counted since the window opened.
    fn note_window(&mut self) {
        let notes: Vec<Note> = self.connections.iter().flat_map(Connection::notes).collect();
        self.tally.note(&notes, &self.notes_before);
    }
}
