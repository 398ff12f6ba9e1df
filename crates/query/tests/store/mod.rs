//! A collection in memory, and plans carried out on it.

use std::sync::Arc;

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, Collection, Durability, IndexDescription, Namespace, Operation,
    QueryMemory, SharedEngine,
};
use pando_document::{Document, RawDocument, RawDocumentBuf, Value, doc};
use pando_environment::Environment;
use pando_memory::MemoryEngine;
use pando_query::execute::{Counters, Executor};
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::partial_index::IndexKinds;
use pando_query::plan::Plan;

use crate::reluctant::{Network, Reluctant};

/// A collection in memory.
pub struct Store {
    pub catalog: Catalog,
    pub collection: Arc<Collection>,
}

impl Store {
    pub fn new(documents: &[RawDocumentBuf], indexes: &[Document]) -> Store {
        Store::with_options(&doc! {}, documents, indexes)
    }

    /// One store for each layout: by `_id`, a heap, and by these fields; with indexes that carry documents
    /// where they are not by `_id`.
    pub fn of_all_layouts(
        fields: &Document,
        documents: &[RawDocumentBuf],
        indexes: &[Document],
    ) -> Vec<Store> {
        let carrying: Vec<Document> = indexes.iter().cloned().map(clustering).collect();
        vec![
            Store::new(documents, indexes),
            Store::with_options(&doc! { "layout": "heap" }, documents, indexes),
            Store::with_options(
                &doc! { "primaryKey": (Value::Document(fields.clone())) },
                documents,
                &carrying,
            ),
        ]
    }

    fn with_options(options: &Document, documents: &[RawDocumentBuf], indexes: &[Document]) -> Store {
        let engine: SharedEngine = Arc::new(MemoryEngine::new(&Environment::real()));
        let memory = QueryMemory::new(&engine, usize::MAX, None);
        let catalog = Catalog::open_with(engine, memory, Arc::new(IndexKinds)).unwrap();
        let namespace = Namespace::new("test", "plans").unwrap();
        catalog.create_collection(&namespace, options.to_raw(), [7; 16]).unwrap();
        let descriptions = indexes
            .iter()
            .map(|specification| IndexDescription::from_specification(&specification.to_raw()).unwrap());
        catalog.create_indexes(&namespace, descriptions.collect(), &Operation::default()).unwrap();
        let collection = catalog.collection("test", "plans").unwrap();
        let mut transaction = catalog.begin_write().unwrap();
        for document in documents {
            collection.insert(&mut transaction, document, BlockingMode::MayBlock).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
        Store { catalog, collection }
    }

    pub fn indexes(&self) -> Vec<IndexDescription> {
        self.collection.describe_indexes()
    }

    /// The `_id`s that a plan gives, in its order.
    pub fn run(&self, plan: Plan) -> Vec<i64> {
        self.documents(plan).0.iter().map(|document| id_of(document)).collect()
    }

    /// The documents that a plan gives, in its order, and what it has examined. They are the same where the
    /// engine is behind a network.
    pub fn documents(&self, plan: Plan) -> (Vec<RawDocumentBuf>, Counters) {
        let begin = |network| Reluctant::over(network, self.catalog.begin(Begin::READ).unwrap());
        let found = self.documents_in(plan.clone(), &begin(Network::None));
        assert_eq!(self.documents_in(plan, &begin(Network::Between)), found, "keys are gathered first");
        found
    }

    /// The same in a transaction. Every third read that must not block would block, and the executor is then
    /// asked again, which must change nothing.
    pub fn documents_in(&self, plan: Plan, transaction: &Reluctant) -> (Vec<RawDocumentBuf>, Counters) {
        let collection = Arc::clone(&self.collection);
        let mut executor =
            Executor::new(collection, plan, &StageMemory::unlimited(DiskUse::Forbidden)).unwrap();
        let mut documents = Vec::new();
        let operation = Operation::default();
        let mut blocking = BlockingMode::CachedOnly;
        loop {
            match executor.next(transaction, Caller { blocking, operation: &operation }) {
                Ok(Some(row)) => {
                    documents.push(row.document.to_owned());
                    blocking = BlockingMode::CachedOnly;
                }
                Ok(None) => return (documents, executor.counters()),
                Err(error) => {
                    assert!(error.is_would_block() && blocking == BlockingMode::CachedOnly, "{error:?}");
                    blocking = BlockingMode::MayBlock;
                }
            }
        }
    }
}

pub fn id_of(document: &RawDocument) -> i64 {
    document.get("_id").unwrap().unwrap().as_i64_exact().unwrap()
}

fn clustering(mut specification: Document) -> Document {
    specification.push("clustering", true);
    specification
}

pub fn index(keys: Document, options: &[&str]) -> Document {
    let name = format!("{keys:?}{options:?}");
    let mut specification = doc! { "v": 2, "key": keys, "name": name };
    for option in options {
        specification.push(*option, Value::Boolean(true));
    }
    specification
}

pub fn numbered(count: i32) -> Vec<RawDocumentBuf> {
    (0..count).map(|id| doc! { "_id": id, "n": (id % 10) }.to_raw()).collect()
}
