//! The engine `lmdb`, through the contract of `storage`: beside the bare library it shows the contract's
//! cost.

use std::path::Path;
use std::sync::Arc;

use pando_environment::Environment;
use pando_lmdb::{LmdbEngine, LmdbOptions};
use pando_storage::TreeOptions;

use crate::error::{BenchError, failed};
use crate::peer::{Peer, PeerSettings};
use crate::peers::contract::ContractPeer;

const NAME: &str = "lmdb behind the contract";

pub fn open(folder: &Path, settings: PeerSettings) -> Result<Box<dyn Peer>, BenchError> {
    // As the bare library is opened.
    let options = LmdbOptions { readahead: false, ..LmdbOptions::default() };
    let engine = LmdbEngine::open(&Environment::real(), folder, options);
    let engine = Arc::new(engine.map_err(failed(NAME, "opening the store"))?);
    Ok(Box::new(ContractPeer::new(NAME, engine, settings.trees, &TreeOptions::default())?))
}
