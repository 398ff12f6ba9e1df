//! The load of the sysbench collections, in order of `_id`.
//!
//! Each collection is loaded by one connection from start to end; a free connection takes the next
//! collection. So at most as many connections work as there are collections, and the tail has fewer. Unlike
//! the original, the last batch of a collection may be short: no document is dropped because the batch does
//! not divide their number.

use super::documents::{DOCUMENT_BYTES, DataSet, Documents};
use crate::client::{Clients, Script, Session};
use crate::error::BenchError;
use crate::target::Target;
use crate::workload::insert::{Batch, BatchSource, Inserter, OnFailure};
use crate::workload::load::{
    Durability, IndexBuild, Loading, TimedStep, check_count, count, drop_collection,
};
use pando_document::{Value, doc};
use pando_measuring::random::Generator;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How to load.
#[derive(Clone, Debug)]
pub struct Load {
    /// The data.
    pub data: DataSet,
    /// The generator of the documents.
    pub generator: Generator,
    /// The seed of the draws.
    pub seed: u64,
    /// How many connections load at once.
    pub connections: u32,
    /// Documents per insert.
    pub batch: u32,
    /// When the index on `k` is created.
    pub index: IndexBuild,
    /// When the server answers.
    pub durability: Durability,
}

impl Load {
    fn create_indexes(&self, session: &mut Session) -> Result<(), BenchError> {
        for (database, collection) in self.data.all() {
            let command = doc! {
                "createIndexes": collection,
                "indexes": [{ "key": { "k": 1 }, "name": "k_1" }],
            };
            session.command(&database, command)?;
        }
        Ok(())
    }

    /// Whether there is an index on `k`, and only where one is wanted.
    fn check_index(&self, session: &mut Session) -> Result<(), BenchError> {
        let (database, collection) = self.data.place(1);
        let reply = session.command(&database, doc! { "listIndexes": collection.clone() })?;
        let batch =
            reply.get("cursor").and_then(|cursor| cursor.as_document()?.get("firstBatch")?.as_array());
        // A null server has no indexes to list.
        let Some(batch) = batch else { return Ok(()) };
        let is_on_k = |index: &Value| {
            let key = index.as_document().and_then(|index| index.get("key")?.as_document());
            key.is_some_and(|key| key.names().eq(["k"]))
        };
        let found = batch.iter().any(is_on_k);
        if found == (self.index != IndexBuild::Never) {
            return Ok(());
        }
        Err(BenchError::DataSetIndex { namespace: format!("{database}.{collection}"), found })
    }

    /// The index on `k`, for results.
    pub fn index_in_words(&self) -> &'static str {
        match self.index {
            IndexBuild::Before => "index on k before the load",
            IndexBuild::After => "index on k after the load",
            IndexBuild::Never => "no index on k",
        }
    }
}

impl Loading for Load {
    fn databases(&self) -> Vec<String> {
        let some = 1..=self.data.collections.min(self.data.databases);
        some.map(|collection| self.data.place(collection).0).collect()
    }

    fn summary(&self) -> String {
        let DataSet { collections, documents, .. } = self.data;
        format!(
            "{collections} x {documents} documents of {DOCUMENT_BYTES} bytes, {} connections, batches of {}, {}, durability {}",
            self.connections,
            self.batch,
            self.index_in_words(),
            self.durability.name()
        )
    }

    fn parameters(&self) -> serde_json::Value {
        json!({
            "data": self.data,
            "connections": self.connections,
            "batch": self.batch,
            "index": self.index_in_words(),
            "durability": self.durability.name(),
            "generator": self.generator.name(),
            "seed": self.seed,
        })
    }

    fn is_there(&self, target: &Target) -> Result<bool, BenchError> {
        let mut session = Session::open(target.address())?;
        let (database, collection) = self.data.place(1);
        Ok(count(&mut session, &database, &collection)? > 0)
    }

    fn prepare(&self, target: &Target) -> Result<(), BenchError> {
        let mut session = Session::open(target.address())?;
        for (database, collection) in self.data.all() {
            drop_collection(&mut session, &database, &collection)?;
        }
        if self.index == IndexBuild::Before { self.create_indexes(&mut session) } else { Ok(()) }
    }

    fn connections(&self) -> u32 {
        self.connections
    }

    fn clients(&self, _target: &Target) -> Result<Clients, BenchError> {
        let (next, failed) = (Arc::new(AtomicU32::new(1)), Arc::default());
        let script = |_| -> Box<dyn Script> {
            let source = Collections { load: self.clone(), next: next.clone(), current: None };
            let on_failure = OnFailure::EndAll(Arc::clone(&failed));
            Box::new(Inserter::new(self.durability, source, on_failure))
        };
        Ok(Clients::of_scripts((0..self.connections).map(script).collect()))
    }

    fn finish(&self, target: &Target) -> Result<Vec<TimedStep>, BenchError> {
        if self.index != IndexBuild::After {
            return Ok(Vec::new());
        }
        let mut session = Session::open(target.address())?;
        let step = TimedStep::take("index on k after the load", || self.create_indexes(&mut session))?;
        Ok(vec![step])
    }

    fn check(&self, target: &Target) -> Result<(), BenchError> {
        let mut session = Session::open(target.address())?;
        let mut places = self.data.all();
        let expected = u64::from(self.data.documents);
        places.try_for_each(|(database, collection)| {
            check_count(&mut session, &database, &collection, expected)
        })?;
        self.check_index(&mut session)
    }
}

/// The batches of one connection: collection after collection.
struct Collections {
    load: Load,
    /// The collection to load next, for all connections.
    next: Arc<AtomicU32>,
    current: Option<(u32, Documents)>,
}

impl BatchSource for Collections {
    fn next_batch(&mut self, out: &mut Vec<u8>) -> Option<Batch> {
        let Load { data, generator, seed, batch, .. } = &self.load;
        loop {
            if let Some((number, documents)) = &mut self.current
                && documents.left() > 0
            {
                let count = documents.left().min(*batch);
                (0..count).for_each(|_| documents.append_next(out));
                let (database, collection) = data.place(*number);
                return Some(Batch { database, collection, documents: count });
            }
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if !(1..=data.collections).contains(&number) {
                return None;
            }
            self.current = Some((number, Documents::new(*generator, *seed, number, data.documents)));
        }
    }
}
