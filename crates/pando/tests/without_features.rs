//! A library that was built without the rules of languages (feature `collation`) refuses them, and says so.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]
#![cfg(not(feature = "collation"))]

use pandodb::bson::Document;
use pandodb::{Pando, doc};

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
