//! A write of a link in two phases, for servers without transactions: a crash can interrupt it anywhere, and
//! [`recover`] ends it. (The original's plugin writes the states and never reads them; its documents stay for
//! ever.)
//!
//! # A write
//! 1. A document in `transaction` names the link: state `pending`.
//! 2. One command changes the link, and leaves in its array `pending` this transaction and what it does to
//!    the count: 1, 0 or -1. Which it is cannot be known before, so that there are two commands, one for a
//!    link that is visible and one for all others; if another client was faster, the first is tried again.
//! 3. The count is changed ([`MongoStore::add_to_count`]), and has the transaction in its array `pending`,
//!    too.
//! 4. State `committed`.
//! 5. The transaction leaves both arrays; its document is deleted.
//!
//! # After a crash
//! A `pending` one whose link has it gets its count, unless that has it, too. A `committed` one has its
//! count: step 5 may have come in part. Both then go on with steps 4 and 5. One that never reached its link
//! has changed nothing.
//!
//! [`recover`]: MongoStore::recover

use super::documents::{
    BATCH_SIZE, affected, batch, change, count_id, link_ends, link_id, shown_link, upsert,
};
use super::store::{CountChange, MongoStore};
use super::transaction::is_transient;
use crate::error::BenchError;
use crate::workload::linkbench::store::{Found, Link, LinkChange, LinkKey};
use pando_document::{Document, ObjectId, Value, doc};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const COLLECTION: &str = "transaction";
/// How often the two commands of step 2 take turns at most.
const TURNS_MAX: u32 = 1000;
const DUPLICATE_KEY: i64 = 11_000;

pub(super) fn transaction_id(session: &Document) -> ObjectId {
    static TRANSACTIONS: AtomicU32 = AtomicU32::new(0);
    let number = TRANSACTIONS.fetch_add(1, Ordering::Relaxed) & 0x00FF_FFFF;
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let bytes = match session.get("id") {
        Some(Value::Binary(id)) => id.bytes.first_chunk().copied().unwrap_or_default(),
        _ => [0; 5],
    };
    ObjectId::from_parts(u32::try_from(seconds).unwrap_or(u32::MAX), bytes, number)
}

impl MongoStore {
    pub(super) fn add_link_in_two_phases(&mut self, link: &Link) -> Result<LinkChange, BenchError> {
        let id = self.begin_two_phases(link.key)?;
        let shown = self.show(link, id)?;
        if shown != LinkChange::Changed {
            self.add_to_count(link.key, CountChange { change: 1, time: link.time }, Some(id))?;
        }
        self.end_two_phases(link.key, id)?;
        Ok(shown)
    }

    pub(super) fn delete_link_in_two_phases(&mut self, key: LinkKey, time: i64) -> Result<Found, BenchError> {
        let id = self.begin_two_phases(key)?;
        let update = doc! {
            "$set": { "visibility": 0 },
            "$push": { "pending": { "t": id, "d": -1 } },
        };
        let query = doc! { "_id": link_id(key), "visibility": 1 };
        if affected(&self.update("link", change(query, update))?) == 0 {
            self.forget(id)?;
            return Ok(Found::No);
        }
        self.add_to_count(key, CountChange { change: -1, time }, Some(id))?;
        self.end_two_phases(key, id)?;
        Ok(Found::Yes)
    }

    /// Step 1.
    fn begin_two_phases(&mut self, key: LinkKey) -> Result<ObjectId, BenchError> {
        let id = transaction_id(&self.session_id);
        let LinkKey { id1, link_type, id2 } = key;
        let document = doc! { "_id": id, "id1": id1, "link_type": link_type, "id2": id2, "state": "pending" };
        self.insert(COLLECTION, vec![document.into()])?;
        Ok(id)
    }

    /// Step 2 of an add.
    fn show(&mut self, link: &Link, id: ObjectId) -> Result<LinkChange, BenchError> {
        let (set, on_insert, key) = (shown_link(link), link_ends(link.key), link_id(link.key));
        for _ in 0..TURNS_MAX {
            let update = doc! { "$set": set.clone(), "$push": { "pending": { "t": id, "d": 0 } } };
            let visible = doc! { "_id": key.clone(), "visibility": 1 };
            if affected(&self.update("link", change(visible, update))?) == 1 {
                return Ok(LinkChange::Changed);
            }
            let update = doc! {
                "$set": set.clone(),
                "$setOnInsert": on_insert.clone(),
                "$push": { "pending": { "t": id, "d": 1 } },
            };
            let hidden = doc! { "_id": key.clone(), "visibility": 0 };
            match self.write_once(doc! { "update": "link", "updates": [upsert(hidden, update)] }) {
                Ok(reply) => {
                    let is_new = reply.get("upserted").is_some();
                    return Ok(if is_new { LinkChange::Inserted } else { LinkChange::Shown });
                }
                // It is visible now, or another client made it.
                Err(error) if is_transient(&error) => self.retries += 1,
                Err(error) => return Err(error),
            }
        }
        let message = "the link was shown and hidden by others all the time".to_owned();
        Err(BenchError::Refused { command: "update".to_owned(), code: DUPLICATE_KEY, message })
    }

    /// Steps 4 and 5.
    fn end_two_phases(&mut self, key: LinkKey, id: ObjectId) -> Result<(), BenchError> {
        let (of_count, of_link) = (count_id(key.id1, key.link_type), link_id(key));
        let committed = doc! { "$set": { "state": "committed" } };
        self.update(COLLECTION, change(doc! { "_id": id }, committed))?;
        self.update("count", change(doc! { "_id": of_count }, doc! { "$pull": { "pending": id } }))?;
        self.update("link", change(doc! { "_id": of_link }, doc! { "$pull": { "pending": { "t": id } } }))?;
        self.forget(id)
    }

    fn forget(&mut self, id: ObjectId) -> Result<(), BenchError> {
        let deletes = doc! { "q": { "_id": id }, "limit": 1 };
        self.write(doc! { "delete": COLLECTION, "deletes": [deletes] }).map(|_| ())
    }

    /// Ends all that were interrupted; gives how many they were. Nobody may write meanwhile.
    pub fn recover(&mut self) -> Result<u64, BenchError> {
        let mut ended = 0;
        loop {
            let find = doc! { "find": COLLECTION, "batchSize": BATCH_SIZE, "singleBatch": true };
            let reply = self.command(find)?;
            let left = batch(&reply).unwrap_or_default();
            if left.is_empty() {
                return Ok(ended);
            }
            for document in left.iter().filter_map(Value::as_document) {
                self.recover_one(document)?;
                ended += 1;
            }
        }
    }

    fn recover_one(&mut self, document: &Document) -> Result<(), BenchError> {
        let damaged = || BenchError::Refused {
            command: "find".to_owned(),
            code: 0,
            message: "a document of the collection transaction is none of this tool's".to_owned(),
        };
        let number = |name| document.get(name).and_then(Value::as_i64_exact).ok_or_else(damaged);
        let Some(Value::ObjectId(id)) = document.get("_id") else { return Err(damaged()) };
        let key = LinkKey { id1: number("id1")?, link_type: number("link_type")?, id2: number("id2")? };
        let is_pending = document.get("state").and_then(Value::as_str) == Some("pending");
        if is_pending {
            let link = self.find_one("link", doc! { "_id": link_id(key) }, doc! {})?;
            let owed = link.as_ref().and_then(|link| pending_change(link, *id));
            let count_key = doc! { "_id": count_id(key.id1, key.link_type), "pending": *id };
            let is_counted = self.find_one("count", count_key, doc! { "_id": 1 })?.is_some();
            let time = link.as_ref().and_then(|link| link.get("time")?.as_i64_exact()).unwrap_or(0);
            match owed {
                Some(change @ (1 | -1)) if !is_counted => {
                    self.add_to_count(key, CountChange { change, time }, Some(*id))?;
                }
                _ => {}
            }
        }
        self.end_two_phases(key, *id)
    }
}

/// The change of the count that a link's pending transaction stands for.
fn pending_change(link: &Document, id: ObjectId) -> Option<i64> {
    let pending = link.get("pending")?.as_array()?;
    let mut entries = pending.iter().filter_map(Value::as_document);
    let entry =
        entries.find(|entry| matches!(entry.get("t"), Some(Value::ObjectId(found)) if *found == id))?;
    entry.get("d")?.as_i64_exact()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_change_of_a_count_for_a_link_is_known_by_the_transaction() {
        let (ours, other) = (ObjectId::from_parts(1, [1; 5], 1), ObjectId::from_parts(1, [1; 5], 2));
        let link = doc! { "pending": [{ "t": other, "d": 1 }, { "t": ours, "d": -1 }] };
        assert_eq!(pending_change(&link, ours), Some(-1));
        assert_eq!(pending_change(&doc! { "pending": [] }, ours), None);
        assert_eq!(pending_change(&doc! {}, ours), None);
    }

    #[test]
    fn no_two_transactions_have_one_number() {
        let session = doc! {};
        assert_ne!(transaction_id(&session), transaction_id(&session));
    }
}
