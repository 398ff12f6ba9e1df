//! The engine `tikv` keeps every promise of the storage contract, over a real cluster.
//!
//! Each test has a store of its own, named after its folder.

mod cluster;

use std::sync::Arc;

use pando_environment::Environment;
use pando_tikv::TikvEngine;

pando_conformance::engine_conformance!(tikv, |folder| {
    let options = cluster::options(&cluster::keyspace_of(folder), "one");
    Arc::new(TikvEngine::open(&Environment::real(), folder, options).expect("the store opens"))
});
