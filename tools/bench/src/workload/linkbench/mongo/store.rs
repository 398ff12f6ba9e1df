//! A client's connection: the operations as commands.

use super::documents::{
    BATCH_SIZE, NODE_TYPE, affected, batch, batch_length, binary, change, count_document, count_id,
    link_document, link_ends, link_id, node_document, open_cursor, shown_link, upsert,
};
use super::transaction::Inside;
use crate::client::{Session, session_id};
use crate::error::BenchError;
use crate::workload::linkbench::store::{
    Count, Found, Link, LinkChange, LinkKey, LinkStore, ListQuery, Listed, Node, Transactions,
};
use pando_document::{Document, ObjectId, Value, doc};

pub struct MongoStore {
    pub(super) session: Session,
    pub(super) database: String,
    pub(super) transactions: Transactions,
    pub(super) write_concern: Document,
    pub(super) session_id: Document,
    /// The number of the session's transaction under way, or of the last one.
    pub(super) transaction: i64,
    pub(super) inside: Inside,
    pub(super) retries: u64,
}

#[derive(Clone, Copy)]
pub struct CountChange {
    pub change: i64,
    /// When, in milliseconds since 1970.
    pub time: i64,
}

/// Whether a document is made if there is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Upsert {
    Yes,
    No,
}

impl MongoStore {
    pub fn new(
        session: Session,
        database: &str,
        transactions: Transactions,
        write_concern: Document,
    ) -> MongoStore {
        MongoStore {
            session,
            database: database.to_owned(),
            transactions,
            write_concern,
            session_id: session_id(),
            transaction: 0,
            inside: Inside::Nothing,
            retries: 0,
        }
    }

    pub(super) fn find_one(
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
    pub(super) fn find_and_modify(
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

    pub(super) fn update(&mut self, collection: &str, change: Document) -> Result<Document, BenchError> {
        self.write(doc! { "update": collection, "updates": [change] })
    }

    /// Adds to a count (or takes from it), and leaves the mark of a transaction in two phases if there is
    /// one. A count may fall below 0: without transactions a link may be hidden by one client before another
    /// one has counted that it was shown. The sum is right at the end only if no part of it was left out.
    pub(super) fn add_to_count(
        &mut self,
        key: LinkKey,
        added: CountChange,
        mark: Option<ObjectId>,
    ) -> Result<(), BenchError> {
        let mut update = doc! {
            "$inc": { "count": added.change, "version": 1_i64 },
            "$set": { "time": added.time },
            "$setOnInsert": { "id": key.id1, "link_type": key.link_type },
        };
        if let Some(mark) = mark {
            update.push("$push", doc! { "pending": mark });
        }
        let query = doc! { "_id": count_id(key.id1, key.link_type) };
        self.update("count", upsert(query, update)).map(drop)
    }

    pub(super) fn list_filter(query: ListQuery) -> Document {
        let time = doc! { "$gte": 0_i64, "$lte": query.time_to };
        doc! { "id1": query.id1, "link_type": query.link_type, "visibility": 1, "time": time }
    }

    /// Reads a list to its end; `find` has its filter.
    pub(super) fn list(&mut self, mut find: Document, query: ListQuery) -> Result<Listed, BenchError> {
        let as_int32 = |number| i32::try_from(number).unwrap_or(i32::MAX);
        find.push("sort", doc! { "time": -1 });
        find.push("limit", as_int32(query.limit));
        find.push("batchSize", as_int32(query.limit));
        if query.offset > 0 {
            find.push("skip", as_int32(query.offset));
        }
        let mut reply = self.command(find)?;
        let mut listed = Listed { links: 0, last_time: None };
        loop {
            let links = batch(&reply).unwrap_or_default();
            listed.links += batch_length(&reply);
            let last = links.last().and_then(|link| link.as_document()?.get("time")?.as_i64_exact());
            listed.last_time = last.or(listed.last_time);
            // A long list may not fit into one reply.
            let Some(id) = open_cursor(&reply) else { return Ok(listed) };
            reply = self.command(doc! { "getMore": id, "collection": "link" })?;
        }
    }

    pub(super) fn insert(&mut self, collection: &str, documents: Vec<Value>) -> Result<(), BenchError> {
        let expected = documents.len() as i64;
        let reply = self.write(doc! { "insert": collection, "ordered": false, "documents": documents })?;
        if affected(&reply) == expected {
            return Ok(());
        }
        let message = format!("{} of {expected} documents inserted", affected(&reply));
        Err(BenchError::Refused { command: "insert".to_owned(), code: 0, message })
    }
}

impl LinkStore for MongoStore {
    fn add_link(&mut self, link: &Link) -> Result<LinkChange, BenchError> {
        if self.transactions == Transactions::TwoPhase {
            return self.add_link_in_two_phases(link);
        }
        self.atomically(|store| {
            let update = doc! { "$set": shown_link(link), "$setOnInsert": link_ends(link.key) };
            let change =
                match store.find_and_modify(doc! { "_id": link_id(link.key) }, update, Upsert::Yes)? {
                    None => LinkChange::Inserted,
                    Some(0) => LinkChange::Shown,
                    Some(_) => return Ok(LinkChange::Changed),
                };
            store.add_to_count(link.key, CountChange { change: 1, time: link.time }, None)?;
            Ok(change)
        })
    }

    fn delete_link(&mut self, key: LinkKey, time: i64) -> Result<Found, BenchError> {
        if self.transactions == Transactions::TwoPhase {
            return self.delete_link_in_two_phases(key, time);
        }
        self.atomically(|store| {
            let query = doc! { "_id": link_id(key), "visibility": 1 };
            let update = doc! { "$set": { "visibility": 0 } };
            if store.find_and_modify(query, update, Upsert::No)?.is_none() {
                return Ok(Found::No);
            }
            store.add_to_count(key, CountChange { change: -1, time }, None)?;
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
        Ok(batch_length(&reply))
    }

    fn list_links(&mut self, query: ListQuery) -> Result<Listed, BenchError> {
        let projection = doc! {
            "_id": 0, "id1": 1, "link_type": 1, "id2": 1, "visibility": 1, "time": 1, "version": 1, "data": 1,
        };
        let filter = MongoStore::list_filter(query);
        self.list(doc! { "find": "link", "filter": filter, "projection": projection }, query)
    }

    fn add_node(&mut self, node: &Node) -> Result<(), BenchError> {
        self.insert("node", vec![node_document(node).into()])
    }

    fn update_node(&mut self, node: &Node) -> Result<Found, BenchError> {
        let set = doc! { "version": node.version, "time": node.time, "data": binary(&node.data) };
        let query = doc! { "_id": node.id, "type": NODE_TYPE };
        let reply = self.update("node", change(query, doc! { "$set": set }))?;
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
        self.insert("count", counts.iter().map(|count| count_document(count).into()).collect())
    }

    fn take_retries(&mut self) -> u64 {
        std::mem::take(&mut self.retries)
    }
}
