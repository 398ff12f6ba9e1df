//! Loading: fills the collections anew, in order of `_id`, by batches of one `insert` each.
//!
//! 1. Drop the collections, and no other; create the index on `k` if it is to be there from the start.
//! 2. Each collection is loaded by one connection from start to end; a free connection takes the next collection. So at
//!    most as many connections work as there are collections, and the tail has fewer.
//! 3. Create the index if it is to come after the load; its time is given apart.
//! 4. Count each collection: a load that lost documents is an error.
//!
//! The measured window is step 2. Its operation is the document; its latency is a batch's.

use super::documents::{DataSet, Documents};
use crate::client::{Session, Tally, ThreadUsage, Verdict};
use crate::counters::{Sources, Usage};
use crate::error::BenchError;
use crate::random::Generator;
use pando_document::{Document, Value, doc};
use pando_wire::{MsgFlags, OpMsgWriter};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// How often progress is printed.
const PROGRESS: Duration = Duration::from_secs(10);
/// MongoDB's code of a drop of what is not there.
const NAMESPACE_NOT_FOUND: i64 = 26;

/// When the index on `k` is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexBuild {
    /// Before the load, as the original does: every insert keeps it.
    Before,
    /// After the load.
    After,
    /// Never.
    Never,
}

/// When the server answers a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// `w: 1`: done, not necessarily synced.
    W1,
    /// `w: 1, j: true`: synced.
    Journaled,
    /// `w: "majority"`: synced on most members.
    Majority,
}

impl Durability {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Durability::W1 => "w1",
            Durability::Journaled => "j",
            Durability::Majority => "majority",
        }
    }

    fn write_concern(self) -> Document {
        match self {
            Durability::W1 => doc! { "w": 1 },
            Durability::Journaled => doc! { "w": 1, "j": true },
            Durability::Majority => doc! { "w": "majority" },
        }
    }
}

/// The workload.
#[derive(Clone, Debug)]
pub struct Load {
    /// What to load.
    pub data: DataSet,
    /// What the documents are drawn from.
    pub generator: Generator,
    /// What the draws hang on.
    pub seed: u64,
    /// How many connections load at once.
    pub connections: u32,
    /// Documents per insert.
    pub batch: u32,
    /// When the index is created.
    pub index: IndexBuild,
    /// When the server answers.
    pub durability: Durability,
}

/// What a load did and cost.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Documents per second are counted by batch: see [`Loaded::documents_per_second`].
    pub batches: Tally,
    /// Documents that were loaded in each second.
    pub documents_per_second: Vec<u64>,
    /// What it cost.
    pub usage: Usage,
    /// The time of the index, if it was created after the load.
    pub index_seconds: Option<f64>,
}

impl Load {
    /// Loads.
    pub fn run(&self, address: SocketAddr, sources: &mut Sources) -> Result<Loaded, BenchError> {
        let mut session = Session::open(address)?;
        self.drop_collections(&mut session)?;
        if self.index == IndexBuild::Before {
            self.create_indexes(&mut session)?;
        }
        let before = sources.sample()?;
        let (batches, documents_per_second) = self.insert_all(address, sources)?;
        let usage = Usage::between(&before, &sources.sample()?);
        let began = Instant::now();
        if self.index == IndexBuild::After {
            self.create_indexes(&mut session)?;
        }
        let index_seconds = (self.index == IndexBuild::After).then(|| began.elapsed().as_secs_f64());
        check_counts(&mut session, &self.data)?;
        Ok(Loaded { batches, documents_per_second, usage, index_seconds })
    }

    fn drop_collections(&self, session: &mut Session) -> Result<(), BenchError> {
        for number in 1..=self.data.collections {
            match session.command(&self.data.database, doc! { "drop": self.data.collection(number) }) {
                Ok(_) | Err(BenchError::Refused { code: NAMESPACE_NOT_FOUND, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn create_indexes(&self, session: &mut Session) -> Result<(), BenchError> {
        for number in 1..=self.data.collections {
            let command = doc! {
                "createIndexes": self.data.collection(number),
                "indexes": [{ "key": { "k": 1 }, "name": "k_1" }],
            };
            session.command(&self.data.database, command)?;
        }
        Ok(())
    }

    /// Step 2; gives the batches and the documents of each second.
    fn insert_all(
        &self,
        address: SocketAddr,
        sources: &mut Sources,
    ) -> Result<(Tally, Vec<u64>), BenchError> {
        let progress =
            Progress { next: AtomicU32::new(1), loaded: AtomicU64::new(0), failed: AtomicBool::new(false) };
        let sessions: Result<Vec<Session>, _> =
            (0..self.connections).map(|_| Session::open(address)).collect();
        let (began, (report, reports)) = (Instant::now(), channel());
        std::thread::scope(|scope| {
            for session in sessions? {
                let (report, progress) = (report.clone(), &progress);
                scope.spawn(move || {
                    let mut loader =
                        Loader { load: self, session, began, batches: Tally::new(), documents: Vec::new() };
                    let outcome = loader.load_collections(progress);
                    // The receiver is gone only if another loader failed, whose error is then the one to show.
                    let _ = report.send(outcome.map(|()| (loader.batches, loader.documents)));
                });
            }
            drop(report);
            let mut batches = Tally::new();
            let mut documents = Vec::new();
            loop {
                match reports.recv_timeout(PROGRESS) {
                    Ok(outcome) => {
                        let (tally, counts) =
                            outcome.inspect_err(|_| progress.failed.store(true, Ordering::Relaxed))?;
                        batches.add(tally);
                        documents.resize(documents.len().max(counts.len()), 0_u64);
                        documents.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        sources.notice_threads()?;
                        self.print_progress(progress.loaded.load(Ordering::Relaxed), began.elapsed());
                    }
                    Err(RecvTimeoutError::Disconnected) => return Ok((batches, documents)),
                }
            }
        })
    }

    fn print_progress(&self, loaded: u64, elapsed: Duration) {
        let rate = loaded as f64 / elapsed.as_secs_f64();
        let all = self.data.documents_in_all();
        eprintln!("{loaded} of {all} documents : {:.0} s : {rate:.0} documents/s", elapsed.as_secs_f64());
    }
}

/// What the loaders share.
struct Progress {
    /// The collection to load next.
    next: AtomicU32,
    /// Documents so far.
    loaded: AtomicU64,
    /// Whether one has failed, so that the others need not go on.
    failed: AtomicBool,
}

/// One connection that loads.
struct Loader<'a> {
    load: &'a Load,
    session: Session,
    began: Instant,
    batches: Tally,
    documents: Vec<u64>,
}

impl Loader<'_> {
    fn load_collections(&mut self, progress: &Progress) -> Result<(), BenchError> {
        let before = ThreadUsage::now()?;
        let mut batch = Vec::new();
        loop {
            let number = progress.next.fetch_add(1, Ordering::Relaxed);
            if !(1..=self.load.data.collections).contains(&number) {
                break;
            }
            let mut documents =
                Documents::new(self.load.generator, self.load.seed, number, self.load.data.documents);
            while documents.left() > 0 {
                if progress.failed.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let count = documents.left().min(self.load.batch);
                batch.clear();
                (0..count).for_each(|_| documents.append_next(&mut batch));
                self.insert(number, &batch, count)?;
                progress.loaded.fetch_add(u64::from(count), Ordering::Relaxed);
            }
        }
        self.batches.threads = vec![ThreadUsage::now()?.since(&before)];
        Ok(())
    }

    fn insert(&mut self, number: u32, batch: &[u8], count: u32) -> Result<(), BenchError> {
        let sent_at = Instant::now();
        let body = doc! {
            "insert": self.load.data.collection(number),
            "ordered": true,
            "writeConcern": self.load.durability.write_concern(),
            "$db": self.load.data.database.as_str(),
        };
        let reply = self.session.exchange("insert", |out, request_id| {
            let writer = OpMsgWriter::begin(out, request_id, 0, MsgFlags::NONE);
            writer.body(out, body.to_raw().as_bytes());
            writer.sequence(out, "documents", [batch]);
            Ok(writer.finish(out)?)
        })?;
        let inserted = reply.get("n").and_then(Value::as_i64_exact);
        if inserted != Some(i64::from(count)) {
            let message = format!("{inserted:?} of {count} documents inserted");
            return Err(BenchError::Refused { command: "insert".into(), code: 0, message });
        }
        let now = Instant::now();
        let second = usize::try_from(now.duration_since(self.began).as_secs()).unwrap_or(usize::MAX);
        self.batches.record(second, now.duration_since(sent_at), Verdict::Done);
        self.documents.resize(self.documents.len().max(second + 1), 0);
        self.documents[second] += u64::from(count);
        Ok(())
    }
}

/// The documents that a collection holds.
pub fn count(session: &mut Session, data: &DataSet, number: u32) -> Result<i64, BenchError> {
    let reply = session.command(&data.database, doc! { "count": data.collection(number) })?;
    Ok(reply.get("n").and_then(Value::as_i64_exact).unwrap_or(0))
}

/// That every collection holds what the data set says.
pub fn check_counts(session: &mut Session, data: &DataSet) -> Result<(), BenchError> {
    for number in 1..=data.collections {
        let found = count(session, data, number)?;
        if found != i64::from(data.documents) {
            let namespace = format!("{}.{}", data.database, data.collection(number));
            return Err(BenchError::DataSet { namespace, found, expected: data.documents });
        }
    }
    Ok(())
}
