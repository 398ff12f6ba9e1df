//! The engine `wiredtiger` keeps every promise of the storage contract, with B-trees and with LSM trees.

use std::sync::Arc;

use pando_environment::Environment;
use pando_wiredtiger::{WiredTigerEngine, WiredTigerOptions};

fn options(table_type: &str) -> WiredTigerOptions {
    let entries =
        [("type".to_owned(), table_type.to_owned()), ("journalFileSize".to_owned(), "4MB".to_owned())];
    WiredTigerOptions::default().with_entries(&entries).expect("the options are possible")
}

pando_conformance::engine_conformance!(btree, |folder| {
    Arc::new(WiredTigerEngine::open(&Environment::real(), folder, options("btree")).expect("the store opens"))
});

pando_conformance::engine_conformance!(lsm, |folder| {
    Arc::new(WiredTigerEngine::open(&Environment::real(), folder, options("lsm")).expect("the store opens"))
});
