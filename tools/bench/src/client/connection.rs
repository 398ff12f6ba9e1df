//! One client of a run: its socket, its script, and the one request that it waits for.
//!
//! # Syscalls
//! A request is one write, a reply one read: the socket is non-blocking and watched edge by edge, and after a whole reply
//! nothing more can come, so that no second read has to find the socket empty. Only a reply that comes in pieces, or a
//! request that does not fit the socket's buffer, costs more.
//!
//! # Invariants
//! - At most one request is under way.
//! - `partial` is empty unless a reply came in pieces: replies are read into the worker's one buffer, which stays in the
//!   CPU's cache, and judged there.

use super::{Script, Session, Verdict, reply};
use crate::error::BenchError;
use mio::event::Source;
use mio::net::TcpStream;
use pando_wire::frame_length;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

/// A client of a run.
pub struct Connection {
    stream: TcpStream,
    script: Box<dyn Script>,
    request: Vec<u8>,
    written: usize,
    request_id: i32,
    /// When the request under way was sent; nothing while none is.
    sent_at: Option<Instant>,
    partial: Vec<u8>,
}

/// A reply that has come.
#[derive(Debug)]
pub struct Reply {
    /// When its request was sent.
    pub sent_at: Instant,
    /// When it was there.
    pub received_at: Instant,
    /// What the script says of it.
    pub verdict: Verdict,
}

impl Connection {
    /// Connects a client that follows this script.
    pub fn open(address: SocketAddr, script: Box<dyn Script>) -> Result<Connection, BenchError> {
        let stream = Session::open(address)?.into_stream();
        stream.set_nonblocking(true).map_err(BenchError::Connection)?;
        Ok(Connection {
            stream: TcpStream::from_std(stream),
            script,
            request: Vec::new(),
            written: 0,
            request_id: 0,
            sent_at: None,
            partial: Vec::new(),
        })
    }

    /// What to register with the event loop.
    pub fn source(&mut self) -> &mut dyn Source {
        &mut self.stream
    }

    /// Whether a request is under way.
    pub fn is_waiting(&self) -> bool {
        self.sent_at.is_some()
    }

    /// Sends the script's next request, as of `now`.
    pub fn send(&mut self, now: Instant) -> Result<(), BenchError> {
        assert!(!self.is_waiting(), "a client has one request under way at a time");
        self.request_id = self.request_id.wrapping_add(1);
        self.request.clear();
        self.written = 0;
        self.script.request(self.request_id, &mut self.request);
        self.sent_at = Some(now);
        self.write_on()
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
        Ok(())
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
            // A buffer that was not filled has emptied the socket.
            if count < buffer.len() {
                return Ok(None);
            }
        }
    }

    fn judge(&mut self, frame: &[u8]) -> Result<Reply, BenchError> {
        let received_at = Instant::now();
        let body = reply::body_of_reply(frame, self.request_id)?;
        let sent_at =
            self.sent_at.take().ok_or(BenchError::ReplyTo { expected: 0, found: self.request_id })?;
        Ok(Reply { sent_at, received_at, verdict: self.script.judge(body) })
    }
}
