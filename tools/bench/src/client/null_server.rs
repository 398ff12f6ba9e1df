//! A server that answers everything at once with the same reply, and so costs as little as a server can.
//!
//! Measured with the same client, it gives the rate that the client cannot pass: a result near it says more
//! about the client than about the server. One thread with one epoll loop; each request costs it one read and
//! one write, too.

use crate::error::{BenchError, no_resource};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use pando_document::{Document, doc};
use pando_wire::{Header, MsgFlags, OpMsgWriter, frame_length};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

const LISTENER: Token = Token(usize::MAX);
const STOP: Token = Token(usize::MAX - 1);
const BUFFER_BYTES: usize = 64 * 1024;

/// A server that listens until it is dropped.
pub trait Listening {
    /// Where it listens.
    fn address(&self) -> SocketAddr;
}

/// A null server that runs until it is dropped.
#[derive(Debug)]
pub struct NullServer {
    address: SocketAddr,
    stop: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl NullServer {
    /// Starts one on a free port of loopback. A request that says hello is answered with `ok: 1`, any other
    /// with `reply`.
    pub fn start(reply: &Document) -> Result<NullServer, BenchError> {
        let resource = no_resource("a listening socket");
        let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into()).map_err(resource)?;
        let address = listener.local_addr().map_err(resource)?;
        let poll = Poll::new().map_err(resource)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE).map_err(resource)?;
        let stop = Arc::new(Waker::new(poll.registry(), STOP).map_err(resource)?);
        let server = Loop {
            poll,
            listener,
            peers: Vec::new(),
            hello: frame(&doc! { "maxWireVersion": 17, "ok": 1.0 })?,
            reply: frame(reply)?,
            buffer: vec![0; BUFFER_BYTES],
        };
        let thread = std::thread::Builder::new().name("null-server".into()).spawn(|| server.run());
        let thread = Some(thread.map_err(no_resource("a thread"))?);
        Ok(NullServer { address, stop, thread })
    }
}

impl Listening for NullServer {
    fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        if self.stop.wake().is_ok()
            && let Some(thread) = self.thread.take()
        {
            // It does not panic; and if it did, the run it served has failed already.
            let _ = thread.join();
        }
    }
}

fn frame(body: &Document) -> Result<Vec<u8>, BenchError> {
    let mut frame = Vec::new();
    let writer = OpMsgWriter::begin(&mut frame, 1, 0, MsgFlags::NONE);
    writer.body(&mut frame, body.to_raw().as_bytes());
    writer.finish(&mut frame)?;
    Ok(frame)
}

struct Loop {
    poll: Poll,
    listener: TcpListener,
    /// A peer that has left keeps its place, empty.
    peers: Vec<Option<Peer>>,
    hello: Vec<u8>,
    reply: Vec<u8>,
    buffer: Vec<u8>,
}

struct Peer {
    stream: TcpStream,
    /// The beginning of a request that came in pieces.
    partial: Vec<u8>,
    /// The first request of a connection is its hello.
    greeted: bool,
}

impl Loop {
    fn run(mut self) {
        let mut events = Events::with_capacity(256);
        loop {
            match self.poll.poll(&mut events, None) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
            }
            for event in &events {
                match event.token() {
                    STOP => return,
                    LISTENER => self.accept(),
                    Token(index) => self.serve(index),
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let token = Token(self.peers.len());
            let registered = self.poll.registry().register(&mut stream, token, Interest::READABLE);
            if stream.set_nodelay(true).is_ok() && registered.is_ok() {
                self.peers.push(Some(Peer { stream, partial: Vec::new(), greeted: false }));
            }
        }
    }

    fn serve(&mut self, index: usize) {
        let Some(peer) = self.peers.get_mut(index).and_then(Option::as_mut) else { return };
        if peer.serve(&mut self.buffer, &mut self.hello, &mut self.reply).is_none() {
            self.peers[index] = None;
        }
    }
}

impl Peer {
    /// Reads once, and answers if a request is whole. Nothing if the peer has left or sends what is no
    /// request.
    fn serve(&mut self, buffer: &mut [u8], hello: &mut [u8], reply: &mut [u8]) -> Option<()> {
        loop {
            let count = match self.stream.read(buffer) {
                Ok(0) => return None,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            let piece = &buffer[..count];
            let request_id = if self.partial.is_empty() && frame_length(piece).ok()? == Some(count) {
                Some(Header::decode(piece).ok()?.request_id)
            } else {
                self.partial.extend_from_slice(piece);
                self.request_in_pieces()?
            };
            if let Some(request_id) = request_id {
                let answer: &mut [u8] = if self.greeted { reply } else { hello };
                self.greeted = true;
                answer[8..12].copy_from_slice(&request_id.to_le_bytes());
                // A client with one request under way always leaves room for its reply.
                self.stream.write_all(answer).ok()?;
            }
            if count < buffer.len() {
                return Some(());
            }
        }
    }

    /// The id of a request that is whole now; `Some(None)` while it is not.
    fn request_in_pieces(&mut self) -> Option<Option<i32>> {
        if frame_length(&self.partial).ok()? != Some(self.partial.len()) {
            return Some(None);
        }
        let request_id = Header::decode(&self.partial).ok()?.request_id;
        self.partial.clear();
        Some(Some(request_id))
    }
}
