//! A blocking connection: one request, one reply.

use super::EmbeddedSession;
use super::reply::{Outcome, body_of_reply, outcome_of};
use super::server_stream::ServerStream;
use crate::client::{Address, Place};
use crate::error::BenchError;
use pando_document::{Document, RawDocument, doc};
use pando_wire::{FrameBuffer, MsgFlags, OpMsgWriter};
use std::io::{ErrorKind, Write};
use std::time::Duration;

/// A server that accepts and is silent for so long is none.
const HELLO_WITHIN: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Session {
    link: Link,
    output: Vec<u8>,
    last_request_id: i32,
}

#[derive(Debug)]
enum Link {
    Socket(Box<Wire>),
    /// The engine is in this process.
    Embedded(EmbeddedSession),
}

#[derive(Debug)]
struct Wire {
    stream: ServerStream,
    input: FrameBuffer,
}

impl Session {
    /// Connects, says hello, by OP_MSG, and logs in if the address says as whom.
    pub fn open(address: impl Into<Address>) -> Result<Session, BenchError> {
        let address = address.into();
        let link = match address.place() {
            Place::Embedded(store) => Link::Embedded(store.session()),
            _ => {
                let unreachable = |source| BenchError::Connect { address: address.to_string(), source };
                let stream = address.connect().map_err(unreachable)?;
                stream.set_read_timeout(Some(HELLO_WITHIN)).map_err(unreachable)?;
                Link::Socket(Box::new(Wire { stream, input: FrameBuffer::new() }))
            }
        };
        let mut session = Session { link, output: Vec::new(), last_request_id: 0 };
        let client = doc! {
            "driver": { "name": "pando-bench", "version": env!("CARGO_PKG_VERSION") },
            "os": { "type": "Linux" },
        };
        let mut hello = doc! { "hello": 1, "client": client };
        if let Some(login) = address.login() {
            hello.push("saslSupportedMechs", login.asks_hello());
        }
        let greeting = match session.command("admin", hello) {
            Err(BenchError::Connection(error)) if error.kind() == ErrorKind::WouldBlock => {
                return Err(BenchError::Silent {
                    address: address.to_string(),
                    seconds: HELLO_WITHIN.as_secs(),
                });
            }
            greeted => greeted?,
        };
        if let Some(login) = address.login() {
            login.perform(&mut session, &greeting)?;
        }
        if let Link::Socket(socket) = &session.link {
            // Other commands, such as building an index, take as long as they take.
            socket.stream.set_read_timeout(None).map_err(BenchError::Connection)?;
        }
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

    /// Sends what `append` writes, a request of this id, and gives the reply if the command succeeded. `name`
    /// is for the message of a refusal.
    pub fn exchange(
        &mut self,
        name: &str,
        append: impl FnOnce(&mut Vec<u8>, i32) -> Result<(), BenchError>,
    ) -> Result<Document, BenchError> {
        self.last_request_id = self.last_request_id.wrapping_add(1);
        self.output.clear();
        append(&mut self.output, self.last_request_id)?;
        let mut reply = Vec::new();
        let body = match &mut self.link {
            Link::Socket(socket) => {
                reply = socket.exchange(&self.output)?;
                body_of_reply(&reply, self.last_request_id)?
            }
            Link::Embedded(session) => {
                session.handle(&self.output, &mut reply)?;
                RawDocument::from_bytes(&reply)?
            }
        };
        match outcome_of(body)? {
            Outcome::Succeeded => Ok(Document::from_raw(body)?),
            Outcome::Refused { code, message } => {
                Err(BenchError::Refused { command: name.to_owned(), code, message })
            }
        }
    }

    /// The socket, for a client that goes on without blocking; nothing if the engine is in this process.
    pub fn into_stream(self) -> Option<ServerStream> {
        match self.link {
            Link::Socket(socket) => Some(socket.stream),
            Link::Embedded(_) => None,
        }
    }
}

impl Wire {
    /// Sends a request and waits for a frame. It is copied: this connection is not on the path that is
    /// measured.
    fn exchange(&mut self, request: &[u8]) -> Result<Vec<u8>, BenchError> {
        self.stream.write_all(request).map_err(BenchError::Connection)?;
        self.stream.flush().map_err(BenchError::Connection)?;
        loop {
            if let Some(frame) = self.input.next_frame()? {
                return Ok(frame.to_vec());
            }
            match self.input.fill_from(&mut self.stream) {
                Ok(0) => return Err(BenchError::Closed),
                Ok(_) => {}
                // Ctrl-C interrupts a read that has a time limit. The run ends where it looks for that.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(BenchError::Connection(error)),
            }
        }
    }
}
