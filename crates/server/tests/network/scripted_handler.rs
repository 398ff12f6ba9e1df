//! A handler whose requests say how it answers them. The number is an int32. The reply to `large` has that
//! length; every other reply is the body of the request again.
//!
//! | request | answer |
//! |---|---|
//! | `{echo: n}`, `{hello: n}` | at once |
//! | `{block: ms}` | after this time, on a thread that may block |
//! | `{urgent: ms}` | the same, on one that is kept for urgent requests |
//! | `{stall: ms}` | after this time, on the I/O thread |
//! | `{later: ms}` | the reply waits for this time |
//! | `{again: ms}` | after this time, without a thread |
//! | `{return: ms}` | the same, from a thread that may block and on one again |
//! | `{never: 1}` | the reply waits, and will never be true |
//! | `{panic: 1}` | the handler panics |
//! | `{large: bytes}` | a reply of this length |
//! | `{decline: 1}` | never; a handler that may block must not decline, so the network side panics |
//! | `{linger: ms}` | on a thread that may block, after this time or when the peer is gone |
//! | `{lack: blocks}` | at once, after this many blocks were read |
//! | `{lose: 1}` | lacks a block that cannot be read |
//! | `{burst: 1}` | lacks a block that panics when its bytes come |

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::scripted_reads::ScriptedReads;
use pando_commands::{
    BlockingMode, DurabilityWaker, ErrorKind, Handled, Priority, ReplyWait, StorageError, StreamState,
};
use pando_server::network::{
    AddressLimits, Encryption, Handler, HangUp, LegacyAnswer, Limits, Listener, Network, Patiences, Peer,
    Placement, Security, WireRequest,
};
use pando_wire::{LegacyRequest, ReplyFields};

/// Counts what happened to it.
#[derive(Default)]
pub struct ScriptedHandler {
    pub reads: ScriptedReads,
    pub sessions: AtomicUsize,
    pub handled: AtomicUsize,
    pub retried: AtomicUsize,
    /// A request was told, while it was on another thread, that its peer is gone.
    pub is_peer_gone: Arc<AtomicBool>,
    /// Further replies that requests still have.
    pub further_replies: AtomicUsize,
    /// Clients have to log in, and none has.
    pub untrusted: AtomicBool,
    /// The subjects of the certificates that clients have shown.
    pub subjects: Mutex<Vec<Option<String>>>,
    /// Streams of replies whose peer went away within them.
    pub abandoned: AtomicUsize,
}

/// `{name: number}`.
pub fn document(name: &str, number: i32) -> Vec<u8> {
    let length = i32::try_from(4 + 1 + name.len() + 1 + 4 + 1).unwrap();
    [length.to_le_bytes().as_slice(), b"\x10", name.as_bytes(), b"\0", &number.to_le_bytes(), b"\0"].concat()
}

/// A document of exactly this length: one binary value full of zeros.
pub fn document_of_length(length: usize) -> Vec<u8> {
    let value = length - 13;
    let mut document = i32::try_from(length).unwrap().to_le_bytes().to_vec();
    document.extend_from_slice(b"\x05b\0");
    document.extend_from_slice(&i32::try_from(value).unwrap().to_le_bytes());
    document.push(0);
    document.resize(length, 0);
    document
}

/// The request's script and its number.
fn script(body: &[u8]) -> (&str, i32) {
    let end = body[5..].iter().position(|byte| *byte == 0).unwrap();
    let number = body[5 + end + 1..][..4].try_into().map(i32::from_le_bytes).unwrap();
    (std::str::from_utf8(&body[5..5 + end]).unwrap(), number)
}

fn milliseconds(number: i32) -> Duration {
    Duration::from_millis(u64::try_from(number).unwrap())
}

impl Handler for ScriptedHandler {
    /// Blocks that were read for the request at hand.
    type Session = Arc<AtomicUsize>;

    fn connected(&self, _peer: &Peer) -> Arc<AtomicUsize> {
        self.sessions.fetch_add(1, Ordering::SeqCst);
        Arc::default()
    }

    fn handle(
        &self,
        have: &mut Arc<AtomicUsize>,
        request: &WireRequest<'_>,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> Handled {
        let (name, number) = script(request.body);
        if name == "decline" {
            return Handled::WouldBlock(None);
        }
        if matches!(name, "block" | "urgent" | "linger" | "return") && blocking == BlockingMode::CachedOnly {
            self.retried.fetch_add(1, Ordering::SeqCst);
            return Handled::WouldBlock(None);
        }
        let lacks = name == "lack" && have.load(Ordering::SeqCst) < usize::try_from(number).unwrap();
        if blocking == BlockingMode::CachedOnly && (lacks || name == "lose" || name == "burst") {
            self.retried.fetch_add(1, Ordering::SeqCst);
            let missed = match name {
                "lack" => self.reads.next(have),
                "burst" => self.reads.panicking(),
                _ => self.reads.failing(),
            };
            return Handled::WouldBlock(Some(missed));
        }
        if matches!(name, "again" | "return") && have.swap(1, Ordering::SeqCst) == 0 {
            self.retried.fetch_add(1, Ordering::SeqCst);
            self.handled.fetch_add(1, Ordering::SeqCst);
            return Handled::Again(Box::new(ScriptedWait::Durable(milliseconds(number))));
        }
        have.store(0, Ordering::SeqCst);
        self.handled.fetch_add(1, Ordering::SeqCst);
        match name {
            "block" | "urgent" | "stall" => thread::sleep(milliseconds(number)),
            "linger" => {
                let end = Instant::now() + milliseconds(number);
                while Instant::now() < end && !self.is_peer_gone.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            "panic" => panic!("as the request asked"),
            "large" => {
                reply.extend_from_slice(&document_of_length(usize::try_from(number).unwrap()));
                return Handled::Reply;
            }
            _ => {}
        }
        reply.extend_from_slice(request.body);
        match name {
            "later" => Handled::ReplyLater(Box::new(ScriptedWait::Durable(milliseconds(number)))),
            "never" => Handled::ReplyLater(Box::new(ScriptedWait::Lost)),
            _ => Handled::Reply,
        }
    }

    fn handle_legacy(
        &self,
        have: &mut Arc<AtomicUsize>,
        request: &LegacyRequest<'_>,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> LegacyAnswer {
        let handled = match request {
            LegacyRequest::Query(query) => {
                self.handle(have, &WireRequest { body: query.query, sequences: &[] }, blocking, reply)
            }
            _ => Handled::Reply,
        };
        LegacyAnswer { handled, fields: ReplyFields::ONE_DOCUMENT }
    }

    fn priority(&self, command: &[u8]) -> Priority {
        if script(command).0 == "urgent" { Priority::High } else { Priority::Normal }
    }

    fn encrypted(&self, _have: &mut Arc<AtomicUsize>, encryption: Encryption) {
        self.subjects.lock().unwrap().push(encryption.client_subject);
    }

    fn is_trusted(&self, _have: &Arc<AtomicUsize>) -> bool {
        !self.untrusted.load(Ordering::SeqCst)
    }

    fn has_further_replies(&self, _have: &Arc<AtomicUsize>) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        self.further_replies.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
    }

    fn on_hang_up(&self, _have: &Arc<AtomicUsize>) -> Option<HangUp> {
        let is_peer_gone = Arc::clone(&self.is_peer_gone);
        Some(Box::new(move || is_peer_gone.store(true, Ordering::SeqCst)))
    }

    fn disconnected(&self, _have: Arc<AtomicUsize>, stream: StreamState) {
        self.abandoned.fetch_add(usize::from(stream == StreamState::Abandoned), Ordering::SeqCst);
        self.sessions.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A wait of a reply.
enum ScriptedWait {
    /// Over after this time; at once, on the same thread, if it is none.
    Durable(Duration),
    /// Over at once: the reply will never be true.
    Lost,
}

impl ReplyWait for ScriptedWait {
    fn notify(self: Box<Self>, waker: DurabilityWaker) {
        match *self {
            ScriptedWait::Durable(Duration::ZERO) => waker(Ok(())),
            ScriptedWait::Durable(time) => drop(thread::spawn(move || {
                thread::sleep(time);
                waker(Ok(()));
            })),
            ScriptedWait::Lost => waker(Err(StorageError::new(ErrorKind::Io, "as the request asked"))),
        }
    }

    fn wait(self: Box<Self>) -> Result<(), StorageError> {
        unreachable!("the network side does not wait on its threads")
    }
}

/// A running network side.
pub struct Server {
    pub handler: Arc<ScriptedHandler>,
    pub network: Network<ScriptedHandler>,
    pub address: SocketAddr,
}

pub const LIMITS: Limits = Limits {
    io_threads: 2,
    placement: Placement::Free,
    blocking_threads: 4,
    queued_reads: 8,
    connections: 100,
    of_address: AddressLimits { connections: None, requests_per_second: None },
    patiences: Patiences::UNLIMITED,
};

pub fn start(limits: Limits) -> Server {
    start_secured(limits, Security::Plain)
}

pub fn start_secured(limits: Limits, security: Security) -> Server {
    let handler = Arc::new(ScriptedHandler::default());
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap().secured(security);
    let address = listener.address().unwrap();
    let network = Network::start(Arc::clone(&handler), vec![listener], limits).unwrap();
    Server { handler, network, address }
}

/// Waits until something holds, and fails if it does not within five seconds.
pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("after five seconds still not: {what}");
}
