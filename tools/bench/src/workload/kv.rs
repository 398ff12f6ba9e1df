//! Reads of single rows by key, everything in memory (part C of the specification).
//!
//! # Documents
//! `{_id: int64, value1: int32, value2: double}`, 46 bytes; ids are multiples of a gap, from 1 gap on. The
//! values of a document hang on the seed and its id only, so that any reply can be checked exactly, and
//! documents can be loaded in any order.
//!
//! # The run
//! A *read set* of ids is drawn once, without repetition, and shuffled. A *pass* reads each of them once;
//! each client reads its own part. Two passes warm up and are not counted; then come the *rounds*, ten passes
//! by default. The rate is all reads by the time until the slowest client is done; each round has its rate,
//! too, so that a round that warms the cache shows.
//!
//! With *preload* the whole collection is read before, and its index counted through. That everything is in
//! memory is looked at: the disk reads of the measured part are printed.
//!
//! [`rows`] makes the documents, [`loading`] inserts them.

pub mod loading;
pub mod rows;

use super::load::Loading;
use super::{RunNumber, Workload};
use crate::client::{Clients, Judgement, Kind, Next, Outcome, Script, Session, Turn, Verdict, outcome_of};
use crate::error::BenchError;
use crate::run::Measured;
use crate::target::Target;
use loading::KvLoad;
use pando_document::{Document, RawDocument, doc};
use pando_measuring::number;
use pando_measuring::random::{Generator, Random};
use pando_wire::RequestTemplate;
use rows::{ROW_BYTES, Row, Rows};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// Passes before the counted ones.
pub const WARM_UP_PASSES: u32 = 2;
/// Stands in the template where the key goes; its bytes occur nowhere else in it.
const KEY_PLACE: i64 = 0x7AD1_C5E9_3B0F_A642;
/// The number of the read set's stream; no client has it.
const READ_SET_STREAM: u64 = u32::MAX as u64;

/// The documents that are read before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preload {
    /// The passes that warm up, nothing else.
    Nothing,
    /// Every document and the index of keys.
    Everything,
}

/// The workload.
#[derive(Clone, Debug)]
pub struct KeyValue {
    /// The data.
    pub load: KvLoad,
    /// How many ids are in the read set.
    pub reads: u32,
    /// How many counted passes.
    pub rounds: u32,
    /// The reads before the run.
    pub preload: Preload,
}

impl KeyValue {
    /// Reads everything, by the documents and by the index; a row that is missing is told.
    fn read_all(&self, target: &Target) -> Result<(), BenchError> {
        let mut session = Session::open(target.address())?;
        let mut found = 0;
        for (database, collection) in self.load.spread.all() {
            let collection = collection.as_str();
            // A sum of a value has every document read; a count could do with the index.
            let sum = doc! { "$group": { "_id": 1, "n": { "$sum": 1_i64 }, "sum": { "$sum": "$value1" } } };
            let scan = doc! { "aggregate": collection, "pipeline": [sum], "cursor": {} };
            let reply = session.command(&database, scan)?;
            let first = reply
                .get("cursor")
                .and_then(|cursor| cursor.as_document()?.get("firstBatch")?.as_array()?.first());
            let rows = first.and_then(|row| row.as_document()?.get("n")?.as_i64_exact());
            found += rows.and_then(|rows| u64::try_from(rows).ok()).unwrap_or(0);
            let count = doc! { "count": collection, "query": { "_id": { "$gte": 0_i64 } }, "hint": "_id_" };
            session.command(&database, count)?;
        }
        self.check_preloaded(found)
    }

    /// That as many rows were read as there are to be.
    pub fn check_preloaded(&self, found: u64) -> Result<(), BenchError> {
        let expected = u64::from(self.load.rows.count);
        if found == expected {
            return Ok(());
        }
        let (database, collection) = self.load.spread.place(0);
        let namespace = format!("{database}.{collection}{}", self.load.spread.summary());
        Err(BenchError::DataSet { namespace, found, expected })
    }

    /// A request of each collection.
    fn templates(&self) -> Result<Arc<[RequestTemplate<8>]>, BenchError> {
        self.load
            .spread
            .all()
            .map(|(database, collection)| KeyValue::template(&database, &collection))
            .collect()
    }

    fn template(database: &str, collection: &str) -> Result<RequestTemplate<8>, BenchError> {
        let find = doc! {
            "find": collection,
            "filter": { "_id": KEY_PLACE },
            "limit": 1,
            "singleBatch": true,
            "$db": database,
        };
        Ok(RequestTemplate::new(find.to_raw().as_bytes(), &KEY_PLACE.to_le_bytes())?)
    }

    /// The places of the rows to read, in the order of reading.
    pub fn read_set(&self) -> Vec<u32> {
        let rows = self.load.rows.count;
        let mut random = Random::for_client(Generator::Xoshiro, self.load.rows.seed, READ_SET_STREAM);
        // A shuffle that is broken off after as many steps as there are reads; only what was moved is
        // remembered.
        let mut moved: HashMap<u32, u32> = HashMap::new();
        let mut set = Vec::with_capacity(self.reads.min(rows) as usize);
        for place in 0..self.reads.min(rows) {
            let chosen = place + random.below(rows - place);
            let at_place = moved.get(&place).copied().unwrap_or(place);
            set.push(moved.insert(chosen, at_place).unwrap_or(chosen));
        }
        set
    }

    /// The part of a read set that this client reads.
    pub fn part(reads: usize, client: u32, clients: u32) -> std::ops::Range<usize> {
        let reads = u64::try_from(reads).unwrap_or(u64::MAX);
        let edge = |client: u32| usize::try_from(reads * u64::from(client) / u64::from(clients)).unwrap_or(0);
        edge(client)..edge(client + 1)
    }

    /// The kind of a pass: its round. The passes of a warm-up may be more than the rounds.
    pub fn kind_of(pass: u32, rounds: u32) -> Kind {
        Kind::new(u8::try_from(pass.min(rounds.saturating_sub(1))).unwrap_or(u8::MAX))
    }

    fn readers(&self, clients: u32, passes: u32, check: Check) -> Result<Clients, BenchError> {
        let set: Arc<[u32]> = self.read_set().into();
        let templates = self.templates()?;
        // A measurement of the tool itself has no rounds.
        let rounds = if check == Check::Values { self.rounds } else { 1 };
        let script = |client| -> Box<dyn Script> {
            let part = KeyValue::part(set.len(), client, clients);
            Box::new(Reader {
                templates: templates.clone(),
                rows: self.load.rows,
                set: set.clone(),
                at: part.start,
                part,
                passes,
                pass: 0,
                check,
                rounds,
                expected: Vec::with_capacity(ROW_BYTES),
            })
        };
        Ok(Clients::of_scripts((0..clients).map(script).collect()))
    }
}

impl Workload for KeyValue {
    fn name(&self) -> &'static str {
        "kv"
    }

    fn summary(&self) -> String {
        let Rows { count, gap, seed, .. } = self.load.rows;
        let (reads, rounds) = (self.reads.min(count), self.rounds);
        format!(
            "{reads} of {count} rows{} read {rounds} times, shared out to the clients; ids are multiples of {gap}, seed {seed}",
            self.load.spread.summary()
        )
    }

    fn parameters(&self) -> serde_json::Value {
        json!({
            "rows": self.load.rows,
            "spread": self.load.spread,
            "reads": self.reads.min(self.load.rows.count),
            "rounds": self.rounds,
            "warm_up_passes": WARM_UP_PASSES,
            "preload": self.preload == Preload::Everything,
        })
    }

    fn operations(&self) -> &'static str {
        "reads"
    }

    /// A kind for each round.
    fn kinds(&self) -> Vec<String> {
        (1..=self.rounds).map(|round| format!("round {round}")).collect()
    }

    fn loading(&self) -> Option<&dyn Loading> {
        Some(&self.load)
    }

    fn prepare(&self, target: &Target) -> Result<(), BenchError> {
        if self.preload == Preload::Everything { self.read_all(target) } else { Ok(()) }
    }

    fn warm_up(&self, _target: &Target, clients: u32) -> Result<Option<Clients>, BenchError> {
        self.readers(clients, WARM_UP_PASSES, Check::Values).map(Some)
    }

    fn clients(&self, _target: &Target, clients: u32, _run: RunNumber) -> Result<Clients, BenchError> {
        self.readers(clients, self.rounds, Check::Values)
    }

    /// A row that is right for no id, but has the size of all.
    fn null_reply(&self) -> Option<Document> {
        let row = doc! { "_id": 0_i64, "value1": 0, "value2": 0.0 };
        let reply = doc! { "cursor": { "firstBatch": [row], "id": 0_i64, "ns": "kv.keyvalue" }, "ok": 1.0 };
        Some(reply)
    }

    /// They look at no value, and read on until the time is over.
    fn null_clients(&self, _target: &Target, clients: u32) -> Result<Clients, BenchError> {
        let rows = Rows { null_percent: 0, ..self.load.rows };
        let load = KvLoad { rows, ..self.load.clone() };
        KeyValue { load, ..self.clone() }.readers(clients, u32::MAX, Check::Size)
    }

    fn lines(&self, measured: &Measured) -> Vec<String> {
        let mut lines = Vec::new();
        let mut before = 0.0;
        let mut rates = Vec::new();
        for kind in &measured.tally.kinds {
            let Some(last) = kind.last_at.map(|last| last.duration_since(measured.from).as_secs_f64()) else {
                continue;
            };
            if last > before {
                rates.push(kind.latencies.count() as f64 / (last - before));
            }
            before = last;
        }
        let each: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
        lines.push(format!("reads/s by round: {}", each.join(" ")));
        rates.sort_by(f64::total_cmp);
        if let (Some(least), Some(most)) = (rates.first(), rates.last()) {
            let median = number::median(rates.clone()).unwrap_or(*least);
            lines.push(format!("rounds: least {least:.0}, median {median:.0}, most {most:.0} reads/s"));
        }
        let disk = measured.usage.as_ref().and_then(|usage| usage.disk.as_ref()?.counts.reads);
        if let Some(reads) = disk {
            let doubt = match (reads, self.preload) {
                (0, _) => "",
                (_, Preload::Everything) => {
                    ": NOT EVERYTHING WAS IN MEMORY, although it was all read before, or somebody else used the device"
                }
                (_, Preload::Nothing) => ": not everything was in memory, or somebody else used the device",
            };
            lines.push(format!("disk reads while it was measured: {reads}{doubt}"));
        }
        lines
    }
}

/// How replies are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// All value by value.
    Values,
    /// All by their size.
    Size,
}

/// One client: its part of the read set, pass after pass.
struct Reader {
    /// One for each collection; rows go around these.
    templates: Arc<[RequestTemplate<8>]>,
    rows: Rows,
    set: Arc<[u32]>,
    part: std::ops::Range<usize>,
    passes: u32,
    pass: u32,
    at: usize,
    check: Check,
    rounds: u32,
    /// The row as it must be.
    expected: Vec<u8>,
}

impl Reader {
    fn row(&self) -> Row {
        self.rows.row(self.set[self.at])
    }

    fn verdict(&mut self, body: &RawDocument) -> Result<Verdict, BenchError> {
        if let Outcome::Refused { code, message } = outcome_of(body)? {
            return Ok(Verdict::Failed(format!("{message} (code {code})")));
        }
        let cursor = body.get("cursor")?.and_then(|cursor| cursor.as_document());
        let batch = cursor.map(|cursor| cursor.get("firstBatch")).transpose()?.flatten();
        let first = batch.and_then(|batch| batch.as_array()?.iter().next()).transpose()?;
        let Some(document) = first.and_then(|document| document.as_document()) else {
            return Ok(Verdict::Missed);
        };
        let row = self.row();
        let is_right = match self.check {
            Check::Size => row.has_size_of(document),
            Check::Values => {
                self.expected.clear();
                row.append(&mut self.expected);
                // Equal bytes are the cheap case; a server may keep a number in another type.
                self.expected == document.as_bytes() || row.matches(document)?
            }
        };
        Ok(if is_right { Verdict::Done } else { Verdict::Failed(row.wrong(self.rows.seed)) })
    }
}

impl Script for Reader {
    fn request(&mut self, request_id: i32, out: &mut Vec<u8>) -> Turn {
        if self.part.is_empty() || self.pass >= self.passes {
            return Turn::Over;
        }
        let collection = self.set[self.at] as usize % self.templates.len();
        self.templates[collection].append(out, request_id, &self.row().id.to_le_bytes());
        Turn::Request
    }

    fn judge(&mut self, body: &RawDocument) -> Judgement {
        let verdict = self.verdict(body).unwrap_or_else(|error| Verdict::Failed(error.to_string()));
        let round = KeyValue::kind_of(self.pass, self.rounds);
        self.at += 1;
        if self.at == self.part.end {
            self.at = self.part.start;
            self.pass += 1;
        }
        Judgement { statement: Some(round), verdict, next: Next::Unit { operations: 1 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Misses, Tally};
    use crate::report::figures::tests::{measured, usage};

    fn workload(rows: u32, reads: u32) -> KeyValue {
        let rows = Rows { count: rows, gap: 3, seed: 7, null_percent: 0 };
        KeyValue { load: loading::tests::load(rows), reads, rounds: 2, preload: Preload::Nothing }
    }

    #[test]
    fn a_read_set_has_no_id_twice_and_repeats_with_its_seed() {
        let set = workload(1000, 400).read_set();
        let mut sorted = set.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!((set.len(), sorted.len()), (400, 400));
        assert!(sorted.last().is_some_and(|last| *last < 1000));
        assert_eq!(set, workload(1000, 400).read_set());
        assert_ne!(set, sorted, "it is shuffled");
        assert_eq!(workload(10, 400).read_set().len(), 10, "no more than there are");
    }

    #[test]
    fn read_sets_are_uniform() {
        let set = workload(100_000, 20_000).read_set();
        let mut tenths = [0_u32; 10];
        set.iter().for_each(|place| tenths[*place as usize / 10_000] += 1);
        // Chi-square at 99.9 % with 9 degrees of freedom.
        let chi_square: f64 = tenths.iter().map(|count| (f64::from(*count) - 2000.0).powi(2) / 2000.0).sum();
        assert!(chi_square < 27.9, "{tenths:?}");
    }

    #[test]
    fn clients_read_each_id_once_a_pass_and_then_are_over() {
        let workload = workload(50, 20);
        let clients = workload.readers(3, 2, Check::Values).expect("the template fits");
        let (mut rounds, mut requests) = ([0; 2], 0);
        for mut script in clients.scripts {
            let mut out = Vec::new();
            while script.request(1, &mut out) == Turn::Request {
                requests += 1;
                let judgement = script.judge(&doc! { "cursor": { "firstBatch": [] }, "ok": 1.0 }.to_raw());
                assert_eq!(judgement.verdict, Verdict::Missed);
                rounds[judgement.statement.expect("a round").index()] += 1;
            }
        }
        assert_eq!((requests, rounds), (40, [20, 20]));
    }

    #[test]
    fn a_pass_beyond_the_rounds_has_the_kind_of_the_last_one() {
        let workload = KeyValue { rounds: 1, ..workload(50, 20) };
        let mut clients = workload.readers(1, WARM_UP_PASSES, Check::Values).expect("the template fits");
        let (script, mut judged) = (&mut clients.scripts[0], 0);
        while script.request(1, &mut Vec::new()) == Turn::Request {
            let judgement = script.judge(&doc! { "cursor": { "firstBatch": [] }, "ok": 1.0 }.to_raw());
            let kind = judgement.statement.expect("a round").index();
            assert!(kind < workload.kinds().len(), "{kind}");
            judged += 1;
        }
        assert_eq!(judged, 20 * WARM_UP_PASSES);
    }

    #[test]
    fn a_wrong_value_is_found_in_every_reply_and_another_seed_is_suggested() {
        let workload = workload(50, 20);
        let Clients { mut scripts, .. } = workload.readers(1, 1, Check::Values).expect("the template fits");
        let script = &mut scripts[0];
        let answer = |document: Document| doc! { "cursor": { "firstBatch": [document] }, "ok": 1.0 }.to_raw();
        for (nth, place) in workload.read_set().into_iter().enumerate() {
            script.request(1, &mut Vec::new());
            let row = workload.load.rows.row(place);
            let (value1, value2) = (row.value1.expect("no nulls"), row.value2.expect("no nulls"));
            if nth % 2 == 0 {
                let right = doc! { "_id": row.id, "value1": f64::from(value1), "value2": value2 };
                assert_eq!(script.judge(&answer(right)).verdict, Verdict::Done, "in another type");
                continue;
            }
            let wrong = doc! { "_id": row.id, "value1": value1.wrapping_add(1), "value2": value2 };
            let Verdict::Failed(told) = script.judge(&answer(wrong)).verdict else {
                panic!("reply {nth} is wrong, and was taken")
            };
            assert!(told.contains("not those of --seed 7"), "{told}");
        }
    }

    #[test]
    fn disk_reads_are_doubted_only_where_there_are_some() {
        let line = |reads, preload| {
            let mut usage = usage();
            usage.disk.as_mut().expect("there is one").counts.reads = Some(reads);
            let measured = measured(Tally::new(2, Misses::AreFaults), Some(usage));
            KeyValue { preload, ..workload(50, 20) }.lines(&measured).pop().expect("a line of the disk")
        };
        assert!(line(0, Preload::Nothing).ends_with(": 0"), "{}", line(0, Preload::Nothing));
        let some = line(259, Preload::Nothing);
        assert!(
            some.ends_with("259: not everything was in memory, or somebody else used the device"),
            "{some}"
        );
    }
}
