//! The documents and commands that the stores over MongoDB's protocol share, and the values that they read
//! out of replies.

use crate::client::Session;
use crate::error::BenchError;
use crate::workload::linkbench::store::{Count, Link, LinkKey, Node};
use pando_document::{Binary, Document, Value, doc};

/// LinkBench's only type of nodes.
pub const NODE_TYPE: i32 = 2048;
/// Documents in a batch of a list or a check.
pub const BATCH_SIZE: i32 = 10_000;

pub fn link_id(key: LinkKey) -> Document {
    doc! { "t": key.link_type, "a": key.id1, "b": key.id2 }
}

pub fn count_id(id: i64, link_type: i64) -> Document {
    doc! { "i": id, "t": link_type }
}

pub fn binary(data: &[u8]) -> Binary {
    Binary { subtype: 0, bytes: data.to_vec() }
}

pub fn node_document(node: &Node) -> Document {
    doc! { "_id": node.id, "type": NODE_TYPE, "version": node.version, "time": node.time, "data": binary(&node.data) }
}

/// The index of lists, which has all that a list asks for.
pub fn list_index() -> Document {
    doc! { "id1": 1, "link_type": 1, "visibility": 1, "time": 1, "id2": 1, "version": 1, "data": 1 }
}

pub fn shown_link(link: &Link) -> Document {
    doc! { "visibility": 1, "data": binary(&link.data), "time": link.time, "version": link.version }
}

pub fn link_ends(key: LinkKey) -> Document {
    doc! { "id1": key.id1, "id2": key.id2, "link_type": key.link_type }
}

pub fn link_document(link: &Link) -> Document {
    let mut document = doc! { "_id": link_id(link.key) };
    for part in [link_ends(link.key), shown_link(link)] {
        part.iter().for_each(|(name, value)| document.push(name, value.clone()));
    }
    document
}

/// A change of one document, as the command `update` has it.
pub fn change(query: Document, update: Document) -> Document {
    doc! { "q": query, "u": update }
}

/// The same, with a document made if there is none.
pub fn upsert(query: Document, update: Document) -> Document {
    doc! { "q": query, "u": update, "upsert": true }
}

pub fn open_cursor(reply: &Document) -> Option<i64> {
    let id = reply.get("cursor")?.as_document()?.get("id")?.as_i64_exact()?;
    (id != 0).then_some(id)
}

/// How many documents a reply with a cursor has.
pub fn batch_length(reply: &Document) -> u32 {
    batch(reply).map_or(0, |documents| u32::try_from(documents.len()).unwrap_or(u32::MAX))
}

pub fn count_document(count: &Count) -> Document {
    let Count { id, link_type, count, time } = *count;
    doc! {
        "_id": count_id(id, link_type), "id": id, "link_type": link_type, "count": count, "time": time,
        "version": 0_i64,
    }
}

/// How many documents a write was about.
pub fn affected(reply: &Document) -> i64 {
    reply.get("n").and_then(Value::as_i64_exact).unwrap_or(0)
}

pub fn sample(nodes: u32, id_max: i64) -> Value {
    let step = (id_max / i64::from(nodes)).max(1);
    let ids = (1..=id_max).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    Value::Array(ids.map(Value::Int64).collect())
}

/// Calls for each document of a query with these of its fields, 0 for what is no number.
pub fn each(
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
        let Some(id) = open_cursor(&reply) else { return Ok(()) };
        let more = doc! { "getMore": id, "collection": collection, "batchSize": BATCH_SIZE };
        reply = session.command(database, more)?;
    }
}

pub fn batch(reply: &Document) -> Option<&[Value]> {
    let cursor = reply.get("cursor")?.as_document()?;
    cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"))?.as_array()
}
