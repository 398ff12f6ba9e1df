//! The memory of queries of an embedded store: its bounds, and that it is given back.

use pandodb::bson::Document;
use pandodb::{EngineName, EngineOptions, Error, Options, Pando, doc};

fn options(query_memory_bytes: Option<u64>) -> Options {
    let engine_options = EngineOptions { cache_bytes: 64 << 20, named: Vec::new(), encryption: None };
    Options { engine_options, query_memory_bytes, ..Options::default() }
}

/// `pando.queryMemory` of `serverStatus`.
fn figures(pando: &Pando) -> Document {
    let status = pando.database("admin").run_command(doc! { "serverStatus": 1 }).run().unwrap();
    status.get_document("pando").unwrap().get_document("queryMemory").unwrap().clone()
}

fn figure(pando: &Pando, name: &str) -> i64 {
    figures(pando).get_i64(name).unwrap()
}

#[test]
fn a_store_with_little_memory_for_queries_spills_and_keeps_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open_with(folder.path(), &options(Some(1 << 20))).unwrap();
    let documents = pando.database("d").collection::<Document>("c");
    for part in 0..20 {
        let of_part = |at| doc! { "_id": part * 1_000 + at, "k": (part * 1_000 + at) * 7_919 % 20_000, "t": "x".repeat(100) };
        documents.insert_many((0..1_000).map(of_part).collect::<Vec<_>>()).run().unwrap();
    }
    let pipeline = [
        doc! { "$group": { "_id": "$k", "t": { "$push": "$t" } } },
        doc! { "$sort": { "_id": -1 } },
        doc! { "$limit": 2 },
    ];
    let reply = pando
        .database("d")
        .run_command(doc! { "aggregate": "c", "pipeline": pipeline.to_vec(), "cursor": {} })
        .run();
    let reply = reply.unwrap();
    let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    let keys: Vec<i32> =
        batch.iter().map(|group| group.as_document().unwrap().get_i32("_id").unwrap()).collect();
    assert_eq!(keys, [19_999, 19_998]);
    assert!(figure(&pando, "spills") > 0 && figure(&pando, "peakBytes") < 3 << 20, "{}", figures(&pando));
    assert_eq!((figure(&pando, "heldBytes"), figure(&pando, "scratchFiles")), (0, 0));
    pando.close().unwrap();
}

#[test]
fn the_memory_of_queries_is_a_quarter_of_the_cache_or_what_is_asked_for_within_bounds() {
    let folder = tempfile::tempdir().unwrap();
    {
        let pando = Pando::open_with(folder.path(), &options(None)).unwrap();
        assert_eq!(figure(&pando, "limitBytes"), 16 << 20);
    }
    for impossible in [0, 1_000, 65 << 20] {
        match Pando::open_with(folder.path(), &options(Some(impossible))) {
            Err(Error::Open(error)) => {
                assert!(
                    error.to_string().contains("the memory of queries (query_memory_bytes) cannot be"),
                    "{error}"
                );
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{impossible} bytes are impossible"),
        }
    }
    let in_memory = Options { engine: EngineName::Memory, ..options(None) };
    assert_eq!(figure(&Pando::open_with(folder.path(), &in_memory).unwrap(), "spills"), 0);
}

#[test]
fn a_store_in_memory_says_that_disk_use_cannot_help() {
    let options = Options { engine: EngineName::Memory, ..options(Some(1 << 20)) };
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open_with(folder.path(), &options).unwrap();
    let documents = pando.database("d").collection::<Document>("c");
    let of = |at| doc! { "_id": at, "t": "x".repeat(1_000) };
    documents.insert_many((0..4_000).map(of)).run().unwrap();
    let sorted = documents.find(doc! {}).sort(doc! { "t": 1, "_id": -1 }).allow_disk_use(true).run();
    let refused = sorted.map(drop).unwrap_err();
    assert_eq!(refused.code(), Some(292));
    assert!(refused.to_string().contains("does not allow disk use or the engine has none"), "{refused}");
}
