//! A library that was built without a feature (`collation`, `codecs`, `saslprep`, `text`) refuses what
//! needs it, and says so.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use pandodb::bson::Document;
use pandodb::{Pando, doc};

#[cfg(not(feature = "collation"))]
#[test]
fn a_collation_is_refused_with_the_cure_and_the_simple_one_is_there() {
    let pando = Pando::open_in_memory().unwrap();
    let database = pando.database("atlas");
    database.collection::<Document>("cities").insert_one(doc! { "name": "Utrecht" }).run().unwrap();
    let find = |locale: &str| {
        database.run_command(doc! { "find": "cities", "collation": { "locale": locale } }).run()
    };
    let refused = find("de").unwrap_err().to_string();
    assert!(refused.contains("build it with the feature 'collation'"), "{refused}");
    let unknown = find("klingon").unwrap_err().to_string();
    assert!(unknown.contains("'locale' is invalid"), "{unknown}");
    find("simple").unwrap();
    let create = doc! { "create": "sorted", "collation": { "locale": "sv" } };
    assert!(database.run_command(create).run().is_err());
    assert!(!database.list_collection_names().run().unwrap().contains(&"sorted".to_owned()));
}

#[test]
fn snappy_and_zlib_are_there_or_are_refused_with_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open(folder.path()).unwrap();
    let create = |name: &str, compression: &str| {
        let options = doc! { "betree": { "compression": compression } };
        pando.database("atlas").run_command(doc! { "create": name, "storageEngine": options }).run()
    };
    create("a", "lz4").unwrap();
    for compression in ["snappy", "zlib", "zlib-3"] {
        let outcome = create(compression, compression);
        if cfg!(feature = "codecs") {
            outcome.unwrap();
        } else {
            let refused = outcome.unwrap_err().to_string();
            assert!(refused.contains("build it with the feature 'codecs'"), "{refused}");
        }
    }
}

#[test]
fn a_password_beyond_ascii_is_there_or_is_refused_with_the_cure() {
    let pando = Pando::open_in_memory().unwrap();
    let create = |name: &str, password: &str| {
        let user = doc! { "createUser": name, "pwd": password, "roles": [] };
        pando.database("admin").run_command(user).run()
    };
    create("ada", "pencil").unwrap();
    let outcome = create("grace", "großes Geheimnis");
    if cfg!(feature = "saslprep") {
        outcome.unwrap();
    } else {
        let refused = outcome.unwrap_err().to_string();
        assert!(refused.contains("build it with the feature 'saslprep'"), "{refused}");
    }
}

#[test]
fn a_text_index_is_there_or_is_refused_with_the_cure() {
    let pando = Pando::open_in_memory().unwrap();
    let database = pando.database("atlas");
    database.collection::<Document>("cities").insert_one(doc! { "name": "Utrecht" }).run().unwrap();
    let index = doc! { "key": { "name": "text" }, "name": "words" };
    let create = database.run_command(doc! { "createIndexes": "cities", "indexes": [index] }).run();
    let search = doc! { "find": "cities", "filter": { "$text": { "$search": "utrecht" } } };
    let search = database.run_command(search).run();
    if cfg!(feature = "text") {
        create.unwrap();
        search.unwrap();
    } else {
        for outcome in [create, search] {
            let refused = outcome.unwrap_err().to_string();
            assert!(refused.contains("build it with the feature 'text'"), "{refused}");
        }
    }
}
