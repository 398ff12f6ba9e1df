//! Engines in this process: the same requests as on the wire, without a socket.
//!
//! A script makes an OP_MSG. Here it is parsed again (some ten nanoseconds) into the command document and its
//! sequences, which go to the embedded crate. The reply document goes straight to the script. Each client has
//! a thread of its own, which also runs the engine, so the client's own cost cannot be told apart.

use super::script::{Judgement, Next, Note, Script, Turn, Verdict};
use super::task::{ClientState, Performed, Statement, Task};
use crate::error::{BenchError, make_folder};
use pando_document::{Document, RawDocument};
use pando_wire::{Body, Message};
use pandodb::{DocumentSequence, EngineName, Options, Pando, RawSession, Request};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The beginning of embedded targets, before the engine's name.
pub const SCHEME: &str = "embedded:";

/// An engine in this process, open until the last client is gone.
pub struct EmbeddedStore {
    name: String,
    kind: Kind,
}

enum Kind {
    Store(Pando),
    /// Answers everything with the same document: what the tool itself costs.
    Null(Canned),
}

/// The reply of a store that is none, and where requests are written down, if anywhere.
#[derive(Clone)]
struct Canned {
    reply: Vec<u8>,
    record: Option<Record>,
}

/// Requests, framed as on the wire, in the order in which they came.
pub type Record = Arc<Mutex<Vec<Vec<u8>>>>;

impl EmbeddedStore {
    /// Opens an engine by name, over a folder, with so much memory for cached pages.
    pub fn open(engine: &str, folder: &Path, cache_bytes: u64) -> Result<EmbeddedStore, BenchError> {
        let engine: EngineName =
            engine.parse().map_err(|cause| BenchError::Option { option: "uri", cause })?;
        make_folder(folder)?;
        let mut options = Options { engine, ..Options::default() };
        options.engine_options.cache_bytes = cache_bytes;
        let store = Pando::open_with(folder, &options)?;
        Ok(EmbeddedStore { name: format!("{SCHEME}{}", engine.as_str()), kind: Kind::Store(store) })
    }

    /// A store that is none: it answers everything with `reply`.
    pub fn null(reply: &Document) -> EmbeddedStore {
        EmbeddedStore::canned(reply, None)
    }

    /// The same, which writes down what it is asked.
    pub fn recording(reply: &Document, record: Record) -> EmbeddedStore {
        EmbeddedStore::canned(reply, Some(record))
    }

    fn canned(reply: &Document, record: Option<Record>) -> EmbeddedStore {
        let reply = reply.to_raw().as_bytes().to_vec();
        EmbeddedStore { name: format!("{SCHEME}null"), kind: Kind::Null(Canned { reply, record }) }
    }

    pub fn session(&self) -> EmbeddedSession {
        EmbeddedSession {
            to: match &self.kind {
                Kind::Store(store) => Peer::Store(Box::new(store.raw_session())),
                Kind::Null(canned) => Peer::Null(canned.clone()),
            },
        }
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        if let Kind::Store(store) = &self.kind {
            // A store that could not be closed is opened again by replaying its log.
            let _ = store.clone().close();
        }
    }
}

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Display for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

pub struct EmbeddedSession {
    to: Peer,
}

enum Peer {
    Store(Box<RawSession>),
    Null(Canned),
}

impl fmt::Debug for EmbeddedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmbeddedSession")
    }
}

impl EmbeddedSession {
    /// Hands over a request that is framed as on the wire, and appends the reply document.
    pub fn handle(&mut self, frame: &[u8], reply: &mut Vec<u8>) -> Result<(), BenchError> {
        let store = match &mut self.to {
            Peer::Store(store) => store,
            Peer::Null(canned) => {
                if let Some(record) = &canned.record {
                    record.lock().unwrap_or_else(PoisonError::into_inner).push(frame.to_vec());
                }
                reply.extend_from_slice(&canned.reply);
                return Ok(());
            }
        };
        let message = Message::decode(frame)?;
        let Body::Msg(message) = message.body else {
            return Err(BenchError::ReplyKind { op_code: message.header.op_code });
        };
        let body = RawDocument::from_bytes(message.body())?;
        let sequences: Vec<DocumentSequence<'_>> = message
            .sequences()
            .iter()
            .map(|sequence| DocumentSequence {
                identifier: sequence.identifier(),
                documents: sequence.bytes(),
            })
            .collect();
        store.handle(&Request { body, sequences: &sequences }, reply)?;
        Ok(())
    }
}

/// A client that follows a script on a thread of its own, without a socket.
pub struct EmbeddedClient {
    session: EmbeddedSession,
    script: Box<dyn Script>,
    request: Vec<u8>,
    reply: Vec<u8>,
    request_id: i32,
}

impl EmbeddedClient {
    pub fn new(store: &EmbeddedStore, script: Box<dyn Script>) -> EmbeddedClient {
        let session = store.session();
        EmbeddedClient { session, script, request: Vec::new(), reply: Vec::new(), request_id: 0 }
    }

    fn next_request(&mut self) -> Turn {
        self.request.clear();
        self.request_id = self.request_id.wrapping_add(1);
        self.script.request(self.request_id, &mut self.request)
    }

    fn exchange(&mut self) -> Result<Judgement, BenchError> {
        self.reply.clear();
        self.session.handle(&self.request, &mut self.reply)?;
        Ok(self.script.judge(RawDocument::from_bytes(&self.reply)?))
    }
}

impl Task for EmbeddedClient {
    fn prepare(&mut self) -> Turn {
        self.next_request()
    }

    fn perform(&mut self) -> Performed {
        let mut performed = Performed {
            statements: Vec::new(),
            verdict: Verdict::Done,
            operations: 0,
            retries: 0,
            client: ClientState::GoesOn,
        };
        let mut statement_began = Instant::now();
        loop {
            let judgement = match self.exchange() {
                Ok(judgement) => judgement,
                Err(error) => {
                    performed.verdict = Verdict::Failed(error.to_string());
                    performed.client = ClientState::Out;
                    self.script.lost();
                    return performed;
                }
            };
            if let (Some(kind), false) = (judgement.statement, judgement.next == Next::Again) {
                let now = Instant::now();
                let latency = now.duration_since(statement_began);
                performed.statements.push(Statement { kind, latency, verdict: judgement.verdict.clone() });
                statement_began = now;
            }
            match judgement.next {
                Next::Unit { operations } => {
                    performed.verdict = judgement.verdict;
                    performed.operations = operations;
                    return performed;
                }
                Next::Again => performed.retries += 1,
                Next::Request => {}
            }
            assert_eq!(self.next_request(), Turn::Request, "a script does not end in the middle of a unit");
        }
    }

    fn notes(&self) -> Vec<Note> {
        self.script.notes()
    }
}
