//! The engine `rocksdb`, through the contract of `storage`: beside the bare library it shows the contract's
//! cost.

use std::path::Path;
use std::sync::Arc;

use pando_environment::Environment;
use pando_rocksdb::{RocksdbEngine, RocksdbOptions};
use pando_storage::TreeOptions;

use crate::error::{BenchError, failed};
use crate::peer::{Peer, PeerSettings};
use crate::peers::contract::ContractPeer;

const NAME: &str = "rocksdb behind the contract";

pub fn open(folder: &Path, settings: PeerSettings) -> Result<Box<dyn Peer>, BenchError> {
    let mut options = RocksdbOptions::default();
    options.cache_bytes = settings.cache_bytes;
    // As the bare library is opened.
    options.direct_io = true;
    options.last_level_filters = false;
    let engine = RocksdbEngine::open(&Environment::real(), folder, options);
    let engine = Arc::new(engine.map_err(failed(NAME, "opening the store"))?);
    Ok(Box::new(ContractPeer::new(NAME, engine, settings.trees, &TreeOptions::default())?))
}
