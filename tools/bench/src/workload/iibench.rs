//! iibench: inserts under secondary indexes, with queries beside them (part E of the specification).
//!
//! - [`purchases`]: the documents.
//! - [`queries`]: the three range queries, one for each index, asked by one client on a schedule.
//! - [`columns`]: the columns of iibench-mongodb.
//!
//! # A run
//! 1. Drop the collection; create the first so many of the three indexes.
//! 2. Each client inserts its share, batch by batch, until all is in or the window is over. The operation is
//!    the document.
//! 3. Queries begin when enough is in, and end with the last insert. Their latency counts from when they were
//!    due.
//! 4. Verify: as many documents as were acknowledged, and as many index entries as the planner counts.
//!
//! Unlike the original, a batch that failed is counted and neither lost silently nor sent twice. The rate is
//! to the last insert; beside it stands the rate until the server is idle, with what it wrote in either time.

pub(crate) mod columns;
pub mod purchases;
pub mod queries;

use super::insert::{Batch, BatchSource, Inserter, OnFailure};
use super::load::{Durability, Loading, count, drop_collection};
use super::spread::Spread;
use super::{Finding, RunNumber, Workload};
use crate::client::{Clients, Kind, Misses, Script, Session};
use crate::error::BenchError;
use crate::report::Figures;
use crate::report::csv::CsvFile;
use crate::report::figures::cpu_percent_by_rate;
use crate::run::Measured;
use crate::target::Target;
use pando_document::{Document, doc};
use pando_measuring::random::Generator;
use purchases::{Purchases, Shape};
use queries::{MongoAsker, QueryPlan, Questioner};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The collection, as the original calls it.
pub const COLLECTION: &str = "purchases_index";
/// The kinds of statements: the batches, and the queries by the index that they use.
pub const KINDS: [&str; 4] =
    ["insert of a batch", "query by price, dateandtime", "query by price", "query by cashregisterid"];

/// The workload.
#[derive(Clone, Debug)]
pub struct Iibench {
    /// Where they go: each client's batches go around the collections.
    pub spread: Spread,
    /// Documents in all.
    pub documents: u64,
    /// Documents per insert.
    pub batch: u32,
    /// How many of the three indexes there are.
    pub indexes: u32,
    /// The shape of documents.
    pub shape: Shape,
    /// When the server answers a batch.
    pub durability: Durability,
    /// The queries beside the inserts.
    pub queries: QueryPlan,
    /// Seconds to wait at most, after the last insert, until the server is idle.
    pub settle_s: u32,
    /// The generator of the documents.
    pub generator: Generator,
    /// The seed of the draws.
    pub seed: u64,
    /// Figures of the post's second table are for so many documents.
    pub norm_documents: u32,
    /// Documents of the last run that were sent, for its verification.
    pub sent: Arc<Mutex<Arc<Sent>>>,
}

/// The counts that a run's clients share.
#[derive(Debug, Default)]
pub struct Sent {
    /// Documents that were sent so far.
    pub documents: AtomicU64,
    /// Clients that have not sent all of theirs, and may do so still.
    pub inserting: AtomicU64,
}

/// A client's part in [`Sent::inserting`], from the beginning of the run until it is dropped: when all is
/// sent, when the connection is lost, or when the window is over. Queries end with the last of them.
#[derive(Debug)]
pub struct Inserting(Arc<Sent>);

impl Inserting {
    /// The part of one of the clients that the run began with.
    pub fn one_of(sent: &Arc<Sent>) -> Inserting {
        Inserting(sent.clone())
    }
}

impl Drop for Inserting {
    fn drop(&mut self) {
        self.0.inserting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The keys of the three indexes, in the order of their creation.
fn index_keys() -> [(&'static str, Document); 3] {
    [
        ("price_customerid", doc! { "price": 1, "customerid": 1 }),
        ("cashregisterid_price_customerid", doc! { "cashregisterid": 1, "price": 1, "customerid": 1 }),
        ("price_dateandtime_customerid", doc! { "price": 1, "dateandtime": 1, "customerid": 1 }),
    ]
}

impl Iibench {
    /// Begins a run, and gives the counts that its clients share and its verification reads.
    pub fn begin(&self, clients: u32) -> Arc<Sent> {
        let sent = Arc::new(Sent { documents: AtomicU64::new(0), inserting: AtomicU64::new(clients.into()) });
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner) = sent.clone();
        sent
    }

    /// Documents that were sent in the run that began last.
    pub fn sent(&self) -> u64 {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).documents.load(Ordering::Relaxed)
    }

    /// How many of the documents this client inserts.
    pub fn share(&self, client: u32, clients: u32) -> u64 {
        let edge = |client: u32| {
            let edge = u128::from(self.documents) * u128::from(client) / u128::from(clients);
            u64::try_from(edge).unwrap_or(u64::MAX)
        };
        edge(client + 1) - edge(client)
    }

    /// The same without an end and without queries, for what answers without looking.
    pub fn endless(&self) -> Iibench {
        let queries = QueryPlan { per_interval: 0, ..self.queries };
        Iibench { documents: 1 << 48, queries, sent: Arc::default(), ..self.clone() }
    }
}

impl Workload for Iibench {
    fn databases(&self) -> Vec<String> {
        self.spread.all_databases()
    }

    fn name(&self) -> &'static str {
        "iibench"
    }

    fn summary(&self) -> String {
        format!(
            "{} documents of {} bytes{} by batches of {} under {} indexes, {}, durability {}, {} seed {}",
            self.documents,
            self.shape.document_bytes(),
            self.spread.summary(),
            self.batch,
            self.indexes,
            self.queries.summary(),
            self.durability.name(),
            self.generator.name(),
            self.seed
        )
    }

    fn parameters(&self) -> serde_json::Value {
        json!({
            "spread": self.spread,
            "documents": self.documents,
            "batch": self.batch,
            "indexes": self.indexes,
            "shape": self.shape,
            "durability": self.durability.name(),
            "queries": self.queries,
            "generator": self.generator.name(),
            "seed": self.seed,
            "norm_documents": self.norm_documents,
        })
    }

    fn operations(&self) -> &'static str {
        "documents"
    }

    fn kinds(&self) -> Vec<String> {
        KINDS.map(str::to_owned).to_vec()
    }

    /// A query that finds nothing is a good answer.
    fn misses(&self) -> Misses {
        Misses::AreExpected
    }

    /// Loading is what is measured.
    fn loading(&self) -> Option<&dyn Loading> {
        None
    }

    fn prepare(&self, target: &Target) -> Result<(), BenchError> {
        let mut session = Session::open(target.address())?;
        for (database, collection) in self.spread.all() {
            drop_collection(&mut session, &database, &collection)?;
            for (name, key) in index_keys().into_iter().take(self.indexes as usize) {
                let indexes = doc! { "key": key, "name": name };
                let command = doc! { "createIndexes": collection.as_str(), "indexes": [indexes] };
                session.command(&database, command)?;
            }
        }
        Ok(())
    }

    fn clients(&self, target: &Target, clients: u32, _run: RunNumber) -> Result<Clients, BenchError> {
        let sent = self.begin(clients);
        let script = |client| -> Box<dyn Script> {
            let source = PurchaseBatches {
                purchases: Purchases::new(self.shape, self.generator, self.seed, client),
                spread: self.spread.clone(),
                next: u64::from(client),
                left: self.share(client, clients),
                batch: self.batch,
                sent: sent.clone(),
                inserting: Some(Inserting::one_of(&sent)),
            };
            Box::new(Inserter::new(self.durability, source, OnFailure::GoOn).of_kind(Kind::new(0)))
        };
        let mut all = Clients::of_scripts((0..clients).map(script).collect());
        if self.queries.per_interval > 0 {
            let asker = Box::new(MongoAsker::new(target, self.spread.clone(), self.queries)?);
            let Iibench { queries, generator, seed, .. } = *self;
            all.tasks.push(Box::new(Questioner::new(asker, queries, generator, seed, sent)));
        }
        Ok(all)
    }

    /// Each batch is taken as whole.
    fn null_reply(&self) -> Option<Document> {
        Some(doc! { "n": i64::from(self.batch), "ok": 1.0 })
    }

    fn null_clients(&self, target: &Target, clients: u32) -> Result<Clients, BenchError> {
        self.endless().clients(target, clients, RunNumber::FIRST)
    }

    fn settle_s(&self) -> u32 {
        self.settle_s
    }

    fn verify(&self, target: &Target) -> Result<Vec<Finding>, BenchError> {
        let mut session = Session::open(target.address())?;
        let sent = self.sent();
        let mut sum = |of: &mut dyn FnMut(&mut Session, &str, &str) -> Result<u64, BenchError>| {
            let places =
                self.spread.all().map(|(database, collection)| of(&mut session, &database, &collection));
            places.sum::<Result<u64, BenchError>>()
        };
        let found = sum(&mut |session, database, collection| count(session, database, collection))?;
        let what = if self.spread.collections == 1 { "the collection" } else { "the collections" };
        let mut findings = vec![finding(sent, what, found)];
        for (name, key) in index_keys().into_iter().take(self.indexes as usize) {
            // Every document has every key, so that an index that is counted through has an entry for each.
            // The query names only its first field: for another one each document would be fetched, at
            // random.
            let first = key.names().next().unwrap_or_default().to_owned();
            let found = sum(&mut |session, database, collection| {
                let mut query = Document::new();
                query.push(first.as_str(), doc! { "$gte": 0 });
                let command = doc! { "count": collection, "query": query, "hint": name };
                let reply = session.command(database, command)?;
                let entries =
                    reply.get("n").and_then(|n| n.as_i64_exact()).and_then(|n| u64::try_from(n).ok());
                Ok(entries.unwrap_or(0))
            })?;
            findings.push(finding(sent, &format!("index {name}"), found));
        }
        Ok(findings)
    }

    /// The post's second table, whose unit is stated in its heading.
    fn lines(&self, measured: &Measured) -> Vec<String> {
        normalised(measured, self.norm_documents)
    }

    fn csv(&self, figures: &Figures) -> Vec<CsvFile> {
        columns::files(figures)
    }
}

/// Documents that were sent, against those that were found in a place.
pub fn finding(sent: u64, place: &str, found: u64) -> Finding {
    let what = format!("documents that were sent, against {place}");
    Finding { what, checked: sent, wrong: found.abs_diff(sent) }
}

/// Costs per so many documents, as the post has them: `vm.cs`, `vm.us+sy` (percent of the machine times a
/// million), and disk traffic, all divided by the insert rate.
fn normalised(measured: &Measured, documents: u32) -> Vec<String> {
    let Some(usage) = &measured.usage else { return Vec::new() };
    let done = measured.tally.operations() as f64;
    if done == 0.0 {
        return Vec::new();
    }
    let per = |sum: f64| sum / done * f64::from(documents);
    let cpu = cpu_percent_by_rate(usage.machine, measured.rate()) * f64::from(documents);
    let counts = usage.disk.as_ref().map(|disk| &disk.counts);
    let kilobytes = |bytes: Option<u64>| {
        bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{:.2}", per(bytes as f64 / 1024.0)))
    };
    let reads = counts.and_then(|counts| counts.reads);
    vec![format!(
        "per {documents} documents: vm.cs {:.1}, vm.us+sy {:.0}, io.kBw {}, io.kBr {}, io.r {}",
        per(usage.machine_switches as f64),
        cpu,
        kilobytes(counts.map(|counts| counts.written_bytes)),
        kilobytes(counts.map(|counts| counts.read_bytes)),
        reads.map_or_else(|| "-".to_owned(), |reads| format!("{:.4}", per(reads as f64))),
    )]
}

struct PurchaseBatches {
    purchases: Purchases,
    spread: Spread,
    /// The number of the next batch, which decides its collection.
    next: u64,
    left: u64,
    batch: u32,
    sent: Arc<Sent>,
    /// Until all is sent, or the connection is lost.
    inserting: Option<Inserting>,
}

impl BatchSource for PurchaseBatches {
    fn next_batch(&mut self, out: &mut Vec<u8>) -> Option<Batch> {
        let documents = u32::try_from(self.left.min(u64::from(self.batch))).unwrap_or(self.batch);
        if documents == 0 {
            self.inserting = None;
            return None;
        }
        (0..documents).for_each(|_| self.purchases.append_next(out));
        self.left -= u64::from(documents);
        self.sent.documents.fetch_add(documents.into(), Ordering::Relaxed);
        let (database, collection) = self.spread.place(self.spread.of(self.next));
        self.next += 1;
        Some(Batch { database, collection, documents })
    }

    fn lost(&mut self) {
        self.inserting = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Turn;
    use crate::client::{Pace, Tally, UnitEnd, Verdict};
    use crate::run::Plan;
    use pando_measuring::counters::{DiskCounts, DiskUsage, Pressure, Shares, Usage};
    use std::time::{Duration, Instant};

    fn workload(documents: u64) -> Iibench {
        Iibench {
            spread: Spread {
                database: "iibench".into(),
                databases: 1,
                collection: COLLECTION,
                collections: 1,
            },
            documents,
            batch: 10,
            indexes: 3,
            shape: Shape::PLAIN,
            durability: Durability::W1,
            queries: QueryPlan::NONE,
            settle_s: 0,
            generator: Generator::Xoshiro,
            seed: 0,
            norm_documents: 200,
            sent: Arc::default(),
        }
    }

    #[test]
    fn all_documents_are_sent_whether_or_not_clients_and_batches_divide_them() {
        let workload = workload(107);
        let target = Target::parse("mongodb://127.0.0.1:1").expect("an address");
        let mut documents = 0;
        for mut script in workload.clients(&target, 3, RunNumber::FIRST).expect("it is all there").scripts {
            while script.request(1, &mut Vec::new()) == Turn::Request {
                let judgement = script.judge(&doc! { "n": 1, "ok": 1.0 }.to_raw());
                if let crate::client::Next::Unit { operations } = judgement.next {
                    documents += operations;
                }
            }
        }
        assert_eq!(documents, 107);
        let sent = workload.sent.lock().expect("nobody panicked").clone();
        assert_eq!(
            (sent.documents.load(Ordering::Relaxed), sent.inserting.load(Ordering::Relaxed)),
            (107, 0)
        );
    }

    #[test]
    fn queries_end_when_the_last_inserting_client_is_lost_or_given_up() {
        let workload = workload(107);
        let target = Target::parse("mongodb://127.0.0.1:1").expect("an address");
        let mut scripts = workload.clients(&target, 3, RunNumber::FIRST).expect("it is all there").scripts;
        let sent = workload.sent.lock().expect("nobody panicked").clone();
        let inserting = || sent.inserting.load(Ordering::Relaxed);
        assert_eq!(inserting(), 3);
        scripts[0].lost();
        scripts[0].lost();
        assert_eq!(inserting(), 2, "a client is counted out once");
        while scripts[1].request(1, &mut Vec::new()) == Turn::Request {}
        scripts[1].lost();
        assert_eq!(inserting(), 1);
        drop(scripts);
        assert_eq!(inserting(), 0, "the window is over: queries that wait for documents end, too");
    }

    #[test]
    fn the_posts_units_are_those_of_the_specification() {
        // 50 % user and system at 236,000 documents/s is 42,373 per 200 documents; the post prints 42,445.
        let mut tally = Tally::new(0, Misses::AreExpected);
        let unit = UnitEnd {
            second: 0,
            latency: Duration::ZERO,
            service: Duration::ZERO,
            verdict: Verdict::Done,
            operations: 236_000,
        };
        tally.unit(unit);
        let counts =
            DiskCounts { reads: Some(1180), writes: Some(0), read_bytes: 1024 * 1180, written_bytes: 0 };
        let usage = Usage {
            // Samples are a little later than the edges of the window: shares are by their own time.
            seconds: 1.1,
            machine: Shares { idle: 0.5, user: 0.3, system: 0.2 },
            machine_switches: 2360,
            server: None,
            disk: Some(DiskUsage { counts, source: String::new() }),
            pressure: Pressure::default(),
        };
        let plan =
            Plan { clients: 1, threads: 1, warmup_s: 0, duration_s: 1, pace: Pace::Closed, interval_s: 10 };
        let measured = Measured {
            plan,
            from: Instant::now(),
            seconds: 1.0,
            tally,
            usage: Some(usage),
            usage_per_second: Vec::new(),
            folder_bytes: Vec::new(),
            server_end: None,
        };
        let line = normalised(&measured, 200).remove(0);
        assert_eq!(
            line,
            "per 200 documents: vm.cs 2.0, vm.us+sy 42373, io.kBw 0.00, io.kBr 1.00, io.r 1.0000"
        );
    }
}
