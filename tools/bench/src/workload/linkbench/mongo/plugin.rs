//! The store as the original's plugin for MongoDB does it: `--faithful`. It sends what the plugin sends, its
//! mistakes included, so that its figures can be set beside the plugin's; the check at the end counts what
//! they did to the counts. Here without transactions, with the plugin's two levels of them in [`levels`].
//!
//! | operation | commands |
//! |---|---|
//! | a link is added or changed | upsert of the link; its count is *replaced* by a document without a count, then `$inc` of the version only; a link that was there: its data |
//! | a link is hidden | read; if it is visible: hidden, the same two on its count, a repair of negative counts, a read of the count |
//! | links by their ends | `count`, then `find` |
//! | a list | `count`, then `find` without a projection, so that no index covers it |
//! | bulk loads | unordered upserts of links, replacements of counts |
//!
//! Links and counts have ObjectIds and unique indexes, which the default mapping does not need. Nothing is
//! tried again.

mod levels;

pub use levels::Level;

use super::documents::{BATCH_SIZE, affected, batch_length, binary, change, list_index, upsert};
use super::store::MongoStore;
use crate::error::BenchError;
use crate::workload::linkbench::store::{
    Count, Found, Link, LinkChange, LinkKey, LinkStore, ListQuery, Listed, Node,
};
use pando_document::{Document, ObjectId, Value, doc};

/// Makes the plugin's indexes; the collections are there and empty.
pub fn index_commands() -> [Document; 3] {
    let index = |collection: &str, key: Document, name: &str, unique: bool| {
        doc! { "createIndexes": collection, "indexes": [{ "key": key, "name": name, "unique": unique }] }
    };
    [
        index("link", doc! { "link_type": 1, "id1": 1, "id2": 1 }, "link_key", true),
        index("link", list_index(), "id1_type", false),
        index("count", doc! { "id": 1, "link_type": 1 }, "count_key", true),
    ]
}

pub struct PluginStore {
    plain: MongoStore,
    level: Level,
    /// The simulated transaction under way.
    marks: Option<ObjectId>,
}

fn link_key(key: LinkKey) -> Document {
    doc! { "link_type": key.link_type, "id1": key.id1, "id2": key.id2 }
}

fn count_key(id: i64, link_type: i64) -> Document {
    doc! { "id": id, "link_type": link_type }
}

/// All that a link has but its visibility.
fn content(link: &Link) -> Document {
    doc! { "data": binary(&link.data), "time": link.time, "version": link.version }
}

impl PluginStore {
    pub fn new(plain: MongoStore, level: Level) -> PluginStore {
        PluginStore { plain, level, marks: None }
    }

    fn update(&mut self, collection: &str, updates: Vec<Document>) -> Result<Document, BenchError> {
        let updates: Vec<Value> = updates.into_iter().map(Value::from).collect();
        self.plain.write_once(doc! { "update": collection, "updates": updates, "ordered": false })
    }

    /// Whether each was there is not asked by the plugin either.
    fn upsert_link(&mut self, link: &Link) -> Result<LinkChange, BenchError> {
        let reply = self.update("link", vec![upsert_of(link)])?;
        let is_new = reply.get("upserted").and_then(Value::as_array).is_some_and(|new| !new.is_empty());
        // A link that was there counts as hidden, whatever it was.
        Ok(if is_new { LinkChange::Inserted } else { LinkChange::Shown })
    }

    /// The count loses its number by the first, and does not get it back by the second.
    fn change_count(&mut self, key: LinkKey, time: i64) -> Result<(), BenchError> {
        let id = self.unmarked(count_key(key.id1, key.link_type));
        let replacement = doc! { "id": key.id1, "link_type": key.link_type, "time": time };
        self.update("count", vec![upsert(id.clone(), replacement)])?;
        let next_version = self.marking(doc! { "$inc": { "version": 1_i64 } });
        self.update("count", vec![change(id, next_version)]).map(drop)
    }

    fn number_of(&mut self, filter: Document, skip: u32, limit: u32) -> Result<i64, BenchError> {
        let mut count = doc! { "count": "link", "query": filter };
        if skip > 0 {
            count.push("skip", i64::from(skip));
        }
        if limit > 0 {
            count.push("limit", i64::from(limit));
        }
        Ok(affected(&self.plain.command(count)?))
    }
}

/// An upsert of a link: what is there is made visible.
fn upsert_of(link: &Link) -> Document {
    let mut on_insert = link_key(link.key);
    content(link).iter().for_each(|(name, value)| on_insert.push(name, value.clone()));
    let update = doc! { "$setOnInsert": on_insert, "$set": { "visibility": 1 } };
    upsert(link_key(link.key), update)
}

impl LinkStore for PluginStore {
    fn add_link(&mut self, link: &Link) -> Result<LinkChange, BenchError> {
        // Before the transaction begins.
        let became = self.upsert_link(link)?;
        self.in_transaction(Some(link.key), |store| {
            store.change_count(link.key, link.time)?;
            if became == LinkChange::Shown {
                let mut set = content(link);
                set.push("visibility", 1);
                let (query, update) =
                    (store.unmarked(link_key(link.key)), store.marking(doc! { "$set": set }));
                store.update("link", vec![change(query, update)])?;
            }
            Ok(became)
        })
    }

    fn delete_link(&mut self, key: LinkKey, time: i64) -> Result<Found, BenchError> {
        let link = self.plain.find_one("link", link_key(key), doc! {})?;
        let visibility = link.and_then(|link| link.get("visibility")?.as_i64_exact());
        if visibility != Some(1) {
            return Ok(Found::No);
        }
        self.in_transaction(Some(key), |store| {
            let (query, hide) =
                (store.never_marked(key), store.marking(doc! { "$set": { "visibility": 0 } }));
            store.update("link", vec![change(query, hide)])?;
            store.change_count(key, time)?;
            let mut negative = count_key(key.id1, key.link_type);
            negative.push("count", doc! { "$lt": 0_i64 });
            store.update("count", vec![change(negative, doc! { "$set": { "count": 0_i64 } })])?;
            store.plain.find_one("count", count_key(key.id1, key.link_type), doc! {})?;
            Ok(Found::Yes)
        })
    }

    fn count_links(&mut self, id1: i64, link_type: i64) -> Result<i64, BenchError> {
        let count = self.in_transaction(None, |store| {
            store.plain.find_one("count", count_key(id1, link_type), doc! {})
        })?;
        Ok(count.and_then(|count| count.get("count")?.as_i64_exact()).unwrap_or(0))
    }

    fn get_links(&mut self, id1: i64, link_type: i64, id2s: &[i64]) -> Result<u32, BenchError> {
        let ids: Vec<Value> = id2s.iter().map(|id| Value::Int64(*id)).collect();
        let filter = doc! { "id1": id1, "link_type": link_type, "id2": { "$in": ids } };
        self.in_transaction(None, |store| {
            if store.number_of(filter.clone(), 0, 0)? == 0 {
                return Ok(0);
            }
            let find = doc! { "find": "link", "filter": filter, "batchSize": BATCH_SIZE };
            let reply = store.plain.command(find)?;
            Ok(batch_length(&reply))
        })
    }

    fn list_links(&mut self, query: ListQuery) -> Result<Listed, BenchError> {
        let filter = MongoStore::list_filter(query);
        self.in_transaction(None, |store| {
            if store.number_of(filter.clone(), query.offset, query.limit)? == 0 {
                return Ok(Listed { links: 0, last_time: None });
            }
            store.plain.list(doc! { "find": "link", "filter": filter }, query)
        })
    }

    fn add_node(&mut self, node: &Node) -> Result<(), BenchError> {
        self.in_transaction(None, |store| store.plain.add_node(node))
    }

    fn update_node(&mut self, node: &Node) -> Result<Found, BenchError> {
        self.in_transaction(None, |store| store.plain.update_node(node))
    }

    fn delete_node(&mut self, id: i64) -> Result<Found, BenchError> {
        self.in_transaction(None, |store| store.plain.delete_node(id))
    }

    fn get_node(&mut self, id: i64) -> Result<Found, BenchError> {
        self.in_transaction(None, |store| store.plain.get_node(id))
    }

    fn load_nodes(&mut self, nodes: &[Node]) -> Result<(), BenchError> {
        self.plain.load_nodes(nodes)
    }

    fn load_links(&mut self, links: &[Link]) -> Result<(), BenchError> {
        self.update("link", links.iter().map(upsert_of).collect()).map(drop)
    }

    fn load_counts(&mut self, counts: &[Count]) -> Result<(), BenchError> {
        let replace = |count: &Count| {
            let mut whole = count_key(count.id, count.link_type);
            whole.push("count", count.count);
            whole.push("time", count.time);
            whole.push("version", 0_i64);
            upsert(count_key(count.id, count.link_type), whole)
        };
        self.update("count", counts.iter().map(replace).collect()).map(drop)
    }

    fn take_retries(&mut self) -> u64 {
        self.plain.take_retries()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Address;
    use crate::client::{EmbeddedStore, Record, Session};
    use crate::workload::linkbench::store::Transactions;
    use pando_wire::{Body, Message};
    use std::sync::Arc;

    const KEY: LinkKey = LinkKey { id1: 1, link_type: 2, id2: 3 };

    /// The commands' names and collections that an operation sends, if everything is answered with this.
    fn sent<T>(
        reply: Document,
        operation: impl Fn(&mut PluginStore) -> Result<T, BenchError>,
    ) -> Vec<String> {
        sent_at(Level::None, reply, operation)
    }

    fn sent_at<T>(
        level: Level,
        reply: Document,
        operation: impl Fn(&mut PluginStore) -> Result<T, BenchError>,
    ) -> Vec<String> {
        let record = Record::default();
        let store = Arc::new(EmbeddedStore::recording(&reply, record.clone()));
        let session = Session::open(Address::embedded(store)).expect("it answers");
        let plain = MongoStore::new(session, "d", Transactions::None, doc! { "w": 1 });
        record.lock().expect("one thread").clear();
        operation(&mut PluginStore::new(plain, level)).expect("answered");
        let frames = record.lock().expect("one thread").clone();
        let name = |frame: &Vec<u8>| {
            let Body::Msg(message) = Message::decode(frame).expect("a message").body else {
                panic!("OP_MSG")
            };
            let body = pando_document::RawDocument::from_bytes(message.body()).expect("a document");
            let body = Document::from_raw(body).expect("whole");
            let (name, value) = body.iter().next().expect("a command");
            format!("{name} {}", value.as_str().unwrap_or_default())
        };
        frames.iter().map(name).collect()
    }

    fn link() -> Link {
        Link { key: KEY, time: 9, version: 0, data: vec![1] }
    }

    fn visible() -> Document {
        let link = doc! { "visibility": 1, "time": 5_i64 };
        doc! { "cursor": { "firstBatch": [link], "id": 0_i64, "ns": "d.link" }, "n": 1, "ok": 1.0 }
    }

    #[test]
    fn operations_send_as_many_commands_as_the_plugins() {
        let new = doc! { "n": 1, "upserted": [{ "index": 0 }], "ok": 1.0 };
        let add = |store: &mut PluginStore| store.add_link(&link());
        assert_eq!(sent(new, add), ["update link", "update count", "update count"]);
        let changed = sent(visible(), add);
        assert_eq!(changed, ["update link", "update count", "update count", "update link"]);
        let deleted = sent(visible(), |store| store.delete_link(KEY, 9));
        let expected =
            ["find link", "update link", "update count", "update count", "update count", "find count"];
        assert_eq!(deleted, expected);
        let multiget = sent(visible(), |store| store.get_links(1, 2, &[3, 4]));
        assert_eq!(multiget, ["count link", "find link"]);
        let query = ListQuery { id1: 1, link_type: 2, time_to: 9, offset: 0, limit: 10 };
        let list = sent(visible(), |store| store.list_links(query));
        assert_eq!(list, ["count link", "find link"]);
    }

    #[test]
    fn the_plugins_two_levels_send_so_many_commands_more() {
        let there = || doc! { "n": 1, "ok": 1.0 };
        let link = Link { key: KEY, data: Vec::new(), time: 5, version: 0 };
        let plain = sent(there(), |store| store.add_link(&link));
        let simulated = sent_at(Level::Simulated, there(), |store| store.add_link(&link));
        assert_eq!(simulated.len(), plain.len() + 7, "{simulated:?}");
        assert_eq!(simulated[0], "update link", "the link is changed before the transaction begins");
        assert_eq!(simulated.iter().filter(|sent| sent.contains("transaction")).count(), 5);
        let mvcc = sent_at(Level::Mvcc, there(), |store| store.add_link(&link));
        assert_eq!(mvcc.len(), plain.len() + 2, "{mvcc:?}");
        assert!(
            mvcc[1].starts_with("beginTransaction")
                && mvcc.last().is_some_and(|last| last.starts_with("commit"))
        );
        let read = sent_at(Level::Mvcc, there(), |store| store.get_node(1));
        assert_eq!(read.len(), 3, "reads are wrapped, too: {read:?}");
        assert_eq!(sent_at(Level::Simulated, there(), |store| store.get_node(1)).len(), 1);
    }
}
