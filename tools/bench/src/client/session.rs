//! A blocking connection: one request, one reply.

use super::reply::{Outcome, body_of_reply, outcome_of};
use crate::address::{Address, Stream};
use crate::error::BenchError;
use pando_document::{Document, doc};
use pando_wire::{FrameBuffer, MsgFlags, OpMsgWriter};
use std::io::Write;

/// A connection that has greeted the server.
#[derive(Debug)]
pub struct Session {
    stream: Stream,
    input: FrameBuffer,
    output: Vec<u8>,
    last_request_id: i32,
}

impl Session {
    /// Connects and says hello, by OP_MSG.
    pub fn open(address: impl Into<Address>) -> Result<Session, BenchError> {
        let address = address.into();
        let stream = address.connect().map_err(|source| BenchError::Connect { address, source })?;
        let mut session =
            Session { stream, input: FrameBuffer::new(), output: Vec::new(), last_request_id: 0 };
        let client = doc! {
            "driver": { "name": "pando-bench", "version": env!("CARGO_PKG_VERSION") },
            "os": { "type": "Linux" },
        };
        session.command("admin", doc! { "hello": 1, "client": client })?;
        Ok(session)
    }

    /// Runs a command, and gives its reply if it succeeded.
    pub fn command(&mut self, database: &str, mut command: Document) -> Result<Document, BenchError> {
        let name = command.names().next().unwrap_or_default().to_owned();
        command.push("$db", database);
        let body = command.to_raw();
        self.exchange(&name, |out, request_id| {
            let writer = OpMsgWriter::begin(out, request_id, 0, MsgFlags::NONE);
            writer.body(out, body.as_bytes());
            Ok(writer.finish(out)?)
        })
    }

    /// Sends what `append` writes, a request of this id, and gives the reply if the command succeeded. `name` is for the
    /// message of a refusal.
    pub fn exchange(
        &mut self,
        name: &str,
        append: impl FnOnce(&mut Vec<u8>, i32) -> Result<(), BenchError>,
    ) -> Result<Document, BenchError> {
        self.last_request_id = self.last_request_id.wrapping_add(1);
        self.output.clear();
        append(&mut self.output, self.last_request_id)?;
        self.stream.write_all(&self.output).map_err(BenchError::Connection)?;
        let frame = self.next_frame()?;
        let body = body_of_reply(&frame, self.last_request_id)?;
        match outcome_of(body)? {
            Outcome::Succeeded => Ok(Document::from_raw(body)?),
            Outcome::Refused { code, message } => {
                Err(BenchError::Refused { command: name.to_owned(), code, message })
            }
        }
    }

    /// Waits for a frame. It is copied: this connection is not on the path that is measured.
    fn next_frame(&mut self) -> Result<Vec<u8>, BenchError> {
        loop {
            if let Some(frame) = self.input.next_frame()? {
                return Ok(frame.to_vec());
            }
            if self.input.fill_from(&mut self.stream).map_err(BenchError::Connection)? == 0 {
                return Err(BenchError::Closed);
            }
        }
    }

    /// The socket, for a client that goes on without blocking.
    pub fn into_stream(self) -> Stream {
        self.stream
    }
}
