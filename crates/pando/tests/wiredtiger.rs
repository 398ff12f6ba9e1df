//! A store of the engine `wiredtiger` through the library: sections of options, other engines, MongoDB's
//! folders, backups.

#![cfg(feature = "engine-wiredtiger")]

use std::collections::BTreeSet;
use std::path::Path;

use pandodb::bson::Document;
use pandodb::{EngineName, EngineOptions, Options, Pando, VerifyDepth, doc, restore_store, verify_store};

fn options(named: &[(&str, &str)]) -> Options {
    let named = named.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let engine_options = EngineOptions { named, ..EngineOptions::default() };
    Options { engine: EngineName::WiredTiger, engine_options, ..Options::default() }
}

fn open(folder: &Path) -> Pando {
    Pando::open_with(folder, &options(&[])).expect("the store opens")
}

/// The trees that have files of LSM trees.
fn lsm_trees(folder: &Path) -> usize {
    let names = std::fs::read_dir(folder.join("wiredtiger")).expect("the folder is there");
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let trees = names.filter(|name| name.ends_with(".lsm"));
    trees.filter_map(|name| Some(name.rsplit_once('-')?.0.to_owned())).collect::<BTreeSet<_>>().len()
}

#[test]
fn the_section_of_mongodb_chooses_the_table_of_a_collection_and_of_an_index() {
    let folder = tempfile::tempdir().expect("a folder");
    let pando = open(folder.path());
    let database = pando.database("d");
    let lsm = doc! { "wiredTiger": { "configString": "type=lsm,block_compressor=zlib" } };
    let reply = database
        .run_command(doc! { "create": "c", "storageEngine": lsm.clone() })
        .run()
        .expect("it is created");
    assert!(!reply.contains_key("note"), "{reply}");
    let index = doc! { "key": { "n": 1 }, "name": "n", "storageEngine": lsm };
    database.run_command(doc! { "createIndexes": "c", "indexes": [index] }).run().expect("it is created");
    let cities = database.collection::<Document>("c");
    cities.insert_many((0..500).map(|n| doc! { "_id": n, "n": n % 7 })).run().expect("they are inserted");
    assert_eq!(lsm_trees(folder.path()), 2);
    for section in [doc! { "configString": "nonsense=1" }, doc! { "compression": "zlib" }] {
        let refused =
            database.run_command(doc! { "create": "r", "storageEngine": { "wiredTiger": section } }).run();
        let refused = refused.expect_err("the option is unknown").to_string();
        assert!(refused.contains("there are"), "{refused}");
    }
    pando.close().expect("the store closes");
    let report = verify_store(folder.path(), VerifyDepth::Collections).expect("the store is checked");
    assert!(report.is_sound() && report.entries > 1_000 && report.file_bytes > 0, "{report:?}");
    let pando = open(folder.path());
    let found = pando.database("d").collection::<Document>("c").count_documents(doc! { "n": 3 }).run();
    assert_eq!(found.expect("they are counted"), 71);
}

#[test]
fn other_engines_keep_the_section_and_say_that_it_has_no_effect() {
    let pando = Pando::open_in_memory().expect("the store opens");
    let database = pando.database("d");
    let section = doc! { "wiredTiger": { "configString": "block_compressor=zlib" } };
    let reply = database
        .run_command(doc! { "create": "c", "storageEngine": section.clone() })
        .run()
        .expect("it is created");
    assert!(
        reply.get_str("note").is_ok_and(|note| note.contains("no effect") && note.contains("memory")),
        "{reply}"
    );
    let index = doc! { "key": { "n": 1 }, "name": "n", "storageEngine": section };
    let reply =
        database.run_command(doc! { "createIndexes": "c", "indexes": [index] }).run().expect("it is created");
    assert!(reply.get_str("note").is_ok_and(|note| note.contains("no effect")), "{reply}");
    let listed =
        database.run_command(doc! { "listCollections": 1 }).run().expect("they are listed").to_string();
    assert!(listed.contains("block_compressor=zlib"), "{listed}");
}

#[test]
fn a_store_refuses_another_engine_and_a_folder_of_mongodb_is_no_store() {
    let folder = tempfile::tempdir().expect("a folder");
    open(folder.path()).close().expect("the store closes");
    let refused =
        Pando::open(folder.path()).map(drop).expect_err("it is a store of another engine").to_string();
    assert!(refused.contains("--engine wiredtiger"), "{refused}");
    let betree = tempfile::tempdir().expect("a folder");
    Pando::open(betree.path()).and_then(Pando::close).expect("a store of betree");
    let refused =
        Pando::open_with(betree.path(), &options(&[])).map(drop).expect_err("it is betree's").to_string();
    assert!(refused.contains("the engine betree"), "{refused}");
    let mongodb = tempfile::tempdir().expect("a folder");
    std::fs::write(mongodb.path().join("WiredTiger.wt"), b"x").expect("a file");
    let refused =
        Pando::open_with(mongodb.path(), &options(&[])).map(drop).expect_err("it is MongoDB's").to_string();
    assert!(refused.contains("MongoDB") && refused.contains("mongodump"), "{refused}");
    let fresh = tempfile::tempdir().expect("a folder");
    let refused =
        Pando::open_with(fresh.path(), &options(&[("fanout", "16")])).map(drop).expect_err("it is unknown");
    assert!(
        refused.to_string().contains("`fanout`") && refused.to_string().contains("collectionType"),
        "{refused}"
    );
}

#[test]
fn a_backup_is_restored() {
    let (folder, copy, restored) = (tempfile::tempdir(), tempfile::tempdir(), tempfile::tempdir());
    let (folder, copy, restored) =
        (folder.expect("a folder"), copy.expect("a folder"), restored.expect("a folder"));
    let pando = open(folder.path());
    let cities = pando.database("d").collection::<Document>("c");
    cities.insert_many((0..500).map(|n| doc! { "_id": n, "n": n % 7 })).run().expect("they are inserted");
    let backup = copy.path().join("backup");
    let path = backup.to_str().expect("the path is text");
    pando
        .database("admin")
        .run_command(doc! { "pandoBackup": 1, "to": path })
        .run()
        .expect("a backup is made");
    let target = restored.path().join("store");
    restore_store(EngineName::WiredTiger, &[backup], &target, &EngineOptions::default())
        .expect("it is restored");
    let found =
        open(&target).database("d").collection::<Document>("c").count_documents(doc! { "n": 3 }).run();
    assert_eq!(found.expect("they are counted"), 71);
}
