//! The point query: one document by its `_id`, from a collection chosen evenly.
//!
//! 1. Draw the collection, then the key, in this order as the original does.
//! 2. Patch the key into the collection's template, an OP_MSG `find` with `limit: 1` and `singleBatch: true`.
//! 3. Of each reply: `ok: 1`, and bytes enough to hold the document. Of one in [`VERIFY_ONE_IN`], and of any
//!    that looks too short: exactly one document, and its content.
//!
//! One query is one request and one operation in the report; sysbench counts it as one transaction.

use super::load::Loading;
use super::sysbench::documents::DataSet;
use super::sysbench::loading::Load;
use super::{RunNumber, Workload};
use crate::client::{Clients, Judgement, Outcome, Script, Turn, Verdict, outcome_of};
use crate::error::BenchError;
use crate::target::Target;
use pando_document::{Document, RawDocument, doc};
use pando_measuring::random::distribution::{Distribution, Shape};
use pando_measuring::random::{Random, mask};
use pando_wire::RequestTemplate;
use serde_json::json;
use std::sync::Arc;

/// One reply in so many is decoded and checked as a whole, each client's first one too.
const VERIFY_ONE_IN: u64 = 1024;
/// Stands in the template where the key goes; its bytes occur nowhere else in it.
const KEY_PLACE: i32 = 0x7AD1_C5E9;

/// Which part of the document is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// Only `c`, as the original does.
    C,
    /// The whole document.
    Full,
}

/// The workload.
#[derive(Clone, Debug)]
pub struct PointQuery {
    /// Where to look, how that is loaded, and what the draws hang on.
    pub load: Load,
    /// Which keys, how often.
    pub shape: Shape,
    /// The fields to ask for.
    pub projection: Projection,
}

impl PointQuery {
    fn data(&self) -> &DataSet {
        &self.load.data
    }

    fn template(&self, number: u32) -> Result<RequestTemplate<4>, BenchError> {
        let (database, collection) = self.data().place(number);
        let mut find = doc! {
            "find": collection,
            "filter": { "_id": KEY_PLACE },
            "limit": 1,
            "singleBatch": true,
        };
        if self.projection == Projection::C {
            find.push("projection", doc! { "c": 1, "_id": 0 });
        }
        find.push("$db", database);
        Ok(RequestTemplate::new(find.to_raw().as_bytes(), &KEY_PLACE.to_le_bytes())?)
    }
}

impl Projection {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Projection::C => "c",
            Projection::Full => "full",
        }
    }
}

impl Workload for PointQuery {
    fn name(&self) -> &'static str {
        "point"
    }

    fn summary(&self) -> String {
        let Load { data, generator, seed, .. } = &self.load;
        format!(
            "{} x {} documents, keys {}, projection {}, {} seed {seed}",
            data.collections,
            data.documents,
            self.shape,
            self.projection.name(),
            generator.name(),
        )
    }

    fn parameters(&self) -> serde_json::Value {
        json!({
            "data": self.data(),
            "index": self.load.index_in_words(),
            "keys": self.shape.to_string(),
            "projection": self.projection.name(),
            "generator": self.load.generator.name(),
            "seed": self.load.seed,
        })
    }

    fn operations(&self) -> &'static str {
        "queries"
    }

    fn loading(&self) -> Option<&dyn Loading> {
        Some(&self.load)
    }

    fn clients(&self, _target: &Target, clients: u32, run: RunNumber) -> Result<Clients, BenchError> {
        let templates: Result<Arc<[_]>, _> =
            (1..=self.data().collections).map(|number| self.template(number)).collect();
        let templates = templates?;
        let script = |client| -> Box<dyn Script> {
            Box::new(PointClient {
                templates: templates.clone(),
                distribution: Distribution::new(self.shape, self.data().documents),
                random: Random::for_client(self.load.generator, self.load.seed, run.stream(client)),
                check: Check { projection: self.projection, documents: self.data().documents },
                asked: 0,
                judged: 0,
            })
        };
        Ok(Clients::of_scripts((0..clients).map(script).collect()))
    }

    fn null_reply(&self) -> Option<Document> {
        let mut document = doc! { "c": mask::C };
        if self.projection == Projection::Full {
            document = doc! { "_id": 1, "k": 1, "c": mask::C, "pad": mask::PAD };
        }
        let (database, collection) = self.data().place(1);
        let namespace = format!("{database}.{collection}");
        let reply = doc! { "cursor": { "firstBatch": [document], "id": 0_i64, "ns": namespace }, "ok": 1.0 };
        Some(reply)
    }

    /// The null server always gives the same document, so that only a projection without `_id` can be content
    /// with it.
    fn null_clients(&self, target: &Target, clients: u32) -> Result<Clients, BenchError> {
        PointQuery { projection: Projection::C, ..self.clone() }.clients(target, clients, RunNumber::FIRST)
    }
}

struct PointClient {
    templates: Arc<[RequestTemplate<4>]>,
    distribution: Distribution,
    random: Random,
    check: Check,
    asked: i32,
    judged: u64,
}

impl Script for PointClient {
    fn request(&mut self, request_id: i32, out: &mut Vec<u8>) -> Turn {
        let collections = u32::try_from(self.templates.len()).unwrap_or(u32::MAX);
        let template = &self.templates[self.random.below(collections) as usize];
        self.asked = i32::try_from(self.distribution.draw(&mut self.random) + 1).unwrap_or(i32::MAX);
        template.append(out, request_id, &self.asked.to_le_bytes());
        Turn::Request
    }

    fn judge(&mut self, body: &RawDocument) -> Judgement {
        Judgement::unit(self.verdict(body))
    }
}

impl PointClient {
    fn verdict(&mut self, body: &RawDocument) -> Verdict {
        let is_sample = self.judged.is_multiple_of(VERIFY_ONE_IN);
        self.judged += 1;
        let succeeded = matches!(body.get("ok"), Ok(Some(ok)) if ok.as_i64_exact() == Some(1));
        if succeeded && !is_sample && body.as_bytes().len() >= self.check.hit_bytes_min() {
            return Verdict::Done;
        }
        self.check.whole_reply(body, self.asked).unwrap_or_else(|error| Verdict::Failed(error.to_string()))
    }
}

/// The properties that a reply must have.
#[derive(Clone, Copy, Debug)]
struct Check {
    projection: Projection,
    documents: u32,
}

impl Check {
    /// A reply that holds the document has more bytes than the texts in it.
    fn hit_bytes_min(&self) -> usize {
        match self.projection {
            Projection::C => mask::C.len(),
            Projection::Full => mask::C.len() + mask::PAD.len(),
        }
    }

    fn whole_reply(&self, body: &RawDocument, asked: i32) -> Result<Verdict, BenchError> {
        if let Outcome::Refused { code, message } = outcome_of(body)? {
            return Ok(Verdict::Failed(format!("{message} (code {code})")));
        }
        let cursor = body.get("cursor")?.and_then(|cursor| cursor.as_document());
        let batch = cursor.map(|cursor| cursor.get("firstBatch")).transpose()?.flatten();
        let Some(batch) = batch.and_then(|batch| batch.as_array()) else {
            return Ok(Verdict::Failed("the reply has no cursor.firstBatch".into()));
        };
        let mut documents = batch.iter();
        let first = documents.next().transpose()?.and_then(|document| document.as_document());
        match (first, documents.count()) {
            (None, _) => Ok(Verdict::Missed),
            (Some(document), 0) => self.document(document, asked),
            (Some(_), more) => Ok(Verdict::Failed(format!("{} documents instead of one", more + 1))),
        }
    }

    fn document(&self, document: &RawDocument, asked: i32) -> Result<Verdict, BenchError> {
        let text_bytes = |name: &str| -> Result<Option<usize>, BenchError> {
            Ok(document.get(name)?.and_then(|value| value.as_str()).map(str::len))
        };
        let number = |name: &str| -> Result<Option<i64>, BenchError> {
            Ok(document.get(name)?.and_then(|value| value.as_i64_exact()))
        };
        let is_right = text_bytes("c")? == Some(mask::C.len())
            && match self.projection {
                Projection::C => document.iter().count() == 1,
                Projection::Full => {
                    let k_is_right =
                        number("k")?.is_some_and(|k| (1..=i64::from(self.documents)).contains(&k));
                    number("_id")? == Some(i64::from(asked))
                        && k_is_right
                        && text_bytes("pad")? == Some(mask::PAD.len())
                }
            };
        Ok(if is_right { Verdict::Done } else { Verdict::Failed(format!("wrong document for _id {asked}")) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_wire::{Body, Message};

    fn workload(projection: Projection) -> PointQuery {
        PointQuery { projection, shape: Shape::Uniform, load: crate::workload::tests::load(3, 10) }
    }

    fn script(projection: Projection) -> Box<dyn Script> {
        let target = Target::parse("mongodb://127.0.0.1:1").expect("an address");
        workload(projection)
            .clients(&target, 1, RunNumber::FIRST)
            .expect("the template fits")
            .scripts
            .remove(0)
    }

    fn hit(projection: Projection) -> Document {
        workload(projection).null_reply().expect("there is one")
    }

    fn judge(projection: Projection, body: &Document) -> Verdict {
        let check = Check { projection, documents: 10 };
        check.whole_reply(&body.to_raw(), 1).expect("a sound document")
    }

    fn reply(batch: Vec<pando_document::Value>) -> Document {
        doc! { "cursor": { "firstBatch": batch, "id": 0_i64, "ns": "a.b" }, "ok": 1.0 }
    }

    #[test]
    fn requests_ask_every_collection_for_keys_that_exist() {
        let mut script = script(Projection::C);
        let mut seen = std::collections::BTreeSet::new();
        for request_id in 0..500 {
            let mut frame = Vec::new();
            script.request(request_id, &mut frame);
            let message = Message::decode(&frame).expect("a message");
            let Body::Msg(body) = message.body else { panic!("an OP_MSG") };
            let find =
                Document::from_raw(RawDocument::from_bytes(body.body()).expect("a document")).expect("sound");
            let key =
                find.get("filter").and_then(|f| f.as_document()?.get("_id")?.as_i64_exact()).expect("a key");
            assert!((1..=10).contains(&key));
            assert_eq!(message.header.request_id, request_id);
            seen.insert((find.get("find").and_then(|name| name.as_str()).map(str::to_owned), key));
        }
        assert_eq!(seen.len(), 30, "3 collections of 10 keys");
    }

    #[test]
    fn each_run_has_draws_of_its_own_which_a_seed_repeats() {
        let target = Target::parse("mongodb://127.0.0.1:1").expect("an address");
        let frames = |run| {
            let mut clients = workload(Projection::C).clients(&target, 1, run).expect("the template fits");
            let frame = |request_id| {
                let mut frame = Vec::new();
                clients.scripts[0].request(request_id, &mut frame);
                frame
            };
            (0..50).map(frame).collect::<Vec<_>>()
        };
        assert_eq!(frames(RunNumber::FIRST), frames(RunNumber::FIRST));
        assert_ne!(frames(RunNumber::FIRST), frames(RunNumber::FIRST.next()));
    }

    #[test]
    fn the_null_servers_reply_is_right_for_both_projections() {
        for projection in [Projection::C, Projection::Full] {
            assert_eq!(judge(projection, &hit(projection)), Verdict::Done);
        }
    }

    #[test]
    fn an_empty_batch_is_a_miss_and_two_documents_are_a_failure() {
        assert_eq!(judge(Projection::C, &reply(vec![])), Verdict::Missed);
        let document = || pando_document::Value::Document(doc! { "c": mask::C });
        assert!(matches!(judge(Projection::C, &reply(vec![document(), document()])), Verdict::Failed(_)));
    }

    #[test]
    fn a_wrong_document_is_a_failure() {
        let wrong = [doc! { "c": "short" }, doc! { "c": mask::C, "_id": 1 }, doc! { "d": mask::C }];
        for document in wrong {
            let verdict = judge(Projection::C, &reply(vec![document.into()]));
            assert!(matches!(verdict, Verdict::Failed(_)));
        }
        let other = doc! { "_id": 2, "k": 1, "c": mask::C, "pad": mask::PAD };
        assert!(matches!(judge(Projection::Full, &reply(vec![other.into()])), Verdict::Failed(_)));
    }

    #[test]
    fn a_refusal_is_a_failure_with_its_message_even_when_it_is_not_sampled() {
        let mut script = script(Projection::C);
        assert_eq!(script.judge(&hit(Projection::C).to_raw()).verdict, Verdict::Done);
        let refusal = doc! { "ok": 0.0, "errmsg": "x".repeat(500), "code": 1 };
        assert!(
            matches!(script.judge(&refusal.to_raw()).verdict, Verdict::Failed(message) if message.contains("code 1"))
        );
        assert_eq!(script.judge(&reply(vec![]).to_raw()).verdict, Verdict::Missed);
    }
}
