//! The cost of a point query in this crate: `cargo run --release -p pando-query --example point_query`.
//!
//! The documents are those of sysbench. It prints nanoseconds of this thread's time on a processor for each
//! query, the memory engine's part included. Linux tells that time to a few milliseconds, also while other
//! programs run.
#![allow(clippy::print_stdout, reason = "the figures are what the example is for")]

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, Collection, Durability, Namespace, Operation, SharedEngine,
    Transaction,
};
use pando_collation::TextOrder;
use pando_document::{RawDocument, RawDocumentBuf, doc};
use pando_environment::Environment;
use pando_memory::MemoryEngine;
use pando_query::execute::Executor;
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::plan::{FindSpecification, plan, plan_by_id, point_lookup};
use pando_query::projection::Projection;

const DOCUMENTS: i32 = 10_000;
const QUERIES: u32 = 300_000;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let engine: SharedEngine = Arc::new(MemoryEngine::new(&Environment::real()));
    let catalog = Catalog::open(engine)?;
    let namespace = Namespace::new("bench", "sbtest1")?;
    let collection = catalog.create_collection(&namespace, RawDocumentBuf::new(), [7; 16])?;
    let mut transaction = catalog.begin_write()?;
    for id in 0..DOCUMENTS {
        let document =
            doc! { "_id": id, "k": (id * 7 % 1000), "c": ("c".repeat(119)), "pad": ("p".repeat(59)) };
        collection.insert(&mut transaction, &document.to_raw(), BlockingMode::MayBlock)?;
    }
    transaction.commit(Durability::None)?;
    let transaction = catalog.begin(Begin::READ)?;
    let filters: Vec<RawDocumentBuf> = (0..DOCUMENTS).map(|id| doc! { "_id": id }.to_raw()).collect();
    let shown = doc! { "c": 1, "_id": 0 }.to_raw();
    measure("fetch alone", |at| {
        let id = point_lookup(&filters[at]).ok_or("a point")?;
        let key = collection.id_key(id);
        Ok(collection
            .fetch_by_id(&*transaction, &key, BlockingMode::CachedOnly)?
            .map_or(0, |bytes| bytes.len()))
    })?;
    measure("fetched, projected", |at| {
        let id = point_lookup(&filters[at]).ok_or("a point")?;
        let key = collection.id_key(id);
        let projection = Projection::parse(&shown, &ParseScope::default())?;
        let mut reply = Vec::with_capacity(256);
        if let Some(bytes) = collection.fetch_by_id(&*transaction, &key, BlockingMode::CachedOnly)? {
            projection.apply(RawDocument::from_bytes(&bytes)?, None, &mut reply)?;
        }
        Ok(reply.len())
    })?;
    measure("parsed, planned by _id, projected", |at| {
        let filter = Filter::parse(&filters[at], &ParseScope::default())?;
        let made = plan_by_id(&FindSpecification::matching(&filter), &TextOrder::SIMPLE).ok_or("a point")?;
        let collection = Arc::clone(&collection);
        let executor = Executor::new(collection, made, &StageMemory::unlimited(DiskUse::Forbidden))?;
        project_first(executor, &*transaction, &shown)
    })?;
    measure("parsed, planned over all indexes, projected", |at| {
        planned(&collection, &*transaction, &filters[at], &shown)
    })?;
    let ranges: Vec<RawDocumentBuf> =
        (0..DOCUMENTS).map(|id| doc! { "_id": { "$gte": id, "$lt": (id + 10) } }.to_raw()).collect();
    measure("a range of ten documents", |at| {
        let filter = Filter::parse(&ranges[at], &ParseScope::default())?;
        let made = plan(&FindSpecification::matching(&filter), &collection.describe_indexes())?;
        let collection = Arc::clone(&collection);
        let mut executor = Executor::new(collection, made, &StageMemory::unlimited(DiskUse::Forbidden))?;
        let mut bytes = 0;
        while let Some(row) = executor.next(&*transaction, Caller::may_block(&Operation::default()))? {
            bytes += row.document.as_bytes().len();
        }
        Ok(bytes)
    })?;
    scan(&collection, &*transaction)
}

fn planned(
    collection: &Arc<Collection>,
    transaction: &dyn Transaction,
    filter: &RawDocument,
    shown: &RawDocument,
) -> Result<usize, Failure> {
    let filter = Filter::parse(filter, &ParseScope::default())?;
    let made = plan(&FindSpecification::matching(&filter), &collection.describe_indexes())?;
    let executor = Executor::new(Arc::clone(collection), made, &StageMemory::unlimited(DiskUse::Forbidden))?;
    project_first(executor, transaction, shown)
}

fn project_first(
    mut executor: Executor,
    transaction: &dyn Transaction,
    shown: &RawDocument,
) -> Result<usize, Failure> {
    let projection = Projection::parse(shown, &ParseScope::default())?;
    let mut reply = Vec::with_capacity(256);
    if let Some(row) = executor.next(transaction, Caller::cached_only(&Operation::default()))? {
        projection.apply(row.document, None, &mut reply)?;
    }
    Ok(reply.len())
}

fn measure(name: &str, mut query: impl FnMut(usize) -> Result<usize, Failure>) -> Result<(), Failure> {
    let started = processor_time()?;
    for number in 0..QUERIES {
        // Steps of a prime visit documents in no order that a cache likes.
        let at = (u64::from(number) * 7_919 % u64::from(DOCUMENTS.unsigned_abs())) as usize;
        black_box(query(at)?);
    }
    println!("{name:<45} {:>6} ns", (processor_time()? - started) / u64::from(QUERIES));
    Ok(())
}

/// Nanoseconds that this thread has spent on a processor.
fn processor_time() -> Result<u64, Failure> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(statistics.split_whitespace().next().ok_or("a number")?.parse()?)
}

/// A filter over all documents.
fn scan(collection: &Arc<Collection>, transaction: &dyn Transaction) -> Result<(), Failure> {
    let filter = Filter::parse(
        &doc! { "k": { "$gte": 500 }, "pad": { "$ne": "x" } }.to_raw(),
        &ParseScope::default(),
    )?;
    let rounds = 50;
    let started = processor_time()?;
    for _ in 0..rounds {
        let made = plan(&FindSpecification::matching(&filter), &collection.describe_indexes())?;
        let mut executor =
            Executor::new(Arc::clone(collection), made, &StageMemory::unlimited(DiskUse::Forbidden))?;
        black_box(executor.count(transaction, Caller::may_block(&Operation::default()))?);
    }
    let each = (processor_time()? - started) / (rounds * u64::from(DOCUMENTS.unsigned_abs()));
    println!("{:<45} {each:>6} ns", "a document of a filtered scan");
    Ok(())
}
