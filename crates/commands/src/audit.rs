//! The audit trail: who did what to users, rights, collections and indexes, and what was refused.
//!
//! An event is one JSON object in MongoDB's schema: `atype`, `ts`, `uuid`, `local`, `remote`, `users`,
//! `roles`, `param`, `result`. The process brings the file ([`AuditLog`]); this crate decides what is an
//! event.
//!
//! A request gives its events at its end, in one place ([`AuditTrail::request_ended`]): the table
//! [`event_of`](events) tells which commands do. A collection that a statement creates on the way is told
//! where it is created. Without a trail a request pays one comparison.
//!
//! # Not here
//! Writing, rotating and checking the file: crate `server`.

mod events;

use std::fmt;
use std::sync::Arc;

use pando_document::{Binary, Document, JsonFormat, RawDocument, Value, doc, to_json};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;

use crate::{CommandError, Request};

/// The place where events are kept.
pub trait AuditLog: fmt::Debug + Send + Sync {
    /// Appends one line.
    fn append(&self, line: &str);

    /// Begins a new file, and keeps the old one under another name, unless somebody has moved it away.
    ///
    /// # Errors
    /// The fault, for people.
    fn rotate(&self) -> Result<(), String>;
}

/// The trail of a process.
#[derive(Clone, Debug)]
pub struct AuditTrail {
    log: Arc<dyn AuditLog>,
    filter: Option<AuditFilter>,
}

/// A query that the events of a trail match.
#[derive(Clone, Debug)]
pub struct AuditFilter(Filter);

impl AuditFilter {
    /// The filter of a query's document.
    ///
    /// # Errors
    /// The fault of the query, for people.
    pub fn parse(query: &RawDocument) -> Result<AuditFilter, String> {
        Filter::parse(query, &ParseScope::default()).map(AuditFilter).map_err(|error| error.to_string())
    }
}

/// One event, before the time and the parties are added.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AuditEvent {
    pub kind: &'static str,
    pub param: Document,
    /// The code of an error, 0 without one.
    pub result: i32,
}

/// The two ends of a connection, and its users with their roles.
#[derive(Clone, Debug)]
pub(crate) struct Parties {
    local: Document,
    remote: Document,
    users: Vec<Value>,
    roles: Vec<Value>,
}

impl Parties {
    /// Those of a connection whose ends have these addresses.
    pub fn new(local: Option<&str>, remote: &str, users: Vec<Value>, roles: Vec<Value>) -> Parties {
        Parties { local: place(local), remote: place(Some(remote)), users, roles }
    }

    /// The process itself.
    pub fn own() -> Parties {
        Parties { local: place(None), remote: place(None), users: Vec::new(), roles: Vec::new() }
    }
}

/// The moment of an event, and a random identity for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditStamp {
    pub now_ms: i64,
    pub uuid: [u8; 16],
}

impl AuditTrail {
    /// A trail of the events that match the filter; without one of all.
    pub fn new(log: Arc<dyn AuditLog>, filter: Option<AuditFilter>) -> AuditTrail {
        AuditTrail { log, filter }
    }

    /// Begins a new file.
    ///
    /// # Errors
    /// The fault, for people.
    pub fn rotate(&self) -> Result<(), String> {
        self.log.rotate()
    }

    /// Keeps an event, unless the filter passes over it.
    pub(crate) fn record(&self, parties: Parties, stamp: AuditStamp, event: &AuditEvent) {
        let whole = doc! {
            "atype": event.kind,
            "ts": Value::DateTime(stamp.now_ms),
            "uuid": Value::Binary(Binary { subtype: 4, bytes: stamp.uuid.to_vec() }),
            "local": parties.local,
            "remote": parties.remote,
            "users": Value::Array(parties.users),
            "roles": Value::Array(parties.roles),
            "param": event.param.clone(),
            "result": event.result,
        };
        let raw = whole.to_raw();
        // An event that cannot be judged is kept.
        let is_wanted = self.filter.as_ref().is_none_or(|filter| filter.0.matches(&raw).unwrap_or(true));
        if is_wanted {
            self.log.append(&to_json(&whole, JsonFormat::Relaxed));
        }
    }

    /// Keeps the events of a request that has ended with this outcome.
    #[cold]
    pub(crate) fn request_ended(
        &self,
        parties: impl Fn() -> Parties,
        request: &Request<'_>,
        outcome: &Result<(), CommandError>,
        mut stamp: impl FnMut() -> AuditStamp,
    ) {
        let result = match outcome {
            Ok(()) => 0,
            Err(CommandError::Failed(failure)) => failure.code.code(),
            // It is handled again.
            Err(CommandError::WouldBlock(_)) => return,
        };
        for event in events::of_request(request, result) {
            self.record(parties(), stamp(), &event);
        }
    }

    /// Keeps the event of a request that its client has no right to.
    #[cold]
    pub(crate) fn request_refused(&self, parties: Parties, request: &Request<'_>, stamp: AuditStamp) {
        self.record(parties, stamp, &events::of_refusal(request));
    }
}

/// An address as a document: `{ip, port}`, or `{unix}`.
fn place(address: Option<&str>) -> Document {
    let Some(address) = address else { return doc! { "unix": "anonymous" } };
    match address.rsplit_once(':').and_then(|(ip, port)| Some((ip, port.parse::<i32>().ok()?))) {
        Some((ip, port)) => doc! { "ip": ip.trim_matches(['[', ']']), "port": port },
        None => doc! { "unix": address },
    }
}
