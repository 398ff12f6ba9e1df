//! The engine `lmdb` keeps every promise of the storage contract.

use std::sync::Arc;

use pando_environment::Environment;
use pando_lmdb::{LmdbEngine, LmdbOptions};

pando_conformance::engine_conformance!(lmdb, |folder| {
    Arc::new(LmdbEngine::open(&Environment::real(), folder, LmdbOptions::default()).expect("the store opens"))
});
