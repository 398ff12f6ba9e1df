//! The engine `tikv` keeps every promise of the storage contract where several servers may have the store
//! open.
//!
//! `make test-tikv` starts the cluster and names its placement drivers by `PANDO_TIKV_PD`. Each test has a
//! keyspace of its own, named after its folder.

use std::sync::Arc;

use pando_environment::Environment;
use pando_tikv::{TikvEngine, TikvOptions};

pando_conformance::engine_conformance!(tikv_of_several, |folder| {
    let drivers =
        std::env::var("PANDO_TIKV_PD").expect("PANDO_TIKV_PD names the placement drivers: make test-tikv");
    let name = folder.file_name().expect("a temporary folder has a name").to_string_lossy();
    let keyspace: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let entries = [
        ("pd".to_owned(), drivers),
        ("keyspace".to_owned(), keyspace),
        ("history".to_owned(), "off".to_owned()),
        ("servers".to_owned(), "several".to_owned()),
    ];
    let options = TikvOptions::default().with_entries(&entries).expect("the options are fine");
    Arc::new(TikvEngine::open(&Environment::real(), folder, options).expect("the store opens"))
});
