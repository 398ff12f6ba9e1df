//! Loads into a server that says yes to everything, and into one that does not.

use super::*;
use crate::client::NullServer;

/// With as many documents per collection as per batch, one reply suits both insert and count.
const DOCUMENTS: u32 = 10;

fn load() -> Load {
    Load {
        data: DataSet { database: "sbtest".into(), collections: 3, documents: DOCUMENTS },
        generator: Generator::Xoshiro,
        seed: 1,
        connections: 2,
        batch: DOCUMENTS,
        index: IndexBuild::Before,
        durability: Durability::W1,
    }
}

fn run(load: &Load, reply: &Document) -> Result<Loaded, BenchError> {
    let server = NullServer::start(reply).expect("loopback is there");
    let mut sources = Sources::find(server.address(), None, None);
    load.run(server.address(), &mut sources)
}

#[test]
fn every_collection_is_loaded_once_and_its_documents_are_counted() {
    let loaded = run(&load(), &doc! { "n": 10, "ok": 1.0 }).expect("the server says yes");
    assert_eq!(loaded.batches.done(), 3);
    assert_eq!(loaded.documents_per_second.iter().sum::<u64>(), 30);
    assert_eq!(loaded.batches.threads.len(), 2);
    assert_eq!(loaded.index_seconds, None);
}

#[test]
fn an_index_after_the_load_is_timed_apart() {
    let after = Load { index: IndexBuild::After, ..load() };
    let loaded = run(&after, &doc! { "n": 10, "ok": 1.0 }).expect("the server says yes");
    assert!(loaded.index_seconds.is_some());
}

#[test]
fn a_batch_that_is_not_wholly_inserted_ends_the_load_with_an_error() {
    let error = run(&load(), &doc! { "n": 9, "ok": 1.0 }).expect_err("a document is missing");
    assert!(matches!(error, BenchError::Refused { .. }), "{error}");
    let duplicate = doc! { "n": 10, "writeErrors": [{ "code": 11000, "errmsg": "duplicate" }], "ok": 1.0 };
    let error = run(&load(), &duplicate).expect_err("a write was refused");
    assert!(matches!(error, BenchError::Refused { code: 11000, .. }), "{error}");
}

#[test]
fn documents_that_are_not_what_the_run_needs_are_an_error() {
    let server = NullServer::start(&doc! { "n": 11, "ok": 1.0 }).expect("loopback is there");
    let mut session = Session::open(server.address()).expect("it listens");
    let error = check_counts(&mut session, &load().data).expect_err("there is one too many");
    assert!(matches!(error, BenchError::DataSet { found: 11, expected: 10, .. }), "{error}");
}
