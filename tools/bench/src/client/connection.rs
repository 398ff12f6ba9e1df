//! One client of a run: its socket, its script, and the one request that it waits for.
//!
//! # Syscalls
//! A request is one write, a reply one read: the socket is non-blocking and watched edge by edge, and after a
//! whole reply nothing more can come, so that no second read has to find the socket empty. Only a reply that
//! comes in pieces, or a request that does not fit the socket's buffer, costs more.
//!
//! # Invariants
//! - At most one request is under way.
//! - `partial` is empty unless a reply came in pieces: replies are read into the worker's one buffer, which
//!   stays in the CPU's cache, and judged there.

use super::script::{Judgement, Next, Note, Turn};
use super::server_stream::ServerStream;
use super::{Script, Session, reply};
use crate::client::Address;
use crate::error::BenchError;
use pando_wire::frame_length;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Instant;

pub struct Connection {
    stream: ServerStream,
    script: Box<dyn Script>,
    request: Vec<u8>,
    written: usize,
    request_id: i32,
    state: State,
    times: Times,
    partial: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Idle,
    Waiting,
    Over,
    /// It was counted out: its script is over, or its connection lost.
    Out,
}

#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// When the unit under way was to begin.
    pub intended: Instant,
    /// When it did.
    pub begun: Instant,
    /// When the statement under way began; the first of a unit counts from when the unit was to begin, so
    /// that its wait for a free client is in a latency of its kind.
    pub statement: Instant,
}

#[derive(Debug)]
pub struct Reply {
    pub times: Times,
    pub received_at: Instant,
    pub judgement: Judgement,
}

impl Connection {
    pub fn open(address: impl Into<Address>, script: Box<dyn Script>) -> Result<Connection, BenchError> {
        let stream = Session::open(address)?.into_stream().ok_or(BenchError::Closed)?;
        stream.set_nonblocking().map_err(BenchError::Connection)?;
        let now = Instant::now();
        Ok(Connection {
            stream,
            script,
            request: Vec::new(),
            written: 0,
            request_id: 0,
            state: State::Idle,
            times: Times { intended: now, begun: now, statement: now },
            partial: Vec::new(),
        })
    }

    /// The descriptor to register with the event loop.
    pub fn file(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Counts it out: nothing is sent or expected any more.
    pub fn leave(&mut self) {
        if self.state != State::Over {
            self.script.lost();
        }
        self.state = State::Out;
    }

    pub fn notes(&self) -> Vec<Note> {
        self.script.notes()
    }

    /// Sends the first request of a unit, which was to begin at `intended`, as of `now`. The state tells
    /// whether there was one.
    pub fn begin_unit(&mut self, intended: Instant, now: Instant) -> Result<(), BenchError> {
        assert_eq!(self.state, State::Idle, "a client does one unit at a time");
        self.times = Times { intended, begun: now, statement: intended };
        self.send()
    }

    pub fn go_on(&mut self) -> Result<(), BenchError> {
        assert_eq!(self.state, State::Idle, "a client has one request under way at a time");
        self.send()?;
        assert_eq!(self.state, State::Waiting, "a script does not end in the middle of a unit");
        Ok(())
    }

    fn send(&mut self) -> Result<(), BenchError> {
        self.request_id = self.request_id.wrapping_add(1);
        self.request.clear();
        self.written = 0;
        match self.script.request(self.request_id, &mut self.request) {
            Turn::Over => self.state = State::Over,
            Turn::Request => {
                self.state = State::Waiting;
                self.write_on()?;
            }
        }
        Ok(())
    }

    /// Writes what is left of the request.
    pub fn write_on(&mut self) -> Result<(), BenchError> {
        while self.written < self.request.len() {
            match self.stream.write(&self.request[self.written..]) {
                Ok(0) => return Err(BenchError::Closed),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(BenchError::Connection(error)),
            }
        }
        match self.stream.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(BenchError::Connection(error)),
            _ => Ok(()),
        }
    }

    /// Reads once into `buffer`; gives the reply if it is whole now.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<Reply>, BenchError> {
        loop {
            let count = match self.stream.read(buffer) {
                Ok(0) => return Err(BenchError::Closed),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(BenchError::Connection(error)),
            };
            let piece = &buffer[..count];
            if self.partial.is_empty() && frame_length(piece)? == Some(count) {
                return self.judge(piece).map(Some);
            }
            self.partial.extend_from_slice(piece);
            if frame_length(&self.partial)? == Some(self.partial.len()) {
                let frame = std::mem::take(&mut self.partial);
                return self.judge(&frame).map(Some);
            }
            // A buffer that was not filled has emptied the socket, if its bytes are those of the socket.
            if count < buffer.len() && !self.stream.is_encrypted() {
                return Ok(None);
            }
        }
    }

    fn judge(&mut self, frame: &[u8]) -> Result<Reply, BenchError> {
        let received_at = Instant::now();
        let body = reply::body_of_reply(frame, self.request_id)?;
        if self.state != State::Waiting {
            return Err(BenchError::ReplyTo { expected: 0, found: self.request_id });
        }
        self.state = State::Idle;
        let judgement = self.script.judge(body);
        let times = self.times;
        if judgement.statement.is_some() && judgement.next != Next::Again {
            self.times.statement = received_at;
        }
        Ok(Reply { times, received_at, judgement })
    }
}
