//! One connection: its input, its unsent output, and the phase of its current request.
//!
//! # Terms
//! - *Thread state*: shared by the connections of one I/O thread: the handler, the pool, one buffer for
//!   received bytes, one for replies.
//! - *Input*: received bytes that are not handled yet: part of a frame, or frames that wait for their turn.
//!   Empty when idle.
//! - *Output*: bytes of replies that the socket did not take. Nearly always empty.
//! - *Repeated frame*: that of a request whose last reply announced a further one. It is handled again before
//!   the input, as soon as the socket has taken the reply.
//! - *Opening*: its first bytes, and perhaps a TLS handshake (`connection/opening.rs`).
//! - *Phase*: whether the next frame may be handled, or the reason why it waits.
//!
//! # The life of a request that is answered from memory
//! 1. The socket reports bytes. One read takes them into the thread's buffer.
//! 2. [`Responder::respond`](super::responder::Responder::respond) decodes the frame in that buffer and
//!    appends the reply to the thread's output.
//! 3. One write sends the reply. Neither buffer belongs to the connection, so the request allocates no memory
//!    here.
//!
//! # Invariants
//! - Replies go out in the order of their requests. While a request waits or is in the pool, no further frame
//!   is handled, and no byte is written past bytes that the socket has not taken.
//! - While output is pending, the connection reads nothing. A client that does not read its replies can make
//!   the server buffer one burst of them at most.
//! - The input never grows beyond one frame and one read.
//! - While a request is in the pool nothing is read, but the end of the peer's side is seen: the poll reports
//!   it by itself. The request is told, because nobody may be waiting for its answer.

mod opening;
mod output;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use pando_commands::{BlockingMode, Priority, StorageError, StreamState};
use pando_wire::frame_length;
use tracing::{debug, warn};

use super::handler::{Handler, HangUp};
use super::permits::Permit;
use super::phase::{Phase, WaitEnd};
use super::pool_handoff::PoolHandoff;
use super::pool_request::{PoolFrame, PoolOutcome, PoolReply, PoolRequest, start_wait};
use super::reads::{ReadEnd, Taken};
use super::responder::{Exchange, Response, Sequel};
use super::security::Security;
use super::stream::{Peer, ReadOutcome, Stream};
use super::thread_state::{Accepted, Slot, ThreadState};
use super::watch::Owed;
use crate::error_text::error_text;
use opening::Opening;
pub(super) use opening::UNTRUSTED_MESSAGE_BYTES_MAX;

/// Replies are collected up to this size before they are sent.
const BURST_BYTES: usize = 256 * 1024;
/// Room for one read when part of a frame is there already. The length that a header claims is allocated in
/// steps.
const READ_STEP_BYTES: usize = 64 * 1024;
/// Room beyond the end of a frame. It makes the read that completes the frame come back short: no byte
/// follows.
const READ_BEYOND_BYTES: usize = 512;
/// Block reads that a request waits for in the event loop, one after the other. Most requests start again
/// after each, so that one with many reads is better off in the pool. Four are enough for a document by its
/// secondary index.
const BLOCK_READS_MAX: u8 = 4;
/// Longer requests go to the pool, because handling them again after each block read costs too much.
const READING_FRAME_BYTES_MAX: usize = 16 * 1024;
/// Reads of the socket before other connections have their turn.
const SOCKET_READS_MAX: usize = 8;

/// Whether the peer reads its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// As fast as they come, as far as the handler knows.
    Quick,
    /// Replies wait.
    Slow,
}

/// The next step of the I/O thread for a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait for its socket, or for a message.
    Rest,
    /// Give it another turn after the others.
    Again,
    /// Give it another turn in a while: its address has sent more requests than it may.
    Later,
    /// End it.
    Close,
}

/// One connection.
pub(crate) struct Connection<S> {
    stream: Arc<Stream>,
    peer: Peer,
    session: Option<S>,
    input: Vec<u8>,
    output: Vec<u8>,
    repeated: Option<Vec<u8>>,
    phase: Phase,
    /// Block reads that the request at the front of the input has waited for.
    block_reads: u8,
    /// The socket has reported bytes, and no read since came back short.
    readable: bool,
    /// Bytes have come that are a message, or a part of one. Before that the peer may speak another protocol.
    speaks_wire: bool,
    /// The peer has ended its side. A short read then does not mean that the socket has no more to report.
    ended: bool,
    /// Whether the handler was told that replies wait.
    reader: Reader,
    /// Bytes of the output at the last look whether the connection is stuck.
    unsent_noted: usize,
    handoff: Arc<PoolHandoff>,
    /// Tells the request in the pool that the peer is gone; called once.
    hang_up: Option<HangUp>,
    permit: Permit,
    security: Security,
    /// The time until which its address has to wait with its next request.
    throttled_until: Option<Instant>,
    /// Whether the watch list has it, and what it owes there.
    listed: bool,
    owed: Owed,
}

impl<S: Send + 'static> Connection<S> {
    pub(crate) fn new(accepted: Accepted, session: S) -> Connection<S> {
        Connection {
            stream: Arc::new(accepted.stream),
            peer: accepted.peer,
            session: Some(session),
            input: Vec::new(),
            output: Vec::new(),
            repeated: None,
            phase: Phase::Serving,
            block_reads: 0,
            readable: false,
            speaks_wire: false,
            ended: false,
            reader: Reader::Quick,
            unsent_noted: 0,
            handoff: Arc::default(),
            hang_up: None,
            permit: accepted.permit,
            security: accepted.security,
            throttled_until: None,
            listed: false,
            owed: Owed::default(),
        }
    }

    pub(crate) fn raw_socket(&self) -> std::os::fd::RawFd {
        self.stream.raw()
    }

    /// The other end, for the log.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Takes the session out at the end. `None` while it is in the pool.
    pub(crate) fn take_session(&mut self) -> Option<S> {
        self.session.take()
    }

    /// Whether a request of it has further replies.
    pub(crate) fn stream_state(&self) -> StreamState {
        match self.repeated {
            None => StreamState::Idle,
            Some(_) => StreamState::Abandoned,
        }
    }

    /// Whether the connection can be closed without losing a reply.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Handshake | Phase::Serving | Phase::Closing) && self.output.is_empty()
    }

    /// Begins to close, because the server stops: no further request is handled.
    pub(crate) fn begin_close(&mut self) {
        match self.phase {
            Phase::Handshake | Phase::Serving => self.phase = Phase::Closing,
            // Without the wake-up on its return the thread would sleep until its deadline.
            Phase::InPool => self.handoff.await_return(),
            Phase::Reading | Phase::Waiting(_) | Phase::Suspended(_) | Phase::Closing => {}
        }
    }

    /// Has its next turn read the socket, though that has reported nothing.
    pub(crate) fn expect_bytes(&mut self) {
        self.readable = true;
    }

    /// Notes an event of the socket.
    pub(crate) fn note_event(&mut self, event: &mio::event::Event) {
        self.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        self.ended |= event.is_read_closed() || event.is_error();
    }

    /// Takes the connection as far as it can go without waiting.
    pub(crate) fn advance<H: Handler<Session = S>>(
        &mut self,
        slot: Slot,
        thread: &mut ThreadState<H>,
    ) -> Next {
        match self.try_advance(slot, thread) {
            Ok(next) => next,
            Err(error) => {
                debug!(peer = %self.peer, %error, "connection lost");
                self.lost()
            }
        }
    }

    /// The socket is gone, or the connection cannot go on. A request in the pool, or one that waits, has to
    /// come back first; the next read after that ends the connection.
    pub(crate) fn lost(&mut self) -> Next {
        self.output = Vec::new();
        self.readable = true;
        self.ended = true;
        self.tell_hang_up();
        match self.phase {
            Phase::Handshake | Phase::Serving | Phase::Closing => {
                self.phase = Phase::Closing;
                Next::Close
            }
            Phase::Reading | Phase::InPool | Phase::Waiting(_) | Phase::Suspended(_) => Next::Rest,
        }
    }

    fn try_advance<H: Handler<Session = S>>(
        &mut self,
        slot: Slot,
        thread: &mut ThreadState<H>,
    ) -> io::Result<Next> {
        for _ in 0..SOCKET_READS_MAX {
            self.flush()?;
            let is_throttled = self.is_throttled();
            match self.phase {
                Phase::Closing if self.output.is_empty() => return Ok(Next::Close),
                Phase::Closing | Phase::Reading | Phase::Waiting(_) => return Ok(Next::Rest),
                Phase::Handshake if !self.output.is_empty() || !self.readable => return Ok(Next::Rest),
                Phase::Handshake => {
                    self.shake_hands(thread);
                    continue;
                }
                Phase::Suspended(_) => {
                    self.tell_hang_up();
                    return Ok(Next::Rest);
                }
                Phase::InPool => {
                    self.tell_hang_up();
                    if self.readable || !self.input.is_empty() {
                        self.handoff.await_return();
                    }
                    return Ok(Next::Rest);
                }
                Phase::Serving if !self.output.is_empty() => {
                    if let Some(session) = &mut self.session {
                        thread.handler.stalled(session, self.output.capacity());
                        self.reader = Reader::Slow;
                    }
                    return Ok(Next::Rest);
                }
                Phase::Serving if is_throttled => return Ok(Next::Later),
                Phase::Serving => {
                    if self.reader == Reader::Slow
                        && let Some(session) = &mut self.session
                    {
                        thread.handler.resumed(session);
                        self.reader = Reader::Quick;
                    }
                }
            }
            if let Some(frame) = self.repeated.take() {
                if self.serve_frame(slot, &frame, thread)? == Served::NotYet {
                    self.repeated = Some(frame);
                }
                self.send(thread)?;
                continue;
            }
            self.serve_input(slot, thread)?;
            let may_read =
                self.output.is_empty() && self.repeated.is_none() && self.throttled_until.is_none();
            if !matches!(self.phase, Phase::Serving) || !may_read {
                // Once more around, to see what the new phase asks for; no further bytes are read in it.
                continue;
            }
            if !self.readable {
                return Ok(Next::Rest);
            }
            if self.read(slot, thread)? == ReadOutcome::Ended {
                return Ok(Next::Close);
            }
        }
        Ok(Next::Again)
    }

    /// Whether its address still has to wait.
    fn is_throttled(&mut self) -> bool {
        let Some(until) = self.throttled_until else { return false };
        let over = Instant::now() >= until;
        if over {
            self.throttled_until = None;
        }
        !over
    }

    /// Tells the request under way that the peer has ended its side.
    fn tell_hang_up(&mut self) {
        if self.ended
            && let Some(hang_up) = self.hang_up.take()
        {
            debug!(peer = %self.peer, "the peer has closed the connection during a request");
            hang_up();
        }
    }

    /// Reads once. A connection with input appends to it. Any other reads into the thread's buffer, and the
    /// frames are handled there.
    fn read<H: Handler<Session = S>>(
        &mut self,
        slot: Slot,
        thread: &mut ThreadState<H>,
    ) -> io::Result<ReadOutcome> {
        let outcome = if self.input.is_empty() {
            let mut received = std::mem::take(&mut thread.received);
            received.clear();
            let outcome = self.stream.read(&mut received, &mut thread.records);
            let served = self.serve_frames(slot, &received, thread);
            if let Ok(consumed) = served {
                self.keep(&received[consumed..], thread);
            }
            thread.received = received;
            served?;
            outcome?
        } else {
            let missing =
                frame_length(&self.input).ok().flatten().map_or(0, |length| length - self.input.len());
            let step = missing.min(READ_STEP_BYTES.max(self.input.len()));
            self.input.reserve_exact(step + READ_BEYOND_BYTES);
            self.stream.read(&mut self.input, &mut thread.records)?
        };
        if outcome == ReadOutcome::Drained {
            self.readable = self.ended;
        }
        Ok(outcome)
    }

    /// Keeps the bytes that were not handled as the input.
    fn keep<H: Handler<Session = S>>(&mut self, rest: &[u8], thread: &mut ThreadState<H>) {
        if !rest.is_empty() {
            let expected = frame_length(rest).ok().flatten().unwrap_or(0).max(rest.len());
            self.input = thread.buffers.take(expected);
            self.input.extend_from_slice(rest);
        }
    }

    /// Handles the whole frames of the input.
    fn serve_input<H: Handler<Session = S>>(
        &mut self,
        slot: Slot,
        thread: &mut ThreadState<H>,
    ) -> io::Result<()> {
        if self.awaits_rest(thread) {
            return Ok(());
        }
        let mut input = std::mem::take(&mut self.input);
        let consumed = self.serve_frames(slot, &input, thread)?;
        if consumed == input.len() {
            thread.buffers.put(input);
        } else {
            input.drain(..consumed);
            self.input = input;
        }
        Ok(())
    }

    /// Handles the whole frames at the front of `bytes` as far as the phase allows, and sends their replies.
    /// Gives the number of bytes that are handled.
    fn serve_frames<H: Handler<Session = S>>(
        &mut self,
        slot: Slot,
        bytes: &[u8],
        thread: &mut ThreadState<H>,
    ) -> io::Result<usize> {
        let mut at = 0;
        if !self.speaks_wire && self.open(bytes, thread) != Opening::Message {
            at = bytes.len();
        }
        while matches!(self.phase, Phase::Serving) && self.output.is_empty() && self.repeated.is_none() {
            let end = match frame_length(&bytes[at..]) {
                Ok(Some(length)) if self.is_too_long(length, thread) => {
                    thread.responder.refusals.warn(format_args!(
                        "closing connection {}: a message of {length} bytes, and a client that is not logged in may send \
                         {UNTRUSTED_MESSAGE_BYTES_MAX}; look at its client",
                        self.peer
                    ));
                    self.phase = Phase::Closing;
                    at = bytes.len();
                    break;
                }
                Ok(Some(length)) if at + length <= bytes.len() => at + length,
                Ok(_) => break,
                Err(error) => {
                    thread
                        .responder
                        .refusals
                        .warn(format_args!("closing connection {}: malformed message ({error})", self.peer));
                    self.phase = Phase::Closing;
                    at = bytes.len();
                    break;
                }
            };
            if self.block_reads == 0
                && let Err(wait) = self.permit.pay()
            {
                self.throttled_until = Some(Instant::now() + wait);
                break;
            }
            self.speaks_wire = true;
            self.owed.settle();
            if self.serve_frame(slot, &bytes[at..end], thread)? == Served::NotYet {
                break;
            }
            at = end;
        }
        self.send(thread)?;
        Ok(at)
    }

    /// Handles one frame. Its reply is in the thread's output, or the phase says where the request is.
    fn serve_frame<H: Handler<Session = S>>(
        &mut self,
        slot: Slot,
        frame: &[u8],
        thread: &mut ThreadState<H>,
    ) -> io::Result<Served> {
        let session = self.session.as_mut().expect("a connection that serves has its session");
        let mut exchange = Exchange {
            handler: &*thread.handler,
            session,
            peer: &self.peer,
            blocking: BlockingMode::CachedOnly,
            out: &mut thread.out,
        };
        match thread.responder.respond(&mut exchange, frame) {
            Response::Done(sequel) => {
                self.block_reads = 0;
                self.expect_sequel(sequel, frame);
                if thread.out.len() > BURST_BYTES {
                    self.send(thread)?;
                }
            }
            Response::WouldBlock(missed, priority) => {
                if let Some(missed) = missed
                    && self.block_reads < BLOCK_READS_MAX
                    && frame.len() <= READING_FRAME_BYTES_MAX
                    && thread.reads.push(slot, &missed) == Taken::Yes
                {
                    self.block_reads += 1;
                    self.phase = Phase::Reading;
                    return Ok(Served::NotYet);
                }
                // The pool thread writes the reply itself, so every reply before it has to be sent.
                self.send(thread)?;
                if !self.output.is_empty() {
                    return Ok(Served::NotYet);
                }
                let mut copy = thread.buffers.take(frame.len());
                copy.extend_from_slice(frame);
                self.submit_to_pool(slot, PoolFrame { bytes: copy, priority }, thread);
            }
            Response::Again(wait) => {
                self.hang_up = thread.handler.on_hang_up(session);
                self.phase = Phase::Suspended(None);
                start_wait(wait, slot, &thread.inbox);
                return Ok(Served::NotYet);
            }
            Response::Later(reply, wait) => {
                self.block_reads = 0;
                self.expect_sequel(reply.sequel, frame);
                self.phase = Phase::Waiting(reply);
                start_wait(wait, slot, &thread.inbox);
            }
            Response::Close => self.phase = Phase::Closing,
        }
        Ok(Served::Yes)
    }

    /// Keeps the frame of a request that has a further reply.
    fn expect_sequel(&mut self, sequel: Sequel, frame: &[u8]) {
        if sequel != Sequel::None {
            self.repeated = sequel.next_frame(frame.to_vec());
        }
    }

    /// Submits a request to a blocking pool.
    fn submit_to_pool<H: Handler<Session = S>>(
        &mut self,
        slot: Slot,
        frame: PoolFrame,
        thread: &mut ThreadState<H>,
    ) {
        let session = self.session.take().expect("a connection that serves has its session");
        self.hang_up = thread.handler.on_hang_up(&session);
        let request = PoolRequest {
            slot,
            session,
            frame: frame.bytes,
            peer: self.peer.clone(),
            stream: Arc::clone(&self.stream),
            handler: Arc::clone(&thread.handler),
            inbox: Arc::clone(&thread.inbox),
            handoff: Arc::clone(&self.handoff),
            ticket: self.handoff.submit(),
        };
        self.phase = Phase::InPool;
        self.block_reads = 0;
        thread.pools.of(frame.priority).submit(Box::new(move |workspace| request.run(workspace)));
    }

    /// The block read that the first request of the input waited for has ended. The request is handled again.
    pub(crate) fn end_read(&mut self, end: ReadEnd) {
        assert!(
            matches!(self.phase, Phase::Reading),
            "only a request that waits for a read goes on at its end"
        );
        self.phase = Phase::Serving;
        if end == ReadEnd::Failed {
            // The request goes to the pool, which reads again and tells the client of the failure.
            self.block_reads = BLOCK_READS_MAX;
        }
    }

    /// A request has come back from the pool.
    pub(crate) fn return_from_pool<H: Handler<Session = S>>(
        &mut self,
        reply: PoolReply<S>,
        thread: &mut ThreadState<H>,
    ) {
        assert!(matches!(self.phase, Phase::InPool), "only a submitted request comes back");
        let session = self.session.insert(reply.session);
        self.hang_up = None;
        if let PoolOutcome::Again = reply.outcome {
            self.hang_up = thread.handler.on_hang_up(session);
            self.phase = Phase::Suspended(Some(reply.frame));
            return;
        }
        match reply.outcome {
            PoolOutcome::Again => {}
            PoolOutcome::Answered(unsent, sequel) => {
                self.expect_sequel(sequel, &reply.frame);
                self.output = unsent;
                self.phase = Phase::Serving;
            }
            PoolOutcome::Later(late) => {
                self.expect_sequel(late.sequel, &reply.frame);
                self.phase = Phase::Waiting(late);
            }
            // The frame that is kept says that the stream was abandoned.
            PoolOutcome::Lost(sequel) => {
                self.expect_sequel(sequel, &reply.frame);
                self.phase = Phase::Closing;
            }
            PoolOutcome::Close(unsent) => {
                self.output = unsent;
                self.phase = Phase::Closing;
            }
        }
        thread.buffers.put(reply.frame);
    }

    /// The wait of a late reply, or of a suspended request, is over.
    pub(crate) fn end_wait<H: Handler<Session = S>>(
        &mut self,
        slot: Slot,
        outcome: Result<(), StorageError>,
        thread: &mut ThreadState<H>,
    ) -> WaitEnd {
        let reply = match std::mem::replace(&mut self.phase, Phase::Serving) {
            Phase::Waiting(reply) => reply,
            Phase::Suspended(frame) => {
                // The socket may not have reported yet that the peer is gone.
                self.ended |= self.stream.has_ended();
                self.tell_hang_up();
                self.hang_up = None;
                if let Some(bytes) = frame {
                    self.submit_to_pool(slot, PoolFrame { bytes, priority: Priority::Normal }, thread);
                }
                return WaitEnd::RequestGoesOn;
            }
            Phase::Handshake | Phase::Serving | Phase::Reading | Phase::InPool | Phase::Closing => {
                panic!("only a reply that waits and a suspended request can be released")
            }
        };
        match outcome {
            Ok(()) => thread.out.extend_from_slice(&reply.frame),
            Err(error) => {
                warn!(
                    "closing connection {} without a reply: its write cannot be made durable ({}); mend the cause and \
                     restart the server",
                    self.peer,
                    error_text(&error)
                );
                self.phase = Phase::Closing;
            }
        }
        if let Err(error) = self.send(thread) {
            debug!(peer = %self.peer, %error, "connection lost");
            self.lost();
        }
        WaitEnd::Answered
    }
}

/// Whether a frame was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    Yes,
    /// It has to be offered again.
    NotYet,
}
