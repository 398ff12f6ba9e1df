//! The script of a client: its requests one by one, which a worker's event loop follows.
//!
//! # Terms
//! - *Unit*: what the rate counts: a query, a transaction, a request of LinkBench, a batch of documents.
//! - *Statement*: a part of a unit with a latency of its own; it has a *kind* (point, range, update …). A
//!   unit of one statement needs no kind.
//! - *Request*: one message. A statement takes several where the server answers in batches.
//!
//! # The conversation
//! 1. [`Script::request`] appends a request, or says that the script is over.
//! 2. [`Script::judge`] looks at its reply, and says what ended with it: nothing yet, a statement, the unit.

use pando_document::RawDocument;

/// The work of one client.
pub trait Script: Send {
    /// Appends the next request, with this id, to `out`; appends nothing when there is nothing left to do. In
    /// the middle of a unit there always is.
    fn request(&mut self, request_id: i32, out: &mut Vec<u8>) -> Turn;

    /// Looks at the body of the reply to the request before; `body` is a whole document by its length and its
    /// end.
    fn judge(&mut self, body: &RawDocument) -> Judgement;

    /// Its connection is lost: it will be asked for nothing more.
    fn lost(&mut self) {}

    /// Counts of its own since it began. They are looked at when the window opens and when it closes.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// Whether a script goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The unit goes on with another request.
    Request,
    /// There is nothing left to do.
    Over,
}

/// A kind of statement: its place in the workload's list of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind(u8);

impl Kind {
    /// The kind at this place of the list; a workload has fewer than 256.
    pub const fn new(place: u8) -> Kind {
        Kind(place)
    }

    /// Its place.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Something that a script counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What, in words, the same for all scripts of a workload.
    pub name: &'static str,
    /// How often.
    pub count: u64,
}

/// The effect of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The kind of the statement that ended; nothing if it goes on, or if it has no kind.
    pub statement: Option<Kind>,
    /// How that went; of a statement that goes on, [`Verdict::Done`].
    pub verdict: Verdict,
    pub next: Next,
}

/// The next step of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Request,
    /// The unit goes on with the same statement once more, because the server said that it may work now.
    Again,
    /// The unit is over; so many operations (documents of a batch, or 1) were done by it, if it did not fail.
    Unit {
        operations: u32,
    },
}

impl Judgement {
    /// The only statement of a unit ended so.
    pub fn unit(verdict: Verdict) -> Judgement {
        Judgement { statement: None, verdict, next: Next::Unit { operations: 1 } }
    }

    pub fn more() -> Judgement {
        Judgement { statement: None, verdict: Verdict::Done, next: Next::Request }
    }
}

/// How a statement went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did what it should.
    Done,
    /// The server answered well, but did not find what was asked for.
    Missed,
    /// The server refused it, or the reply is not what it must be.
    Failed(String),
}
