//! Inserts by batches, for every load and every insert workload over the wire.
//!
//! A [`BatchSource`] makes documents; an [`Inserter`] is the script that sends them, one `insert` a batch
//! with its documents as a sequence, and that believes a reply only if it counts all of them.

use super::load::Durability;
use crate::client::{Judgement, Kind, Next, Note, Outcome, Script, Turn, Verdict, outcome_of};
use pando_document::{RawDocument, doc};
use pando_wire::{MsgFlags, OpMsgWriter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub database: String,
    pub collection: String,
    /// How many documents.
    pub documents: u32,
}

/// Where batches come from.
pub trait BatchSource: Send {
    /// Appends the documents of the next batch to `out`; nothing when all are made.
    fn next_batch(&mut self, out: &mut Vec<u8>) -> Option<Batch>;

    /// The client is gone: no batch is asked for any more.
    fn lost(&mut self) {}

    /// Counts of its own.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// The reaction to a batch that failed.
#[derive(Clone, Debug)]
pub enum OnFailure {
    /// Goes on with the next one: that batch is lost, and counted as failed.
    GoOn,
    /// Ends, and all others that share this flag: a load that lost documents is no load.
    EndAll(Arc<AtomicBool>),
}

pub struct Inserter<S> {
    durability: Durability,
    source: S,
    on_failure: OnFailure,
    kind: Option<Kind>,
    documents: Vec<u8>,
    expected: u32,
}

impl<S: BatchSource> Inserter<S> {
    /// A client that inserts all batches of a source.
    pub fn new(durability: Durability, source: S, on_failure: OnFailure) -> Inserter<S> {
        Inserter { durability, source, on_failure, kind: None, documents: Vec::new(), expected: 0 }
    }

    #[must_use]
    pub fn of_kind(self, kind: Kind) -> Inserter<S> {
        Inserter { kind: Some(kind), ..self }
    }

    fn verdict(&self, body: &RawDocument) -> Verdict {
        match outcome_of(body) {
            Ok(Outcome::Succeeded) => {}
            Ok(Outcome::Refused { code, message }) => {
                return Verdict::Failed(format!("{message} (code {code})"));
            }
            Err(error) => return Verdict::Failed(error.to_string()),
        }
        let inserted = body.get("n").ok().flatten().and_then(|n| n.as_i64_exact());
        if inserted == Some(i64::from(self.expected)) {
            Verdict::Done
        } else {
            Verdict::Failed(format!("{} of {} documents inserted", inserted.unwrap_or(0), self.expected))
        }
    }
}

impl<S: BatchSource> Script for Inserter<S> {
    fn request(&mut self, request_id: i32, out: &mut Vec<u8>) -> Turn {
        if let OnFailure::EndAll(failed) = &self.on_failure
            && failed.load(Ordering::Relaxed)
        {
            return Turn::Over;
        }
        self.documents.clear();
        let Some(batch) = self.source.next_batch(&mut self.documents) else { return Turn::Over };
        let body = doc! {
            "insert": batch.collection,
            "ordered": true,
            "writeConcern": self.durability.write_concern(),
            "$db": batch.database,
        };
        let writer = OpMsgWriter::begin(out, request_id, 0, MsgFlags::NONE);
        writer.body(out, body.to_raw().as_bytes());
        writer.sequence(out, "documents", [self.documents.as_slice()]);
        writer.finish(out).expect("batches are limited to far less than a message may hold");
        self.expected = batch.documents;
        Turn::Request
    }

    fn judge(&mut self, body: &RawDocument) -> Judgement {
        let verdict = self.verdict(body);
        if let (Verdict::Failed(_), OnFailure::EndAll(failed)) = (&verdict, &self.on_failure) {
            failed.store(true, Ordering::Relaxed);
        }
        Judgement { statement: self.kind, verdict, next: Next::Unit { operations: self.expected } }
    }

    fn lost(&mut self) {
        self.source.lost();
    }

    fn notes(&self) -> Vec<Note> {
        self.source.notes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two(u32);

    impl BatchSource for Two {
        fn next_batch(&mut self, out: &mut Vec<u8>) -> Option<Batch> {
            self.0 += 1;
            out.extend_from_slice(doc! { "_id": 1 }.to_raw().as_bytes());
            (self.0 <= 2).then(|| Batch { database: "d".into(), collection: "c".into(), documents: 1 })
        }
    }

    fn inserter(failed: &Arc<AtomicBool>) -> Inserter<Two> {
        Inserter::new(Durability::W1, Two(0), OnFailure::EndAll(failed.clone()))
    }

    #[test]
    fn all_batches_are_sent_and_then_it_is_over() {
        let mut script = inserter(&Arc::default());
        let mut out = Vec::new();
        let turns: Vec<Turn> = (0..3).map(|id| script.request(id, &mut out)).collect();
        assert_eq!(turns, [Turn::Request, Turn::Request, Turn::Over]);
    }

    #[test]
    fn a_batch_that_is_not_wholly_inserted_ends_all() {
        let failed = Arc::default();
        let (mut first, mut second) = (inserter(&failed), inserter(&failed));
        let mut out = Vec::new();
        assert_eq!(first.request(1, &mut out), Turn::Request);
        let judgement = first.judge(&doc! { "n": 0, "ok": 1.0 }.to_raw());
        assert_eq!(judgement.verdict, Verdict::Failed("0 of 1 documents inserted".into()));
        assert_eq!(second.request(1, &mut out), Turn::Over);
    }

    #[test]
    fn a_whole_batch_is_worth_its_documents() {
        let mut script = inserter(&Arc::default());
        script.request(1, &mut Vec::new());
        let judgement = script.judge(&doc! { "n": 1, "ok": 1.0 }.to_raw());
        assert_eq!((judgement.verdict, judgement.next), (Verdict::Done, Next::Unit { operations: 1 }));
    }
}
