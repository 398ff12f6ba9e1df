//! The event loop of one I/O thread.
//!
//! 1. Take the notes from the inbox: new connections, requests that came back from the pool, waits that are over.
//! 2. Send the reads that requests wait for to the kernel, take back what came, and handle those requests again.
//! 3. Give a turn to each connection that had more to read than its last turn allowed.
//! 4. Once in a while, let others have the processor.
//! 5. Poll: without waiting if there is anything left to do, otherwise until a socket or a note reports.
//! 6. Advance each connection whose socket reported.
//!
//! Invariants: a connection belongs to one thread for life. A slot is not given to another connection while a note about it
//! may still come, that is, while its request is with the pool or waits for a read, or its reply waits.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use slab::Slab;
use tracing::{debug, error, warn};

use super::blocking_pool::BlockingPool;
use super::connection::{Connection, Next};
use super::desk::{Accepted, Desk, Note, Slot};
use super::exchange::panic_text;
use super::handler::Handler;
use super::inbox::{Inbox, WAKE_TOKEN};
use super::reads::{ReadEnd, Reads};

/// One read of a connection that has nothing buffered. Most requests fit many times over.
const RECEIVE_BYTES: usize = 64 * 1024;
/// The token under which the queue of reads reports.
const READS_TOKEN: Token = Token(WAKE_TOKEN.0 - 1);
/// Turns of the loop after which another thread may have the processor. A loop that always finds something to do keeps it for a
/// whole time slice of the scheduler (3 ms), in which clients on the same machine, and so the other I/O threads, run out of work:
/// 10 % of two processors were idle under full load. Fewer turns cost more switches than they bring.
const TURNS_BEFORE_YIELD: u32 = 8;
/// Events taken from one poll.
const EVENTS_MAX: usize = 1024;

/// One I/O thread.
pub(crate) struct IoThread<H: Handler> {
    poll: Poll,
    desk: Desk<H>,
    connections: Slab<Connection<H::Session>>,
    notes: Vec<Note<H::Session>>,
    queued_reads: usize,
    ended_reads: Vec<(Slot, ReadEnd)>,
    again: Vec<Slot>,
    stop_at: Option<Instant>,
}

impl<H: Handler> IoThread<H> {
    pub(crate) fn new(handler: Arc<H>, pool: BlockingPool, queued_reads: usize) -> io::Result<IoThread<H>> {
        let poll = Poll::new()?;
        let inbox = Arc::new(Inbox::new(&poll)?);
        let desk = Desk::new(handler, pool, inbox, RECEIVE_BYTES);
        Ok(IoThread {
            poll,
            desk,
            connections: Slab::new(),
            notes: Vec::new(),
            queued_reads,
            ended_reads: Vec::new(),
            again: Vec::new(),
            stop_at: None,
        })
    }

    pub(crate) fn inbox(&self) -> Arc<Inbox<Note<H::Session>>> {
        Arc::clone(&self.desk.inbox)
    }

    /// Runs until it was told to stop and has no connection left, or its time is up.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        self.open_reads();
        let mut turns = 0;
        loop {
            self.read_notes();
            self.exchange_reads();
            self.give_turns();
            // Here, and not after the poll: the last connection may just have ended, and nothing would end the poll.
            if self.is_finished() {
                return;
            }
            turns += 1;
            if turns == TURNS_BEFORE_YIELD {
                turns = 0;
                std::thread::yield_now();
            }
            let idle = self.again.is_empty() && !self.desk.reads.is_busy() && self.desk.inbox.may_sleep();
            let timeout = if idle { self.time_left() } else { Some(Duration::ZERO) };
            let polled = self.poll.poll(&mut events, timeout);
            self.desk.inbox.awake();
            match polled {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    error!(%error, "an I/O thread cannot poll its connections and ends");
                    return;
                }
            }
            for event in &events {
                if event.token() != WAKE_TOKEN && event.token() != READS_TOKEN {
                    let slot = Slot(event.token().0);
                    if let Some(connection) = self.connections.get_mut(slot.0) {
                        connection.note_event(event);
                        self.advance(slot);
                    }
                }
            }
        }
    }

    fn is_finished(&self) -> bool {
        match self.stop_at {
            None => false,
            Some(_) if self.connections.is_empty() => true,
            Some(stop_at) if Instant::now() >= stop_at => {
                warn!(
                    connections = self.connections.len(),
                    "requests were still under way when the time to stop was up"
                );
                true
            }
            Some(_) => false,
        }
    }

    /// How long a poll may wait: for ever, unless the server is stopping.
    fn time_left(&self) -> Option<Duration> {
        self.stop_at.map(|stop_at| stop_at.saturating_duration_since(Instant::now()))
    }

    /// Opens the queue of reads; here, because it belongs to the thread that opens it.
    fn open_reads(&mut self) {
        let reads = Reads::open(self.queued_reads);
        if let Some(descriptor) = reads.descriptor() {
            let registry = self.poll.registry();
            if let Err(error) = registry.register(&mut SourceFd(&descriptor), READS_TOKEN, Interest::READABLE)
            {
                warn!(%error, "cannot watch the queue of reads: requests that need the device wait in blocking threads");
                return;
            }
        }
        self.desk.reads = reads;
    }

    /// Sends reads to the kernel and goes on with the requests whose reads have come back.
    fn exchange_reads(&mut self) {
        let mut ended = std::mem::take(&mut self.ended_reads);
        self.desk.reads.exchange(&mut ended);
        for (slot, end) in ended.drain(..) {
            let connection =
                self.connections.get_mut(slot.0).expect("a slot is kept while its request reads");
            connection.end_read(end);
            self.advance(slot);
            if self.stop_at.is_some() {
                self.resume(slot);
            }
        }
        self.ended_reads = ended;
    }

    fn read_notes(&mut self) {
        let mut notes = std::mem::take(&mut self.notes);
        self.desk.inbox.take(&mut notes);
        for note in notes.drain(..) {
            match note {
                Note::Accepted(accepted) => self.welcome(accepted),
                Note::Back(slot, returned) => {
                    let connection =
                        self.connections.get_mut(slot.0).expect("a slot is kept while its request is away");
                    connection.come_back(returned, &mut self.desk);
                    self.resume(slot);
                }
                Note::WaitOver(slot, outcome) => {
                    let connection =
                        self.connections.get_mut(slot.0).expect("a slot is kept while its reply waits");
                    connection.end_wait(outcome, &mut self.desk);
                    self.resume(slot);
                }
                Note::Stop(stop_at) => self.stop(stop_at),
            }
        }
        self.notes = notes;
    }

    /// Lets a connection go on whose request is answered; or, when the server stops, not.
    fn resume(&mut self, slot: Slot) {
        if self.stop_at.is_some()
            && let Some(connection) = self.connections.get_mut(slot.0)
        {
            connection.dismiss();
        }
        self.advance(slot);
    }

    fn give_turns(&mut self) {
        // Those that want yet another turn come after everybody who reports in the meantime.
        let turns = std::mem::take(&mut self.again);
        for slot in turns {
            self.advance(slot);
        }
    }

    fn advance(&mut self, slot: Slot) {
        let Some(connection) = self.connections.get_mut(slot.0) else { return };
        let desk = &mut self.desk;
        let next =
            catch_unwind(AssertUnwindSafe(|| connection.advance(slot, desk))).unwrap_or_else(|panic| {
                // Handlers' panics are caught closer to them: this is a defect of the network side. It costs one connection.
                error!(panic = panic_text(panic.as_ref()), "a connection panicked and is closed");
                self.desk.clear_up(RECEIVE_BYTES);
                connection.lost()
            });
        match next {
            Next::Rest => {}
            Next::Again if self.again.contains(&slot) => {}
            Next::Again => self.again.push(slot),
            Next::Close => self.close(slot),
        }
        assert!(self.desk.out.is_empty(), "replies of one connection must not stay for the next");
    }

    fn welcome(&mut self, accepted: Accepted) {
        if self.stop_at.is_some() {
            return;
        }
        let handler = &self.desk.handler;
        let session = match catch_unwind(AssertUnwindSafe(|| handler.connected(&accepted.peer))) {
            Ok(session) => session,
            Err(panic) => {
                error!(
                    panic = panic_text(panic.as_ref()),
                    "the beginning of a connection panicked; it is closed"
                );
                return;
            }
        };
        debug!(peer = %accepted.peer, "connection accepted");
        let entry = self.connections.vacant_entry();
        let slot = Slot(entry.key());
        let connection = entry.insert(Connection::new(accepted, session));
        let socket = connection.raw_socket();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(&mut SourceFd(&socket), Token(slot.0), interest) {
            error!(%error, "cannot watch a connection; it is closed");
            self.close(slot);
        }
    }

    /// Ends a connection. Closing its socket takes it out of the poll.
    fn close(&mut self, slot: Slot) {
        let mut connection = self.connections.remove(slot.0);
        self.again.retain(|again| *again != slot);
        if let Some(session) = connection.take_session() {
            let handler = &self.desk.handler;
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| handler.disconnected(session))) {
                error!(panic = panic_text(panic.as_ref()), "the end of a connection panicked");
            }
        }
    }

    /// Begins to stop: connections at rest are closed, the others once they have their answer.
    fn stop(&mut self, stop_at: Instant) {
        self.stop_at = Some(stop_at);
        let slots: Vec<Slot> = self.connections.iter().map(|(slot, _)| Slot(slot)).collect();
        for slot in slots {
            let connection = &mut self.connections[slot.0];
            connection.dismiss();
            if connection.is_at_rest() {
                self.close(slot);
            }
        }
    }
}
