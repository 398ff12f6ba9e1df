//! The engine `tikv` keeps every promise of the storage contract where several servers may have the store
//! open.
//!
//! Each test has a store of its own, named after its folder.

mod cluster;

use std::sync::Arc;

use pando_environment::Environment;
use pando_tikv::TikvEngine;

pando_conformance::engine_conformance!(tikv_of_several, |folder| {
    let options = cluster::options(&cluster::keyspace_of(folder), "several");
    Arc::new(TikvEngine::open(&Environment::real(), folder, options).expect("the store opens"))
});
