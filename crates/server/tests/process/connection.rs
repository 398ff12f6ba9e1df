//! A client connection over any kind of socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use bson::{Document, doc};
use pando_wire::{Body, FrameBuffer, Message, MsgFlags, OpMsgWriter};

use crate::running_server::Server;

pub trait Socket: Read + Write {}
impl<S: Read + Write> Socket for S {}

pub struct Connection {
    pub socket: Box<dyn Socket>,
    input: FrameBuffer,
}

/// A command as a message.
pub fn message(id: i32, database: &str, mut command: Document) -> Vec<u8> {
    command.insert("$db", database);
    let mut out = Vec::new();
    let writer = OpMsgWriter::begin(&mut out, id, 0, MsgFlags::NONE);
    writer.body(&mut out, &command.to_vec().unwrap());
    writer.finish(&mut out).unwrap();
    out
}

impl Connection {
    pub fn tcp(server: &Server) -> Connection {
        let stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Connection { socket: Box::new(stream), input: FrameBuffer::new() }
    }

    pub fn unix(path: &Path) -> Connection {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Connection { socket: Box::new(stream), input: FrameBuffer::new() }
    }

    /// The next reply and the id that it answers; `None` once the server has closed the connection.
    pub fn reply(&mut self) -> Option<(i32, Document)> {
        loop {
            if let Some(frame) = self.input.next_frame().unwrap() {
                let message = Message::decode(frame).unwrap();
                let bytes = match &message.body {
                    Body::Msg(message) => message.body(),
                    Body::Reply(reply) => reply.documents().next().unwrap(),
                    Body::Legacy(_) | Body::Compressed(_) => {
                        panic!("a reply is neither a query nor compressed unasked")
                    }
                };
                return Some((message.header.response_to, Document::from_reader(bytes).unwrap()));
            }
            match self.input.fill_from(&mut self.socket) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("reading a reply: {error}"),
            }
        }
    }

    pub fn ask(&mut self, database: &str, command: Document) -> Document {
        self.socket.write_all(&message(1, database, command)).unwrap();
        self.reply().expect("a reply, not the end of the connection").1
    }

    /// The reply of a command that succeeds.
    pub fn ok(&mut self, database: &str, command: Document) -> Document {
        let shown = command.to_string();
        let reply = self.ask(database, command);
        assert_eq!(reply.get_f64("ok").unwrap(), 1.0, "{shown}: {reply}");
        reply
    }

    pub fn ping(&mut self) {
        self.ok("admin", doc! { "ping": 1 });
    }
}
