//! Commands of the user's own, with values that are drawn anew for each request.
//!
//! 1. Draw one of the commands evenly, and the values of its draws ([`draws`]).
//! 2. Send it. While the reply has an open cursor, ask for the next batch: the unit is the whole answer.
//! 3. Of each reply: `ok: 1`, and no write that was refused. The documents of all answers are counted, so
//!    that two servers can be compared.
//!
//! The data is the user's: nothing is loaded.

pub(crate) mod draws;

use super::{RunNumber, Workload};
use crate::client::{Clients, Judgement, Kind, Next, Note, Outcome, Script, Turn, Verdict, outcome_of};
use crate::error::BenchError;
use crate::target::Target;
use draws::Template;
use pando_document::{Document, JsonFormat, RawDocument, doc, to_json};
use pando_measuring::random::{Generator, Random};
use pando_wire::{MsgFlags, OpMsgWriter};
use serde_json::json;
use std::sync::Arc;

/// More kinds of statements than these are not told apart.
pub const COMMANDS_MAX: usize = 100;

/// The workload.
#[derive(Clone, Debug)]
pub struct Commands {
    database: String,
    commands: Arc<[Named]>,
    generator: Generator,
    seed: u64,
}

#[derive(Clone, Debug)]
struct Named {
    name: String,
    text: String,
    template: Template,
}

impl Commands {
    /// Commands against a database.
    ///
    /// # Errors
    /// The cause, in words, if there is none, there are more than [`COMMANDS_MAX`], or one is malformed.
    pub fn new(
        database: String,
        commands: &[Document],
        generator: Generator,
        seed: u64,
    ) -> Result<Commands, String> {
        if commands.is_empty() || commands.len() > COMMANDS_MAX {
            return Err(format!("{} commands; 1 to {COMMANDS_MAX} can be measured at once", commands.len()));
        }
        let named: Result<Arc<[Named]>, String> = commands.iter().map(Named::of).collect();
        Ok(Commands { database, commands: named?, generator, seed })
    }
}

impl Named {
    fn of(command: &Document) -> Result<Named, String> {
        let Some((verb, _)) = command.iter().next() else { return Err("a command has a name".into()) };
        let comment = command.get("comment").and_then(|comment| comment.as_str());
        let name = comment.unwrap_or(verb).to_owned();
        let text = to_json(command, JsonFormat::Relaxed);
        let template = Template::of(command).map_err(|cause| format!("{name}: {cause}"))?;
        Ok(Named { name, text, template })
    }
}

impl Workload for Commands {
    fn databases(&self) -> Vec<String> {
        vec![self.database.clone()]
    }

    fn name(&self) -> &'static str {
        "commands"
    }

    fn summary(&self) -> String {
        let names: Vec<&str> = self.commands.iter().map(|command| command.name.as_str()).collect();
        format!("{} in {}, {} seed {}", names.join(", "), self.database, self.generator.name(), self.seed)
    }

    fn parameters(&self) -> serde_json::Value {
        let texts: Vec<&str> = self.commands.iter().map(|command| command.text.as_str()).collect();
        json!({
            "database": self.database,
            "commands": texts,
            "generator": self.generator.name(),
            "seed": self.seed,
        })
    }

    fn operations(&self) -> &'static str {
        "commands"
    }

    fn kinds(&self) -> Vec<String> {
        self.commands.iter().map(|command| command.name.clone()).collect()
    }

    fn clients(&self, _target: &Target, clients: u32, run: RunNumber) -> Result<Clients, BenchError> {
        let script = |client| -> Box<dyn Script> {
            Box::new(CommandClient {
                database: self.database.clone(),
                commands: self.commands.clone(),
                random: Random::for_client(self.generator, self.seed, run.stream(client)),
                current: 0,
                open: None,
                documents: 0,
            })
        };
        Ok(Clients::of_scripts((0..clients).map(script).collect()))
    }

    fn null_reply(&self) -> Option<Document> {
        Some(doc! { "cursor": { "firstBatch": [], "id": 0_i64, "ns": "a.b" }, "ok": 1.0 })
    }
}

struct CommandClient {
    database: String,
    commands: Arc<[Named]>,
    random: Random,
    /// The command that was sent last.
    current: usize,
    /// The cursor of it that is open.
    open: Option<OpenCursor>,
    documents: u64,
}

struct OpenCursor {
    id: i64,
    collection: String,
}

impl Script for CommandClient {
    fn request(&mut self, request_id: i32, out: &mut Vec<u8>) -> Turn {
        let mut command = match &self.open {
            Some(open) => doc! { "getMore": open.id, "collection": open.collection.as_str() },
            None => {
                let count = u32::try_from(self.commands.len()).expect("there are a hundred at most");
                self.current = self.random.below(count) as usize;
                self.commands[self.current].template.fill(&mut self.random)
            }
        };
        command.push("$db", self.database.as_str());
        let writer = OpMsgWriter::begin(out, request_id, 0, MsgFlags::NONE);
        writer.body(out, command.to_raw().as_bytes());
        writer.finish(out).expect("a command that was read from a line is no larger than a message");
        Turn::Request
    }

    fn judge(&mut self, body: &RawDocument) -> Judgement {
        let verdict = self.verdict(body).unwrap_or_else(|error| Verdict::Failed(error.to_string()));
        if verdict != Verdict::Done {
            self.open = None;
        }
        if self.open.is_some() {
            return Judgement::more();
        }
        let kind = Kind::new(u8::try_from(self.current).expect("there are a hundred at most"));
        Judgement { statement: Some(kind), verdict, next: Next::Unit { operations: 1 } }
    }

    fn notes(&self) -> Vec<Note> {
        vec![Note { name: "documents in the answers", count: self.documents }]
    }
}

impl CommandClient {
    /// Counts the documents of a reply, and remembers its cursor.
    fn verdict(&mut self, body: &RawDocument) -> Result<Verdict, BenchError> {
        self.open = None;
        if let Outcome::Refused { code, message } = outcome_of(body)? {
            return Ok(Verdict::Failed(format!("{message} (code {code})")));
        }
        let Some(cursor) = body.get("cursor")?.and_then(|cursor| cursor.as_document()) else {
            return Ok(Verdict::Done);
        };
        for name in ["firstBatch", "nextBatch"] {
            let batch = cursor.get(name)?.and_then(|batch| batch.as_array());
            self.documents += batch.map_or(0, |batch| batch.iter().count() as u64);
        }
        let id = cursor.get("id")?.and_then(|id| id.as_i64_exact()).unwrap_or(0);
        let namespace = cursor.get("ns")?.and_then(|namespace| namespace.as_str()).unwrap_or_default();
        let collection = namespace.split_once('.').map_or("", |(_, collection)| collection).to_owned();
        self.open = (id != 0).then_some(OpenCursor { id, collection });
        Ok(Verdict::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_wire::{Body, Message};

    fn script(commands: &[Document]) -> Box<dyn Script> {
        let target = Target::parse("mongodb://127.0.0.1:1").expect("an address");
        let workload = Commands::new("shop".into(), commands, Generator::Xoshiro, 1).expect("sound");
        workload.clients(&target, 1, RunNumber::FIRST).expect("it is possible").scripts.remove(0)
    }

    fn sent(script: &mut dyn Script) -> Document {
        let mut frame = Vec::new();
        script.request(7, &mut frame);
        let message = Message::decode(&frame).expect("a message");
        let Body::Msg(body) = message.body else { panic!("an OP_MSG") };
        Document::from_raw(RawDocument::from_bytes(body.body()).expect("a document")).expect("sound")
    }

    #[test]
    fn an_answer_in_batches_is_one_unit() {
        let mut script = script(&[doc! { "find": "items", "comment": "all" }]);
        assert_eq!(sent(&mut *script), doc! { "find": "items", "comment": "all", "$db": "shop" });
        let first =
            doc! { "cursor": { "firstBatch": [{ "a": 1 }], "id": 9_i64, "ns": "shop.items" }, "ok": 1.0 };
        assert_eq!(script.judge(&first.to_raw()), Judgement::more());
        assert_eq!(sent(&mut *script), doc! { "getMore": 9_i64, "collection": "items", "$db": "shop" });
        let last =
            doc! { "cursor": { "nextBatch": [{ "a": 2 }], "id": 0_i64, "ns": "shop.items" }, "ok": 1.0 };
        let judged = script.judge(&last.to_raw());
        assert_eq!((judged.statement, judged.next), (Some(Kind::new(0)), Next::Unit { operations: 1 }));
        assert_eq!(script.notes()[0].count, 2);
    }

    #[test]
    fn a_refusal_in_the_middle_ends_the_unit() {
        let mut script = script(&[doc! { "find": "items" }]);
        sent(&mut *script);
        script.judge(&doc! { "cursor": { "firstBatch": [], "id": 9_i64, "ns": "a.b" }, "ok": 1.0 }.to_raw());
        sent(&mut *script);
        let judged = script.judge(&doc! { "ok": 0.0, "code": 43, "errmsg": "cursor not found" }.to_raw());
        assert!(matches!(judged.verdict, Verdict::Failed(message) if message.contains("code 43")));
        assert!(sent(&mut *script).contains("find"), "the next unit begins anew");
    }

    #[test]
    fn a_refused_write_is_a_failure() {
        let mut script = script(&[doc! { "insert": "a", "documents": [{ "_id": 1 }] }]);
        sent(&mut *script);
        let reply =
            doc! { "n": 0, "ok": 1.0, "writeErrors": [{ "index": 0, "code": 11000, "errmsg": "twice" }] };
        assert!(matches!(script.judge(&reply.to_raw()).verdict, Verdict::Failed(_)));
    }

    #[test]
    fn none_and_too_many_are_refused() {
        let many = vec![doc! { "ping": 1 }; COMMANDS_MAX + 1];
        for commands in [&[][..], &[doc! {}], &many] {
            assert!(Commands::new("a".into(), commands, Generator::Xoshiro, 1).is_err());
        }
    }
}
