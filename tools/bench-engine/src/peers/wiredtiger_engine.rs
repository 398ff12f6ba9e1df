//! The engine `wiredtiger` with B-trees, through the contract of `storage`: beside the bare library it shows
//! the contract's cost.

use std::path::Path;
use std::sync::Arc;

use pando_environment::Environment;
use pando_storage::TreeOptions;
use pando_wiredtiger::{BlockCompressor, WiredTigerEngine, WiredTigerOptions};

use crate::error::{BenchError, failed};
use crate::peer::{Peer, PeerSettings};
use crate::peers::contract::ContractPeer;

const NAME: &str = "wiredtiger behind the contract";

pub fn open(folder: &Path, settings: PeerSettings) -> Result<Box<dyn Peer>, BenchError> {
    let mut options = WiredTigerOptions::default();
    options.cache_bytes = settings.cache_bytes;
    // As the bare library is opened.
    options.journal_compressor = BlockCompressor::None;
    let engine = WiredTigerEngine::open(&Environment::real(), folder, options);
    let engine = Arc::new(engine.map_err(failed(NAME, "opening the store"))?);
    // Prefix compression is the engine's choice for indexes, and the bare library has it for all trees.
    let entries = [("blockCompressor", "snappy"), ("prefixCompression", "on")];
    let entries = entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Ok(Box::new(ContractPeer::new(NAME, engine, settings.trees, &TreeOptions { entries })?))
}
