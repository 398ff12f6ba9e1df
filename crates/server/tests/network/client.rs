//! A blocking client that sends what it is told to, right or wrong.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pando_wire::{Body, FrameBuffer, Header, Message, MsgFlags, OpMsgWriter};

pub struct Client {
    pub stream: TcpStream,
    input: FrameBuffer,
}

/// A reply: its number, which request it answers, its flags, its document.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub request_id: i32,
    pub response_to: i32,
    pub flags: MsgFlags,
    pub document: Vec<u8>,
}

/// A request with this id and body.
pub fn message(id: i32, flags: MsgFlags, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let writer = OpMsgWriter::begin(&mut out, id, 0, flags);
    writer.body(&mut out, body);
    writer.finish(&mut out).unwrap();
    out
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Client { stream, input: FrameBuffer::new() }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next frame; `None` once the server has closed the connection.
    pub fn frame(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(frame) = self.input.next_frame().unwrap() {
                return Some(frame.to_vec());
            }
            match self.input.fill_from(&mut self.stream) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("reading a reply: {error}"),
            }
        }
    }

    pub fn reply(&mut self) -> Reply {
        let frame = self.frame().expect("a reply, not the end of the connection");
        let message = Message::decode(&frame).unwrap();
        let Body::Msg(msg) = message.body else { panic!("an OP_MSG") };
        let Header { request_id, response_to, .. } = message.header;
        Reply { request_id, response_to, flags: msg.flags(), document: msg.body().to_vec() }
    }

    /// Sends one request and takes its reply.
    pub fn ask(&mut self, id: i32, body: &[u8]) -> Vec<u8> {
        self.send(&message(id, MsgFlags::NONE, body));
        let reply = self.reply();
        assert_eq!(reply.response_to, id);
        reply.document
    }

    /// Fails unless the server closes the connection.
    pub fn expect_closed(&mut self) {
        assert_eq!(self.frame(), None);
    }
}
