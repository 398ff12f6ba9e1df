//! The stores over MongoDB's protocol.
//!
//! # Mapping
//! Collections `node`, `link`, `count`. A link's `_id` is `{t, a, b}` (type, from, to), a count's is `{i,
//! t}`, a node's is its number. This needs one index fewer than the original's plugin, and no link can be
//! there twice. The index of lists covers them, because they ask for its fields only.
//!
//! # A write of a link
//! 1. One `findAndModify` with upsert changes the link and returns its state before. So exactly one client
//!    sees each change of its visibility.
//! 2. The client that saw such a change adds it to the count, by `$inc` with upsert.
//!
//! Without transactions a crash between the two steps leaves a wrong count. Counts are right while no
//! operation is under way. [`transaction`] makes the steps one transaction, of a session or of TokuMX. With
//! [`two_phase`] a later run ends the steps that a crash interrupted.
//!
//! The plugin of the original loses counts by replacing their documents, begins its transaction after the
//! first write, and asks for a `count` before each list. Only `--faithful` does the same: [`plugin`].
//!
//! A fourth collection, `load`, has one document: the size of the graph as it was loaded.
//!
//! [`documents`] has the documents and commands that all three share, [`store`] the connection.
//!
//! # Retries
//! A write conflict, a lock timeout, or a duplicate key between two upserts of the same link is tried again,
//! and counted.

mod documents;
mod plugin;
mod store;
mod transaction;
mod two_phase;

use super::store::{CheckExtent, Contents, LinkDatabase, LinkStore, LoadRecord, Transactions};
use crate::client::Session;
use crate::error::BenchError;
use crate::target::Target;
use crate::workload::Finding;
use crate::workload::load::{Durability, count, drop_collection};
use documents::{batch, each, list_index, sample};
use pando_document::{Document, Value, doc};
use plugin::{Level, PluginStore};
use std::collections::HashMap;
use store::MongoStore;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    Own,
    Plugin,
}

/// The collection of the record of the load.
const LOAD: &str = "load";

/// The code of a server that does not know a command.
const COMMAND_NOT_FOUND: i64 = 59;

/// A MongoDB-protocol server as LinkBench's database.
#[derive(Debug)]
pub struct MongoDatabase {
    target: Target,
    database: String,
    transactions: Transactions,
    durability: Durability,
    mapping: Mapping,
}

impl MongoDatabase {
    pub fn new(
        target: &Target,
        database: &str,
        transactions: Transactions,
        durability: Durability,
        mapping: Mapping,
    ) -> MongoDatabase {
        let database = database.to_owned();
        MongoDatabase { target: target.clone(), database, transactions, durability, mapping }
    }

    /// Links that are there must have been loaded with the same mapping.
    fn check_mapping(&self) -> Result<(), BenchError> {
        let find = doc! { "find": "link", "limit": 1, "singleBatch": true, "projection": { "_id": 1 } };
        let reply = self.session()?.command(&self.database, find)?;
        let first = batch(&reply).and_then(<[Value]>::first).and_then(|link| link.as_document()?.get("_id"));
        let found = match first {
            None => return Ok(()),
            Some(Value::Document(_)) => Mapping::Own,
            Some(_) => Mapping::Plugin,
        };
        if found == self.mapping {
            return Ok(());
        }
        let loaded = if found == Mapping::Own { "without" } else { "with" };
        let cause = format!("the links that are there were loaded {loaded} it: load anew (-l -r)");
        Err(BenchError::option("faithful", cause))
    }

    /// The highest number in a field that an index begins with; 0 if there is none.
    fn highest(&self, collection: &str, field: &str) -> Result<i64, BenchError> {
        let find = doc! {
            "find": collection, "sort": { (field): -1 }, "limit": 1, "projection": { (field): 1 }, "singleBatch": true,
        };
        let reply = self.session()?.command(&self.database, find)?;
        let first =
            batch(&reply).and_then(<[Value]>::first).and_then(|found| found.as_document()?.get(field));
        Ok(first.and_then(Value::as_i64_exact).unwrap_or(0))
    }

    fn session(&self) -> Result<Session, BenchError> {
        Session::open(self.target.address())
    }

    fn connect(&self) -> Result<MongoStore, BenchError> {
        let write_concern = self.durability.write_concern();
        Ok(MongoStore::new(self.session()?, &self.database, self.transactions, write_concern))
    }
}

impl LinkDatabase for MongoDatabase {
    fn check_ability(&self) -> Result<(), BenchError> {
        let cannot = |cause: String| Err(BenchError::Option { option: "txn", cause });
        let mut store = self.connect()?;
        match (self.transactions, store.try_transaction()) {
            (Transactions::None | Transactions::TwoPhase, _) | (_, Ok(())) => Ok(()),
            (Transactions::TokuMx, Err(BenchError::Refused { code: COMMAND_NOT_FOUND, .. })) => cannot(
                "the server has no beginTransaction of TokuMX: use session, two-phase or none".to_owned(),
            ),
            (Transactions::TokuMx, Err(error)) => {
                cannot(format!("the server does not do TokuMX's transactions: {error}"))
            }
            (Transactions::Session, Err(error)) => cannot(format!(
                "the server does not do transactions of a session, run it as a replica set, or use none: {error}"
            )),
        }
    }

    fn recreate(&self) -> Result<(), BenchError> {
        let mut session = self.session()?;
        // First: no record may stand beside another graph than its own.
        drop_collection(&mut session, &self.database, LOAD)?;
        for collection in ["node", "link", "count", "transaction"] {
            drop_collection(&mut session, &self.database, collection)?;
            session.command(&self.database, doc! { "create": collection })?;
        }
        if self.mapping == Mapping::Plugin {
            let mut commands = plugin::index_commands().into_iter();
            return commands.try_for_each(|command| session.command(&self.database, command).map(drop));
        }
        let index =
            doc! { "createIndexes": "link", "indexes": [{ "key": list_index(), "name": "id1_type" }] };
        session.command(&self.database, index).map(|_| ())
    }

    fn record_load(&self, record: LoadRecord) -> Result<(), BenchError> {
        let LoadRecord { first_id, nodes, links } = record;
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let document =
            doc! { "_id": 1, "first_id": first_id, "nodes": number(nodes), "links": number(links) };
        self.connect()?.insert(LOAD, vec![document.into()])
    }

    fn load_record(&self) -> Result<Option<LoadRecord>, BenchError> {
        let found = self.connect()?.find_one(LOAD, doc! { "_id": 1 }, doc! {})?;
        let number = |name: &str| found.as_ref()?.get(name)?.as_i64_exact();
        let count = |name: &str| u64::try_from(number(name)?).ok();
        let record = || {
            Some(LoadRecord { first_id: number("first_id")?, nodes: count("nodes")?, links: count("links")? })
        };
        Ok(record())
    }

    fn check_contents(&self) -> Result<(), BenchError> {
        self.check_mapping()
    }

    fn recover(&self) -> Result<u64, BenchError> {
        if self.mapping == Mapping::Plugin {
            // The plugin never looks at what was left behind.
            return Ok(0);
        }
        // The level of the interrupted run is not known.
        self.connect()?.recover()
    }

    fn contents(&self) -> Result<Contents, BenchError> {
        let mut session = self.session()?;
        Ok(Contents {
            nodes: count(&mut session, &self.database, "node")?,
            links: count(&mut session, &self.database, "link")?,
        })
    }

    fn highest_node(&self) -> Result<i64, BenchError> {
        self.highest("node", "_id")
    }

    fn highest_linked_node(&self) -> Result<i64, BenchError> {
        self.highest("link", "id1")
    }

    fn open(&self, clients: u32) -> Result<Box<dyn LinkStore>, BenchError> {
        let plain = self.connect()?;
        Ok(match self.mapping {
            Mapping::Own => Box::new(plain),
            Mapping::Plugin => Box::new(PluginStore::new(plain, Level::of(self.transactions, clients))),
        })
    }

    fn check(&self, extent: CheckExtent) -> Result<Option<Finding>, BenchError> {
        let mut session = self.session()?;
        let filter = match extent {
            CheckExtent::Nothing => return Ok(None),
            CheckExtent::Full => None,
            CheckExtent::Sample { nodes, id_max } => Some(sample(nodes, id_max)),
        };
        let mut difference: HashMap<(i64, i64), i64> = HashMap::new();
        let of = |filter: &Option<Value>, name: &str| {
            filter.as_ref().map_or_else(Document::new, |ids| doc! { (name): { "$in": ids.clone() } })
        };
        let mut links = of(&filter, "id1");
        links.push("visibility", 1);
        each(&mut session, &self.database, "link", links, &["id1", "link_type"], |numbers| {
            *difference.entry((numbers[0], numbers[1])).or_default() += 1;
        })?;
        let counts = of(&filter, "id");
        each(&mut session, &self.database, "count", counts, &["id", "link_type", "count"], |numbers| {
            *difference.entry((numbers[0], numbers[1])).or_default() -= numbers[2];
        })?;
        let wrong = difference.values().filter(|difference| **difference != 0).count() as u64;
        let what = "counts against visible links".to_owned();
        Ok(Some(Finding { what, checked: difference.len() as u64, wrong }))
    }
}
