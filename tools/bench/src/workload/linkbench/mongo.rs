//! The store over MongoDB's protocol.
//!
//! # Mapping
//! Collections `node`, `link`, `count`. A link's `_id` is `{t, a, b}` (type, from, to), a count's `{i, t}`, a node's its
//! number: one index fewer than the original's plugin, and no way to have a link twice. The index of lists covers them, since
//! they ask for its fields only.
//!
//! # A write of a link
//! 1. One `findAndModify` with upsert changes the link and gives what was there: so exactly one client sees each change from
//!    hidden (or absent) to visible, and from visible to hidden.
//! 2. Who saw such a change adds it to the count, by `$inc` with upsert.
//!
//! Without transactions the two are apart for a moment, and a crash between them leaves a wrong count; when nothing is under
//! way, counts are right. With [`Transactions::Session`] they are one transaction.
//!
//! The plugin of the original loses counts by replacing their documents, begins its transaction after the first write, and
//! asks for a `count` before each list: none of this is done here.
//!
//! # Once more
//! A write conflict, a lock timeout, or a duplicate key between two upserts of the same link is tried again, and counted.

use super::store::{
    CheckExtent, Contents, Count, Found, Link, LinkChange, LinkDatabase, LinkKey, LinkStore, ListQuery,
    Listed, Node,
};
use crate::client::Session;
use crate::error::BenchError;
use crate::random::split_mix;
use crate::target::Target;
use crate::workload::Finding;
use crate::workload::load::{Durability, count, drop_collection};
use pando_document::{Binary, Document, Value, doc};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// LinkBench's only type of nodes.
const NODE_TYPE: i32 = 2048;
/// Codes after which the same may work: LockTimeout, WriteConflict, NoSuchTransaction (it was aborted), DuplicateKey.
const TRANSIENT: [i64; 4] = [24, 112, 251, 11_000];
/// How often a write is tried at most.
const ATTEMPTS_MAX: u32 = 1000;
/// Documents in a batch of a list or a check.
const BATCH_SIZE: i32 = 10_000;

/// What makes a link and its count change together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transactions {
    /// Nothing.
    None,
    /// A transaction of a session.
    Session,
}

/// A MongoDB-protocol server as LinkBench's database.
#[derive(Debug)]
pub struct MongoDatabase {
    target: Target,
    database: String,
    transactions: Transactions,
    durability: Durability,
}

impl MongoDatabase {
    /// The server's database of this name.
    pub fn new(
        target: &Target,
        database: &str,
        transactions: Transactions,
        durability: Durability,
    ) -> MongoDatabase {
        MongoDatabase { target: target.clone(), database: database.to_owned(), transactions, durability }
    }

    fn session(&self) -> Result<Session, BenchError> {
        Session::open(self.target.address())
    }

    fn connect(&self) -> Result<MongoStore, BenchError> {
        let id = session_id();
        Ok(MongoStore {
            session: self.session()?,
            database: self.database.clone(),
            transactions: self.transactions,
            write_concern: self.durability.write_concern(),
            session_id: doc! { "id": Binary { subtype: 4, bytes: id } },
            transaction: 0,
            statement: 0,
            retries: 0,
        })
    }
}

impl LinkDatabase for MongoDatabase {
    fn check_ability(&self) -> Result<(), BenchError> {
        if self.transactions == Transactions::None {
            return Ok(());
        }
        let mut store = self.connect()?;
        let read =
            store.in_transaction(|store| store.find_one("node", doc! { "_id": 0_i64 }, doc! {}).map(|_| ()));
        read.map_err(|error| BenchError::Option {
            option: "txn",
            cause: format!("the server does not do transactions of a session, run it as a replica set, or use none: {error}"),
        })
    }

    fn recreate(&self) -> Result<(), BenchError> {
        let mut session = self.session()?;
        for collection in ["node", "link", "count"] {
            drop_collection(&mut session, &self.database, collection)?;
            session.command(&self.database, doc! { "create": collection })?;
        }
        let key =
            doc! { "id1": 1, "link_type": 1, "visibility": 1, "time": 1, "id2": 1, "version": 1, "data": 1 };
        let index = doc! { "createIndexes": "link", "indexes": [{ "key": key, "name": "id1_type" }] };
        session.command(&self.database, index).map(|_| ())
    }

    fn contents(&self) -> Result<Contents, BenchError> {
        let mut session = self.session()?;
        Ok(Contents {
            nodes: count(&mut session, &self.database, "node")?,
            links: count(&mut session, &self.database, "link")?,
        })
    }

    fn highest_node(&self) -> Result<i64, BenchError> {
        let find = doc! { "find": "node", "sort": { "_id": -1 }, "limit": 1, "projection": { "_id": 1 }, "singleBatch": true };
        let reply = self.session()?.command(&self.database, find)?;
        let first = batch(&reply).and_then(<[Value]>::first).and_then(|node| node.as_document()?.get("_id"));
        Ok(first.and_then(Value::as_i64_exact).unwrap_or(0))
    }

    fn open(&self) -> Result<Box<dyn LinkStore>, BenchError> {
        Ok(Box::new(self.connect()?))
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

/// An id that no session had before, of this or another process: a server remembers the transactions of a session.
fn session_id() -> Vec<u8> {
    static SESSIONS: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
    let process = u64::from(std::process::id()) << 32;
    let mut id = split_mix(now as u64 ^ process).to_be_bytes().to_vec();
    id.extend_from_slice(&split_mix(process | number).to_be_bytes());
    // The bits that say: a UUID of random bits.
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    id
}

/// Numbers of nodes, evenly spread.
fn sample(nodes: u32, id_max: i64) -> Value {
    let step = (id_max / i64::from(nodes)).max(1);
    let ids = (1..=id_max).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    Value::Array(ids.map(Value::Int64).collect())
}

/// Calls for each document of a query with these of its fields, 0 for what is no number.
fn each(
    session: &mut Session,
    database: &str,
    collection: &str,
    filter: Document,
    fields: &[&str],
    mut with: impl FnMut(&[i64]),
) -> Result<(), BenchError> {
    let mut projection = doc! { "_id": 0 };
    fields.iter().for_each(|field| projection.push(*field, 1));
    let find =
        doc! { "find": collection, "filter": filter, "projection": projection, "batchSize": BATCH_SIZE };
    let mut reply = session.command(database, find)?;
    loop {
        for document in batch(&reply).unwrap_or_default().iter().filter_map(Value::as_document) {
            let number = |field: &&str| document.get(field).and_then(Value::as_i64_exact).unwrap_or(0);
            with(&fields.iter().map(number).collect::<Vec<_>>());
        }
        let id = reply.get("cursor").and_then(|cursor| cursor.as_document()?.get("id")?.as_i64_exact());
        match id {
            None | Some(0) => return Ok(()),
            Some(id) => {
                let more = doc! { "getMore": id, "collection": collection, "batchSize": BATCH_SIZE };
                reply = session.command(database, more)?;
            }
        }
    }
}

/// The documents of a reply with a cursor.
fn batch(reply: &Document) -> Option<&[Value]> {
    let cursor = reply.get("cursor")?.as_document()?;
    cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"))?.as_array()
}

/// A connection.
struct MongoStore {
    session: Session,
    database: String,
    transactions: Transactions,
    write_concern: Document,
    session_id: Document,
    /// The number of the transaction under way, or of the last one.
    transaction: i64,
    /// Statements in it so far; 0 outside.
    statement: u32,
    retries: u64,
}

impl MongoStore {
    /// A command, which inside a transaction says so.
    fn command(&mut self, mut command: Document) -> Result<Document, BenchError> {
        if self.statement > 0 {
            command.push("lsid", self.session_id.clone());
            command.push("txnNumber", self.transaction);
            command.push("autocommit", false);
            if self.statement == 1 {
                command.push("startTransaction", true);
            }
            self.statement += 1;
        }
        self.session.command(&self.database, command)
    }

    /// A command that writes. Outside a transaction it is tried again by itself: a link that was changed already must not be
    /// looked at as if it had not been, only because its count was not free.
    fn write(&mut self, mut command: Document) -> Result<Document, BenchError> {
        if self.statement > 0 {
            // The commit has the write concern.
            return self.command(command);
        }
        command.push("writeConcern", self.write_concern.clone());
        self.while_transient(|store| store.command(command.clone()))
    }

    /// Does something that keeps a link and its count together.
    fn atomically<T>(
        &mut self,
        work: impl Fn(&mut MongoStore) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        match self.transactions {
            Transactions::None => work(self),
            Transactions::Session => self.while_transient(|store| store.in_transaction(&work)),
        }
    }

    /// Again and again while the server says that it may work now.
    fn while_transient<T>(
        &mut self,
        work: impl Fn(&mut MongoStore) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        for _ in 1..ATTEMPTS_MAX {
            match work(self) {
                Err(BenchError::Refused { code, .. }) if TRANSIENT.contains(&code) => self.retries += 1,
                outcome => return outcome,
            }
        }
        work(self)
    }

    /// One attempt of a transaction.
    fn in_transaction<T>(
        &mut self,
        work: impl Fn(&mut MongoStore) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        self.transaction += 1;
        self.statement = 1;
        let outcome = work(self);
        let any_sent = std::mem::replace(&mut self.statement, 0) > 1;
        if !any_sent {
            return outcome;
        }
        match outcome {
            Ok(value) => self.end_transaction("commitTransaction").map(|()| value),
            Err(error) => {
                // The server ends a transaction that failed by itself; that it is gone then is no second failure.
                if let Err(lost @ (BenchError::Connection(_) | BenchError::Closed)) =
                    self.end_transaction("abortTransaction")
                {
                    return Err(lost);
                }
                Err(error)
            }
        }
    }

    fn end_transaction(&mut self, how: &str) -> Result<(), BenchError> {
        let mut command = doc! { (how.to_owned()): 1 };
        command.push("lsid", self.session_id.clone());
        command.push("txnNumber", self.transaction);
        command.push("autocommit", false);
        command.push("writeConcern", self.write_concern.clone());
        self.session.command("admin", command).map(|_| ())
    }

    fn find_one(
        &mut self,
        collection: &str,
        filter: Document,
        projection: Document,
    ) -> Result<Option<Document>, BenchError> {
        let mut find = doc! { "find": collection, "filter": filter, "limit": 1, "singleBatch": true };
        if !projection.is_empty() {
            find.push("projection", projection);
        }
        let reply = self.command(find)?;
        Ok(batch(&reply).and_then(<[Value]>::first).and_then(Value::as_document).cloned())
    }

    /// The link's visibility before, if it was there.
    fn find_and_modify(
        &mut self,
        query: Document,
        update: Document,
        upsert: Upsert,
    ) -> Result<Option<i64>, BenchError> {
        let command = doc! {
            "findAndModify": "link",
            "query": query,
            "update": update,
            "upsert": upsert == Upsert::Yes,
            "fields": { "visibility": 1, "_id": 0 },
        };
        let reply = self.write(command)?;
        let before = reply.get("value").and_then(Value::as_document);
        Ok(before.map(|before| before.get("visibility").and_then(Value::as_i64_exact).unwrap_or(0)))
    }

    /// Adds to a count (or takes from it), at this time. It is not kept from falling below 0: without transactions a link may
    /// be hidden before who showed it has counted it, and a sum is right at the end only if no part of it was left out.
    fn add_to_count(&mut self, key: LinkKey, change: i64, time: i64) -> Result<(), BenchError> {
        let update = doc! {
            "$inc": { "count": change, "version": 1_i64 },
            "$set": { "time": time },
            "$setOnInsert": { "id": key.id1, "link_type": key.link_type },
        };
        let updates = doc! { "q": { "_id": count_id(key.id1, key.link_type) }, "u": update, "upsert": true };
        self.write(doc! { "update": "count", "updates": [updates] }).map(|_| ())
    }

    fn insert(&mut self, collection: &str, documents: Vec<Value>) -> Result<(), BenchError> {
        let expected = documents.len() as i64;
        let reply = self.write(doc! { "insert": collection, "ordered": false, "documents": documents })?;
        if affected(&reply) == expected {
            return Ok(());
        }
        let message = format!("{} of {expected} documents inserted", affected(&reply));
        Err(BenchError::Refused { command: "insert".to_owned(), code: 0, message })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Upsert {
    Yes,
    No,
}

fn link_id(key: LinkKey) -> Document {
    doc! { "t": key.link_type, "a": key.id1, "b": key.id2 }
}

fn count_id(id: i64, link_type: i64) -> Document {
    doc! { "i": id, "t": link_type }
}

fn binary(data: &[u8]) -> Binary {
    Binary { subtype: 0, bytes: data.to_vec() }
}

fn node_document(node: &Node) -> Document {
    doc! { "_id": node.id, "type": NODE_TYPE, "version": node.version, "time": node.time, "data": binary(&node.data) }
}

fn link_document(link: &Link) -> Document {
    let LinkKey { id1, link_type, id2 } = link.key;
    doc! {
        "_id": link_id(link.key),
        "id1": id1,
        "id2": id2,
        "link_type": link_type,
        "visibility": 1,
        "data": binary(&link.data),
        "time": link.time,
        "version": link.version,
    }
}

fn affected(reply: &Document) -> i64 {
    reply.get("n").and_then(Value::as_i64_exact).unwrap_or(0)
}

impl LinkStore for MongoStore {
    fn add_link(&mut self, link: &Link) -> Result<LinkChange, BenchError> {
        let LinkKey { id1, link_type, id2 } = link.key;
        self.atomically(|store| {
            let update = doc! {
                "$set": { "visibility": 1, "data": binary(&link.data), "time": link.time, "version": link.version },
                "$setOnInsert": { "id1": id1, "id2": id2, "link_type": link_type },
            };
            let change = match store.find_and_modify(doc! { "_id": link_id(link.key) }, update, Upsert::Yes)? {
                None => LinkChange::Inserted,
                Some(0) => LinkChange::Shown,
                Some(_) => return Ok(LinkChange::Changed),
            };
            store.add_to_count(link.key, 1, link.time)?;
            Ok(change)
        })
    }

    fn delete_link(&mut self, key: LinkKey, time: i64) -> Result<Found, BenchError> {
        self.atomically(|store| {
            let query = doc! { "_id": link_id(key), "visibility": 1 };
            let update = doc! { "$set": { "visibility": 0 } };
            if store.find_and_modify(query, update, Upsert::No)?.is_none() {
                return Ok(Found::No);
            }
            store.add_to_count(key, -1, time)?;
            Ok(Found::Yes)
        })
    }

    fn count_links(&mut self, id1: i64, link_type: i64) -> Result<i64, BenchError> {
        let count =
            self.find_one("count", doc! { "_id": count_id(id1, link_type) }, doc! { "count": 1, "_id": 0 })?;
        Ok(count.and_then(|count| count.get("count")?.as_i64_exact()).unwrap_or(0))
    }

    fn get_links(&mut self, id1: i64, link_type: i64, id2s: &[i64]) -> Result<u32, BenchError> {
        let ids: Vec<Value> =
            id2s.iter().map(|id2| link_id(LinkKey { id1, link_type, id2: *id2 }).into()).collect();
        let find = doc! { "find": "link", "filter": { "_id": { "$in": ids } }, "batchSize": BATCH_SIZE };
        let reply = self.command(find)?;
        Ok(batch(&reply).map_or(0, |links| u32::try_from(links.len()).unwrap_or(u32::MAX)))
    }

    fn list_links(&mut self, query: ListQuery) -> Result<Listed, BenchError> {
        let ListQuery { id1, link_type, time_to, offset, limit } = query;
        let as_int32 = |number| i32::try_from(number).unwrap_or(i32::MAX);
        let time = doc! { "$gte": 0_i64, "$lte": time_to };
        let mut find = doc! {
            "find": "link",
            "filter": { "id1": id1, "link_type": link_type, "visibility": 1, "time": time },
            "projection": { "_id": 0, "id1": 1, "link_type": 1, "id2": 1, "visibility": 1, "time": 1, "version": 1, "data": 1 },
            "sort": { "time": -1 },
            "limit": as_int32(limit),
            "batchSize": as_int32(limit),
        };
        if offset > 0 {
            find.push("skip", as_int32(offset));
        }
        let mut reply = self.command(find)?;
        let mut listed = Listed { links: 0, last_time: None };
        loop {
            let links = batch(&reply).unwrap_or_default();
            listed.links += u32::try_from(links.len()).unwrap_or(u32::MAX);
            let last = links.last().and_then(|link| link.as_document()?.get("time")?.as_i64_exact());
            listed.last_time = last.or(listed.last_time);
            // A long list may not fit into one reply.
            let id = reply.get("cursor").and_then(|cursor| cursor.as_document()?.get("id")?.as_i64_exact());
            match id {
                None | Some(0) => return Ok(listed),
                Some(id) => reply = self.command(doc! { "getMore": id, "collection": "link" })?,
            }
        }
    }

    fn add_node(&mut self, node: &Node) -> Result<(), BenchError> {
        self.insert("node", vec![node_document(node).into()])
    }

    fn update_node(&mut self, node: &Node) -> Result<Found, BenchError> {
        let set = doc! { "version": node.version, "time": node.time, "data": binary(&node.data) };
        let update = doc! { "q": { "_id": node.id, "type": NODE_TYPE }, "u": { "$set": set } };
        let reply = self.write(doc! { "update": "node", "updates": [update] })?;
        Ok(Found::of(affected(&reply)))
    }

    fn delete_node(&mut self, id: i64) -> Result<Found, BenchError> {
        let delete = doc! { "q": { "_id": id, "type": NODE_TYPE }, "limit": 1 };
        let reply = self.write(doc! { "delete": "node", "deletes": [delete] })?;
        Ok(Found::of(affected(&reply)))
    }

    fn get_node(&mut self, id: i64) -> Result<Found, BenchError> {
        let node = self.find_one("node", doc! { "_id": id }, doc! {})?;
        let node_type = node.as_ref().and_then(|node| node.get("type")?.as_i64_exact());
        Ok(if node_type == Some(i64::from(NODE_TYPE)) { Found::Yes } else { Found::No })
    }

    fn load_nodes(&mut self, nodes: &[Node]) -> Result<(), BenchError> {
        self.insert("node", nodes.iter().map(|node| node_document(node).into()).collect())
    }

    fn load_links(&mut self, links: &[Link]) -> Result<(), BenchError> {
        self.insert("link", links.iter().map(|link| link_document(link).into()).collect())
    }

    fn load_counts(&mut self, counts: &[Count]) -> Result<(), BenchError> {
        let document = |count: &Count| {
            let Count { id, link_type, count, time } = *count;
            doc! {
                "_id": count_id(id, link_type), "id": id, "link_type": link_type, "count": count, "time": time,
                "version": 0_i64,
            }
        };
        self.insert("count", counts.iter().map(|count| document(count).into()).collect())
    }

    fn take_retries(&mut self) -> u64 {
        std::mem::take(&mut self.retries)
    }
}
