//! The documents of the mapping, and what is read out of replies.

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

pub fn link_document(link: &Link) -> Document {
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

/// Numbers of nodes, evenly spread.
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
pub fn batch(reply: &Document) -> Option<&[Value]> {
    let cursor = reply.get("cursor")?.as_document()?;
    cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"))?.as_array()
}
