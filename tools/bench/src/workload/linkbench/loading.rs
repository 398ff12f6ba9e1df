//! The load phase: nodes, their links and the links' counts, by pieces of the ids.
//!
//! Pieces are taken from the highest ids down, as in the original. Each piece also brings its nodes. The
//! original has one thread for all nodes, which is the tail of its load. The draws of a piece follow from the
//! seed and the piece only, so a load is the same with any number of clients.

use super::LinkBench;
use super::content::ContentMaker;
use super::requester::FIRST_LINK_TYPE;
use super::store::{Contents, Count, Link, LinkKey, LinkStore, LoadRecord, Node};
use crate::client::{ClientState, Clients, Kind, Performed, Task, Turn, Verdict};
use crate::error::BenchError;
use crate::run::Measured;
use crate::target::Target;
use crate::workload::load::{Loading, TimedStep};
use crate::workload::now_ms;
use pando_measuring::random::Random;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Nodes, links or counts in a batch.
const BATCH: usize = 1024;
/// The kinds of batches.
const KINDS: [&str; 3] = ["LOAD_NODE_BULK", "LOAD_LINKS_BULK", "LOAD_COUNTS_BULK"];
/// Links are of the last 2^32 milliseconds.
const TIME_SPAN_MS: f64 = 4_294_967_296.0;

impl Loading for LinkBench {
    fn databases(&self) -> Vec<String> {
        vec![self.database().to_owned()]
    }

    fn summary(&self) -> String {
        format!(
            "{} nodes with {} links of {} types{}, {} clients, pieces of {} ids",
            self.settings.nodes(),
            self.degrees.all_links(),
            self.settings.link_types,
            self.degrees_in_words(),
            self.settings.loaders,
            self.settings.chunk,
        )
    }

    fn parameters(&self) -> serde_json::Value {
        json!({
            "graph": self.graph_parameters(),
            "loaders": self.settings.loaders,
            "chunk": self.settings.chunk,
            "batch": BATCH,
        })
    }

    fn kinds(&self) -> Vec<String> {
        KINDS.map(str::to_owned).to_vec()
    }

    fn is_there(&self, target: &Target) -> Result<bool, BenchError> {
        let database = self.store(target);
        database.check_ability()?;
        Ok(database.contents()?.nodes > 0)
    }

    fn prepare(&self, target: &Target) -> Result<(), BenchError> {
        let database = self.store(target);
        database.check_ability()?;
        database.recreate()
    }

    fn connections(&self) -> u32 {
        self.settings.loaders
    }

    fn clients(&self, target: &Target) -> Result<Clients, BenchError> {
        let pieces = self.settings.nodes().div_ceil(u64::from(self.settings.chunk));
        let (next, failed) = (Arc::new(AtomicU64::new(pieces)), Arc::new(AtomicBool::new(false)));
        let database = self.store(target);
        let mut clients = Clients::default();
        for _ in 0..self.settings.loaders {
            let store = database.open(self.settings.loaders)?;
            let (next, failed) = (next.clone(), failed.clone());
            clients.tasks.push(Box::new(Loader {
                bench: self.clone(),
                store,
                next,
                failed,
                queue: Queue::default(),
            }));
        }
        Ok(clients)
    }

    fn lines(&self, measured: &Measured) -> Vec<String> {
        let (nodes, links) = (self.settings.nodes(), self.degrees.all_links());
        vec![format!(
            "LOAD PHASE COMPLETED.  Loaded {nodes} nodes (Expected {nodes}). Loaded {links} links ({:.2} links per node).  \
             Took {:.1} seconds.  Links/second = {:.0}",
            links as f64 / nodes as f64,
            measured.seconds,
            links as f64 / measured.seconds
        )]
    }

    fn finish(&self, target: &Target) -> Result<Vec<TimedStep>, BenchError> {
        self.store(target).record_load(self.load_record())?;
        Ok(Vec::new())
    }

    fn check(&self, target: &Target) -> Result<(), BenchError> {
        let database = self.store(target);
        // A missing ability is reported before missing data, and another mapping before another size.
        database.check_ability()?;
        database.check_contents()?;
        let found = database.contents()?;
        if found.links > 0 {
            let last_linked = database.highest_linked_node()?;
            match database.load_record()?.filter(|record| record.can_be_of(found, last_linked)) {
                Some(record) => return self.check_record(record),
                None => self.check_size(found, database.highest_node()?, last_linked)?,
            }
        }
        // Requests add and delete nodes and add links; that fewer links are there than were loaded means
        // another load.
        let expected = self.degrees.all_links();
        if found.links < expected { Err(self.other_links(found.links)) } else { Ok(()) }
    }
}

impl LinkBench {
    /// The size of the graph of this run.
    fn load_record(&self) -> LoadRecord {
        LoadRecord {
            first_id: self.settings.first_id,
            nodes: self.settings.nodes(),
            links: self.degrees.all_links(),
        }
    }

    /// The error of a graph with as many nodes and other links.
    fn other_links(&self, found: u64) -> BenchError {
        let namespace = format!("{}.link", self.ways.database);
        BenchError::DataSet { namespace, found, expected: self.degrees.all_links() }
    }

    /// Whether the graph that is there was loaded as this run wants it.
    fn check_record(&self, record: LoadRecord) -> Result<(), BenchError> {
        let wanted = self.load_record();
        if record.nodes != wanted.nodes {
            let database = self.ways.database.clone();
            return Err(BenchError::DataSetGraph { database, found: record.nodes, nodes: wanted.nodes });
        }
        if record.first_id != wanted.first_id {
            let cause = format!(
                "the graph that is there begins with node {}, that of the run with node {} (startid1): load anew (-l -r)",
                record.first_id, wanted.first_id
            );
            return Err(BenchError::option("D", cause));
        }
        if record.links != wanted.links { Err(self.other_links(record.links)) } else { Ok(()) }
    }

    /// Whether a graph without a record of its load was loaded with as many nodes as this one. LinkBench
    /// itself loads such graphs, and earlier versions of this tool did:
    ///
    /// 1. A graph without a request so far says its size: no node and no link is missing or new.
    /// 2. Requests add nodes behind the loaded ones, but links at loaded nodes only. So a link at a higher
    ///    node is of a larger graph.
    /// 3. The load gives links to nodes up to `Degrees::last_linked`. A graph that ends before is smaller.
    fn check_size(&self, found: Contents, last_node: i64, last_linked: i64) -> Result<(), BenchError> {
        let (first, nodes) = (self.settings.first_id, self.settings.nodes());
        let nodes_up_to = |id: i64| u64::try_from(id - first + 1).unwrap_or(0);
        let all = nodes_up_to(last_node);
        let is_fresh =
            || all > 0 && found.nodes == all && found.links == self.degrees.of_nodes(all).all_links();
        let least = self.degrees.last_linked().map_or(0, |place| place + 1);
        let other = if all != nodes && is_fresh() {
            all
        } else if nodes_up_to(last_linked) > nodes {
            nodes_up_to(last_linked)
        } else if nodes_up_to(last_linked) < least {
            all
        } else {
            return Ok(());
        };
        Err(BenchError::DataSetGraph { database: self.ways.database.clone(), found: other, nodes })
    }
}

/// Documents that are made and not sent.
#[derive(Default)]
struct Queue {
    nodes: Vec<Node>,
    links: Vec<Link>,
    counts: Vec<Count>,
}

struct Loader {
    bench: LinkBench,
    store: Box<dyn LinkStore>,
    /// Pieces that are left; each client takes the last.
    next: Arc<AtomicU64>,
    failed: Arc<AtomicBool>,
    queue: Queue,
}

impl Loader {
    /// Makes a piece; nothing if all are made.
    fn make_piece(&mut self) -> Option<()> {
        let piece =
            self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok()?
                - 1;
        let LinkBench { settings, .. } = &self.bench;
        let chunk = u64::from(settings.chunk);
        let places = piece * chunk..settings.nodes().min((piece + 1) * chunk);
        let mut random = Random::for_collection(self.bench.ways.generator, self.bench.load_seed, piece);
        let link_maker = ContentMaker::new(self.bench.link_content, &mut random);
        let node_maker = ContentMaker::new(self.bench.node_content, &mut random);
        let now = now_ms();
        for place in places {
            let id = settings.first_id + i64::try_from(place).unwrap_or(i64::MAX);
            let time = i32::try_from(now / 1000).unwrap_or(i32::MAX);
            self.queue.nodes.push(Node { id, version: 1, time, data: node_maker.make(&mut random) });
            for number in 0..settings.link_types {
                let link_type = FIRST_LINK_TYPE + i64::from(number);
                let links = self.bench.degrees.links(place, u64::from(number));
                let mut newest = 0;
                for distance in 0..i64::try_from(links).unwrap_or(i64::MAX) {
                    let time = now - 1 - (random.unit() * (TIME_SPAN_MS - 1.0)) as i64;
                    newest = newest.max(time);
                    let key = LinkKey { id1: id, link_type, id2: id + distance };
                    self.queue.links.push(Link { key, time, version: 0, data: link_maker.make(&mut random) });
                }
                if links > 0 {
                    let count = i64::try_from(links).unwrap_or(i64::MAX);
                    self.queue.counts.push(Count { id, link_type, count, time: newest });
                }
            }
        }
        Some(())
    }
}

impl Task for Loader {
    fn prepare(&mut self) -> Turn {
        if self.failed.load(Ordering::Relaxed) {
            return Turn::Over;
        }
        while self.queue.nodes.is_empty() && self.queue.links.is_empty() && self.queue.counts.is_empty() {
            if self.make_piece().is_none() {
                return Turn::Over;
            }
        }
        Turn::Request
    }

    fn perform(&mut self) -> Performed {
        let queue = &mut self.queue;
        let began = Instant::now();
        // From the ends: what is left keeps its place.
        let (kind, operations, outcome) = if !queue.nodes.is_empty() {
            let batch = queue.nodes.split_off(queue.nodes.len().saturating_sub(BATCH));
            (0, batch.len(), self.store.load_nodes(&batch))
        } else if !queue.links.is_empty() {
            let batch = queue.links.split_off(queue.links.len().saturating_sub(BATCH));
            (1, batch.len(), self.store.load_links(&batch))
        } else {
            let batch = queue.counts.split_off(queue.counts.len().saturating_sub(BATCH));
            (2, batch.len(), self.store.load_counts(&batch))
        };
        let mut performed = Performed::of(Kind::new(kind), began.elapsed(), outcome.map(|()| Verdict::Done));
        if matches!(performed.verdict, Verdict::Failed(_)) {
            self.failed.store(true, Ordering::Relaxed);
            performed.client = ClientState::Out;
        }
        let operations = u32::try_from(operations).unwrap_or(u32::MAX);
        Performed { operations, retries: self.store.take_retries(), ..performed }
    }
}
