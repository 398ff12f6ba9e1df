//! The engine `rocksdb` keeps every promise of the storage contract.

use std::sync::Arc;

use pando_environment::Environment;
use pando_rocksdb::{RocksdbEngine, RocksdbOptions};

pando_conformance::engine_conformance!(rocksdb, |folder| {
    Arc::new(RocksdbEngine::open(&Environment::real(), folder, RocksdbOptions::default()).expect("it opens"))
});
