//! The event loop of one I/O thread.
//!
//! # A turn of the loop
//! 1. Take the messages from the inbox: new connections, requests that came back from the pool, waits that
//!    are over.
//! 2. Give the queued block reads to the kernel, take the completed ones, and handle their requests again.
//! 3. Give a turn to each connection that had more to read than its last turn allowed.
//! 4. Once a second, end the connections that have owed something for too long.
//! 5. Every eighth turn, yield the processor.
//! 6. Poll. With work left the poll does not wait; otherwise it waits for a socket or a message.
//! 7. Advance each connection whose socket reported.
//!
//! # Invariants
//! - A connection belongs to one thread for life.
//! - A slot is not given to another connection while a message about it may still come. That is the case
//!   while its request is in the pool, waits for a read or is suspended, and while its reply waits.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use slab::Slab;
use tracing::{debug, error, warn};

use super::Limits;
use super::blocking_pool::BlockingPools;
use super::connection::{Connection, Next};
use super::handler::Handler;
use super::inbox::{Inbox, WAKE_TOKEN};
use super::phase::WaitEnd;
use super::reads::{ReadEnd, Reads};
use super::thread_state::{Accepted, Slot, ThreadMessage, ThreadState};
use super::watch::{Patience, Patiences, WatchList};
use crate::error_text::panic_text;

/// One read of a connection without input. Most requests fit many times over.
const RECEIVE_BYTES: usize = 64 * 1024;
/// The token under which the queue of block reads reports.
const READS_TOKEN: Token = Token(WAKE_TOKEN.0 - 1);
/// Turns of the loop after which it yields the processor. A loop that always has work keeps the processor for
/// a whole time slice of the scheduler (3 ms). Clients on the same machine, and so the other I/O threads, run
/// out of work meanwhile: 10 % of two processors were idle under full load. Yielding more often costs more
/// switches than it gains.
const TURNS_BEFORE_YIELD: u32 = 8;
/// Connections that one log line names.
const PEERS_SHOWN_MAX: usize = 5;
/// The time after which throttled connections have another turn.
const THROTTLE_STEP: Duration = Duration::from_millis(5);
/// Events taken from one poll.
const EVENTS_MAX: usize = 1024;

/// One I/O thread.
pub(crate) struct IoThread<H: Handler> {
    poll: Poll,
    state: ThreadState<H>,
    connections: Slab<Connection<H::Session>>,
    messages: Vec<ThreadMessage<H::Session>>,
    queued_reads: usize,
    ended_reads: Vec<(Slot, ReadEnd)>,
    /// Connections that want another turn.
    again: Vec<Slot>,
    /// Connections that want another turn in a while.
    throttled: Vec<Slot>,
    watch_list: WatchList,
    patiences: Patiences,
    stop_at: Option<Instant>,
}

impl<H: Handler> IoThread<H> {
    pub(crate) fn new(handler: Arc<H>, pools: BlockingPools, limits: Limits) -> io::Result<IoThread<H>> {
        let poll = Poll::new()?;
        let inbox = Arc::new(Inbox::new(&poll)?);
        let state = ThreadState::new(handler, pools, inbox, RECEIVE_BYTES);
        Ok(IoThread {
            poll,
            state,
            connections: Slab::new(),
            messages: Vec::new(),
            queued_reads: limits.queued_reads,
            ended_reads: Vec::new(),
            again: Vec::new(),
            throttled: Vec::new(),
            watch_list: WatchList::default(),
            patiences: limits.patiences,
            stop_at: None,
        })
    }

    pub(crate) fn inbox(&self) -> Arc<Inbox<ThreadMessage<H::Session>>> {
        Arc::clone(&self.state.inbox)
    }

    /// Runs until the server stops and the thread has no connection left, or its time is up.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        self.open_reads();
        let mut turns = 0;
        loop {
            self.read_messages();
            self.exchange_reads();
            self.give_turns();
            self.look_at_debtors();
            // Not after the poll: if the last connection has just ended, no event would end the poll.
            if self.is_finished() {
                return;
            }
            turns += 1;
            if turns == TURNS_BEFORE_YIELD {
                turns = 0;
                std::thread::yield_now();
            }
            let idle = self.again.is_empty() && !self.state.reads.is_busy() && self.state.inbox.may_sleep();
            let timeout = if idle { self.time_left() } else { Some(Duration::ZERO) };
            let polled = self.poll.poll(&mut events, timeout);
            self.state.inbox.awake();
            match polled {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    error!(
                        "an I/O thread ends, because it cannot poll its {} connections ({error}); restart the server",
                        self.connections.len()
                    );
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
                let first = self.connections.iter().take(PEERS_SHOWN_MAX);
                let peers: Vec<String> = first.map(|(_, connection)| connection.peer().to_string()).collect();
                warn!(
                    "stopping without a reply to {} connections, whose requests did not end in time (first: {}); \
                     --stop-grace allows more time",
                    self.connections.len(),
                    peers.join(", ")
                );
                true
            }
            Some(_) => false,
        }
    }

    /// The longest wait of a poll: without end, unless the server is stopping, or a connection owes something
    /// or is throttled.
    fn time_left(&self) -> Option<Duration> {
        let stop = self.stop_at.map(|stop_at| stop_at.saturating_duration_since(Instant::now()));
        let throttled = (!self.throttled.is_empty()).then_some(THROTTLE_STEP);
        [stop, self.watch_list.time_left(), throttled].into_iter().flatten().min()
    }

    /// Ends the connections that have owed something for too long.
    fn look_at_debtors(&mut self) {
        let Some((slots, now)) = self.watch_list.take_due() else { return };
        for slot in slots {
            let Some(connection) = self.connections.get_mut(slot.0) else { continue };
            match connection.judge_debt(&*self.state.handler, &self.patiences, now) {
                Patience::Unneeded => {}
                Patience::Left => self.watch_list.add(slot),
                Patience::Over(debt) => {
                    let peer = connection.peer().clone();
                    self.state.responder.refusals.warn(format_args!("closing connection {peer}: {debt}"));
                    if connection.lost() == Next::Close {
                        self.close(slot);
                    }
                }
            }
        }
    }

    /// Opens the queue of block reads. It belongs to the thread that opens it, so this cannot be done
    /// earlier.
    fn open_reads(&mut self) {
        let reads = Reads::open(self.queued_reads);
        if let Some(descriptor) = reads.descriptor() {
            let registry = self.poll.registry();
            if let Err(error) = registry.register(&mut SourceFd(&descriptor), READS_TOKEN, Interest::READABLE)
            {
                warn!(
                    "cannot watch the queue of block reads ({error}); requests that need the device wait in blocking \
                     threads instead"
                );
                return;
            }
        }
        self.state.reads = reads;
    }

    /// Gives block reads to the kernel and goes on with the requests whose reads are complete.
    fn exchange_reads(&mut self) {
        let mut ended = std::mem::take(&mut self.ended_reads);
        self.state.reads.exchange(&mut ended);
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

    fn read_messages(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        self.state.inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                ThreadMessage::Accepted(accepted) => self.admit(accepted),
                ThreadMessage::Returned(slot, reply) => {
                    let connection = self
                        .connections
                        .get_mut(slot.0)
                        .expect("a slot is kept while its request is in the pool");
                    connection.return_from_pool(reply, &mut self.state);
                    self.resume(slot);
                }
                ThreadMessage::WaitOver(slot, outcome) => {
                    let connection =
                        self.connections.get_mut(slot.0).expect("a slot is kept while its reply waits");
                    if connection.end_wait(slot, outcome, &mut self.state) == WaitEnd::RequestGoesOn {
                        self.advance(slot);
                    }
                    self.resume(slot);
                }
                ThreadMessage::Stop(stop_at) => self.stop(stop_at),
                ThreadMessage::GiveUp => self.give_up(),
            }
        }
        self.messages = messages;
    }

    /// Goes on with a connection whose request is answered. While the server stops, the connection closes
    /// instead.
    fn resume(&mut self, slot: Slot) {
        if self.stop_at.is_some()
            && let Some(connection) = self.connections.get_mut(slot.0)
        {
            connection.begin_close();
        }
        self.advance(slot);
    }

    fn give_turns(&mut self) {
        // A connection that wants yet another turn gets it after those that report in the meantime.
        let mut turns = std::mem::take(&mut self.again);
        turns.append(&mut self.throttled);
        for slot in turns {
            self.advance(slot);
        }
    }

    fn advance(&mut self, slot: Slot) {
        let Some(connection) = self.connections.get_mut(slot.0) else { return };
        let state = &mut self.state;
        let next =
            catch_unwind(AssertUnwindSafe(|| connection.advance(slot, state))).unwrap_or_else(|panic| {
                // The panics of a handler are caught closer to it, so this is a defect of the network side.
                error!(
                    "closing connection {}: serving it panicked ({}); report this defect with the log line of the panic",
                    connection.peer(),
                    panic_text(panic.as_ref())
                );
                self.state.reset_after_panic(RECEIVE_BYTES);
                connection.lost()
            });
        if next != Next::Close && connection.enlists() {
            self.watch_list.add(slot);
        }
        match next {
            Next::Rest => {}
            Next::Again if self.again.contains(&slot) => {}
            Next::Again => self.again.push(slot),
            Next::Later if self.throttled.contains(&slot) => {}
            Next::Later => self.throttled.push(slot),
            Next::Close => self.close(slot),
        }
        assert!(self.state.out.is_empty(), "replies of one connection must not stay for the next");
    }

    fn admit(&mut self, accepted: Accepted) {
        if self.stop_at.is_some() {
            return;
        }
        let handler = &self.state.handler;
        let session = match catch_unwind(AssertUnwindSafe(|| handler.connected(&accepted.peer))) {
            Ok(session) => session,
            Err(panic) => {
                error!(
                    "closing connection {}: beginning its session panicked ({}); report this defect with the log line of \
                     the panic",
                    accepted.peer,
                    panic_text(panic.as_ref())
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
        if connection.enlists() {
            self.watch_list.add(slot);
        }
        if let Err(error) = self.poll.registry().register(&mut SourceFd(&socket), Token(slot.0), interest) {
            error!("closing connection {}: cannot watch its socket ({error})", connection.peer());
            self.close(slot);
        }
    }

    /// Ends a connection. Closing its socket takes it out of the poll.
    fn close(&mut self, slot: Slot) {
        let mut connection = self.connections.remove(slot.0);
        self.again.retain(|again| *again != slot);
        self.throttled.retain(|throttled| *throttled != slot);
        if let Some(session) = connection.take_session() {
            let handler = &self.state.handler;
            let stream = connection.stream_state();
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| handler.disconnected(session, stream))) {
                error!(
                    "ending the session of connection {} panicked ({}); report this defect with the log line of the panic",
                    connection.peer(),
                    panic_text(panic.as_ref())
                );
            }
        }
    }

    /// Begins to stop. Idle connections close at once, the others when their request is answered. A request
    /// that has come and was not read yet is answered before: a client that is told nothing does not know
    /// whether it may send the request again.
    fn stop(&mut self, stop_at: Instant) {
        self.stop_at = Some(stop_at);
        let slots: Vec<Slot> = self.connections.iter().map(|(slot, _)| Slot(slot)).collect();
        for slot in slots {
            self.connections[slot.0].expect_bytes();
            self.advance(slot);
            let Some(connection) = self.connections.get_mut(slot.0) else { continue };
            connection.begin_close();
            if connection.is_idle() {
                self.close(slot);
            }
        }
    }

    /// Closes the connections whose clients have read nothing of the replies that wait since the last call.
    fn give_up(&mut self) {
        let stuck = self
            .connections
            .iter_mut()
            .filter_map(|(slot, connection)| connection.is_stuck().then_some(Slot(slot)));
        let stuck: Vec<Slot> = stuck.collect();
        for slot in stuck {
            debug!(peer = %self.connections[slot.0].peer(), "the client does not read its reply");
            self.close(slot);
        }
    }
}
