//! LinkBench: a social graph of nodes and links, ten operations (part D of the specification).
//!
//! - [`settings`]: what its properties files say.
//! - [`shuffler`], [`zipf`], [`degree`], [`access`]: which nodes and links, how many and how often.
//! - [`content`]: their data.
//! - [`mix`]: the operations. [`requester`]: a client of the request phase. [`loading`]: the load phase.
//! - [`store`]: what a store must do. [`mongo`] has those of MongoDB's protocol, `tools/bench-mysql` the one
//!   of MySQL's.
//! - [`columns`] and [`stream`]: LinkBench's own output.
//!
//! The defaults do what LinkBench's documentation and configuration say; [`LinkBench::faithful`] does what
//! its code does: more links than the table of degrees has, writes with the reads' distribution, multigets of
//! one link more, a motif of 512 bytes for links; and over MongoDB's protocol without transactions what its
//! plugin sends, counts that go wrong included.
//!
//! After a run, counts are compared with visible links, and the number of those that differ stands beside the
//! rate.

pub(crate) mod access;
pub(crate) mod columns;
pub(crate) mod content;
pub(crate) mod degree;
pub(crate) mod loading;
pub(crate) mod mix;
pub(crate) mod mongo;
pub(crate) mod requester;
pub(crate) mod settings;
pub(crate) mod shuffler;
pub mod store;
pub(crate) mod stream;
pub(crate) mod zipf;

use super::load::{Durability, Loading};
use super::{Finding, RunNumber, Workload};
use crate::client::{Clients, Misses};
use crate::error::BenchError;
use crate::report::Figures;
use crate::report::csv::CsvFile;
use crate::run::Measured;
use crate::target::Target;
use access::{Access, Multigets, Writes};
use content::{Content, ORIGINAL_MOTIF_BYTES};
use degree::{Degrees, Split, Table};
use mix::OPERATIONS;
use mongo::{Mapping, MongoDatabase};
use pando_document::{Document, doc};
use pando_measuring::random::{Generator, Random};
use requester::{Requester, Shared};
use serde_json::json;
use settings::Settings;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use store::{CheckExtent, LinkDatabase, StoreChoice, Transactions};
use stream::{ClientStream, StreamLog};

/// Settings that LinkBench itself does not have.
#[derive(Clone, Debug)]
pub struct Ways {
    /// The database.
    pub database: String,
    /// The way in which a link and its count change together.
    pub transactions: Transactions,
    /// When the server answers a write.
    pub durability: Durability,
    /// The generator of the draws.
    pub generator: Generator,
    /// The seed of draws, where the settings have none.
    pub seed: u64,
    /// The most links of a node, in all types.
    pub degree_max: u64,
    /// Whether counts are compared with links after a run.
    pub check: CheckExtent,
}

/// The workload.
#[derive(Clone, Debug)]
pub struct LinkBench {
    settings: Settings,
    ways: Ways,
    load_seed: u64,
    request_seed: u64,
    degrees: Degrees,
    /// Whether they come from LinkBench's own table.
    own_table: bool,
    split: Split,
    writes: Writes,
    multigets: Multigets,
    link_content: Content,
    node_content: Content,
    /// Of stores over MongoDB's protocol.
    mapping: Mapping,
    /// The csvstream of the last run.
    stream: Arc<StreamLog>,
    /// The choice of the store, if it is of another protocol than MongoDB's.
    elsewhere: Option<Arc<dyn StoreChoice>>,
}

impl LinkBench {
    /// As LinkBench's documentation and configuration say.
    pub fn new(settings: Settings, ways: Ways) -> Result<LinkBench, BenchError> {
        LinkBench::with(settings, ways, Split::Even)
    }

    /// As LinkBench's code does.
    pub fn faithful(settings: Settings, ways: Ways) -> Result<LinkBench, BenchError> {
        let bench = LinkBench::with(settings, ways, Split::AsOriginal)?;
        let link_content = Content { motif_bytes: ORIGINAL_MOTIF_BYTES, ..Content::LINKS };
        // The plugin knows nothing of sessions.
        let is_plugins = bench.ways.transactions != Transactions::Session;
        Ok(LinkBench {
            mapping: if is_plugins { Mapping::Plugin } else { Mapping::Own },
            writes: Writes::AsOriginal,
            multigets: Multigets::FromTwo,
            link_content,
            ways: Ways { generator: Generator::Java, ..bench.ways },
            ..bench
        })
    }

    fn with(settings: Settings, mut ways: Ways, split: Split) -> Result<LinkBench, BenchError> {
        let table = match &settings.data_file {
            Some(path) => Table::read(path)?,
            None => Table::built_in(),
        };
        let types = u64::from(settings.link_types);
        let own_table = settings.data_file.is_some() && table.is_linkbenchs_own();
        let degrees = Degrees::new(settings.nodes(), types, split, ways.degree_max, table);
        if let Some(database) = &settings.database {
            ways.database.clone_from(database);
        }
        Ok(LinkBench {
            load_seed: settings.seeds[0].unwrap_or(ways.seed),
            request_seed: settings.seeds[1].unwrap_or(ways.seed),
            ways,
            degrees,
            own_table,
            split,
            writes: Writes::AsConfigured,
            multigets: Multigets::FromOne,
            link_content: Content::LINKS,
            node_content: Content::NODES,
            mapping: Mapping::Own,
            stream: Arc::new(StreamLog::new(settings.display_s, settings.samples_max)),
            settings,
            elsewhere: None,
        })
    }

    /// The same over another protocol.
    #[must_use]
    pub fn on(self, stores: Arc<dyn StoreChoice>) -> LinkBench {
        LinkBench { elsewhere: Some(stores), ..self }
    }

    /// The same without an end, for a server that answers without looking.
    #[must_use]
    pub fn endless(&self) -> LinkBench {
        LinkBench { settings: Settings { requests: None, ..self.settings.clone() }, ..self.clone() }
    }

    /// The name of the database.
    pub fn database(&self) -> &str {
        &self.ways.database
    }

    /// The csvstream of the last run, also of clones.
    pub fn stream(&self) -> Arc<StreamLog> {
        self.stream.clone()
    }

    /// The database behind the clients.
    fn store(&self, target: &Target) -> Box<dyn LinkDatabase> {
        if let Some(stores) = &self.elsewhere {
            return stores.database(&self.ways.database, self.ways.transactions);
        }
        Box::new(MongoDatabase::new(
            target,
            &self.ways.database,
            self.ways.transactions,
            self.ways.durability,
            self.mapping,
        ))
    }

    fn degrees_in_words(&self) -> String {
        let table = match (&self.settings.data_file, self.own_table) {
            (None, _) => "the built-in curve",
            (Some(_), true) => "LinkBench's own table",
            (Some(_), false) => "a file's table, which is not LinkBench's own",
        };
        match self.ways.degree_max {
            u64::MAX => format!(" by {table}"),
            most => format!(" by {table}, {most} a node at most"),
        }
    }

    fn graph_parameters(&self) -> serde_json::Value {
        json!({
            "database": self.ways.database,
            "first_id": self.settings.first_id,
            "nodes": self.settings.nodes(),
            "link_types": self.settings.link_types,
            "degrees": self.degrees_in_words().trim_start(),
            "links": self.degrees.all_links(),
            "split": self.split,
            "seed": self.load_seed,
            "generator": self.ways.generator.name(),
            "durability": self.ways.durability.name(),
        })
    }
}

impl Workload for LinkBench {
    fn name(&self) -> &'static str {
        "linkbench"
    }

    fn summary(&self) -> String {
        let consistency = match self.mapping {
            Mapping::Own => self.ways.transactions.promise(),
            Mapping::Plugin => "none, links and counts as the original's plugin writes them: counts go wrong",
        };
        format!(
            "ten operations on {} nodes, lists of {} links at most, transactions {consistency}, durability {}, {} seed {}",
            self.settings.nodes(),
            self.settings.list_limit,
            self.ways.durability.name(),
            self.ways.generator.name(),
            self.request_seed
        )
    }

    fn parameters(&self) -> serde_json::Value {
        let percentages = OPERATIONS.iter().zip(self.settings.mix.percentages());
        let mix: serde_json::Map<String, serde_json::Value> = percentages
            .map(|(operation, percentage)| (operation.property().to_owned(), json!(percentage)))
            .collect();
        json!({
            "graph": self.graph_parameters(),
            "mix": mix,
            "transactions": self.ways.transactions.name(),
            "mapping": format!("{:?}", self.mapping),
            "requests_per_client": self.settings.requests,
            "history_percent": self.settings.history_percent,
            "list_limit": self.settings.list_limit,
            "writes": format!("{:?}", self.writes),
            "multigets": format!("{:?}", self.multigets),
            "seed": self.request_seed,
        })
    }

    fn operations(&self) -> &'static str {
        "requests"
    }

    fn kinds(&self) -> Vec<String> {
        OPERATIONS.iter().map(|operation| operation.name().to_owned()).collect()
    }

    fn misses(&self) -> Misses {
        Misses::AreExpected
    }

    fn loading(&self) -> Option<&dyn Loading> {
        Some(self)
    }

    fn prepare(&self, target: &Target) -> Result<(), BenchError> {
        let store = self.store(target);
        store.check_ability()?;
        store.check_contents()?;
        let ended = store.recover()?;
        if ended > 0 {
            err_line!("{ended} writes that an interrupted run left half done were ended");
        }
        Ok(())
    }

    fn clients(&self, target: &Target, count: u32, run: RunNumber) -> Result<Clients, BenchError> {
        let database = self.store(target);
        let settings = &self.settings;
        self.stream.clear();
        let next_node = database.highest_node()?.max(settings.end_id - 1) + 1;
        let access = Access::new(
            settings.first_id,
            settings.nodes(),
            self.degrees.clone(),
            self.writes,
            self.multigets,
        );
        let shared = Arc::new(Shared {
            access,
            settings: settings.clone(),
            next_node: AtomicI64::new(next_node),
            link_content: self.link_content,
            node_content: self.node_content,
        });
        let mut clients = Clients::default();
        for client in 0..count {
            let random = Random::for_client(self.ways.generator, self.request_seed, run.stream(client));
            let requests = settings.requests.unwrap_or(u64::MAX);
            let stream = ClientStream::new(self.stream.clone(), client);
            let requester = Requester::new(shared.clone(), database.open(count)?, random, requests, stream);
            clients.tasks.push(Box::new(requester));
        }
        Ok(clients)
    }

    /// A reply that satisfies every operation: a node, a visible link and a count in one.
    fn null_reply(&self) -> Option<Document> {
        let document = doc! {
            "_id": 1_i64, "type": 2048, "visibility": 1, "id1": 1_i64, "link_type": 1_i64, "id2": 1_i64, "time": 1_i64,
            "version": 0, "data": "12345678", "count": 1_i64,
        };
        let cursor = doc! { "firstBatch": [document.clone()], "id": 0_i64, "ns": "graph-linkbench.link" };
        let reply = doc! { "cursor": cursor, "value": document, "n": 1, "nModified": 1, "ok": 1.0 };
        Some(reply)
    }

    /// They ask on until the time is over.
    fn null_clients(&self, target: &Target, clients: u32) -> Result<Clients, BenchError> {
        Workload::clients(&self.endless(), target, clients, RunNumber::FIRST)
    }

    fn verify(&self, target: &Target) -> Result<Vec<Finding>, BenchError> {
        let store = self.store(target);
        // A connection that was lost may have left something half done.
        store.recover()?;
        Ok(store.check(self.ways.check)?.into_iter().collect())
    }

    fn lines(&self, measured: &Measured) -> Vec<String> {
        columns::lines(&Figures::new(measured, &Workload::kinds(self)))
    }

    fn csv(&self, figures: &Figures) -> Vec<CsvFile> {
        columns::files(figures, self.stream.text())
    }
}
