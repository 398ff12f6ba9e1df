//! `betree`, through the contract of `storage`.

use std::path::Path;
use std::time::Duration;

use pando_betree::{Betree, Options};
use pando_environment::Environment;
use pando_storage::TreeOptions;

use crate::error::{BenchError, failed};
use crate::peer::{Peer, PeerSettings};
use crate::peers::contract::ContractPeer;

const NAME: &str = "betree";
/// Where recovery is measured no checkpoint shortens the log: the period is a day.
const NO_CHECKPOINT: Duration = Duration::from_secs(86_400);
/// A checkpoint is made when the log has grown by an eighth of its budget.
const CHECKPOINTS_A_BUDGET: u64 = 8;

/// Where writes wait on their way to leaves, beside memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffers {
    InNodes,
    /// Nowhere: the tree is a B-tree.
    None,
}

pub fn open(folder: &Path, settings: PeerSettings, buffers: Buffers) -> Result<Box<dyn Peer>, BenchError> {
    let mut layout = TreeOptions { entries: settings.layout };
    if buffers == Buffers::None {
        if let Some((_, value)) = layout.entries.iter().find(|(name, _)| name == "bufferPercent") {
            return Err(BenchError::Argument {
                name: "layout",
                value: format!("bufferPercent={value}"),
                expected: "other options: the peer btree is betree with bufferPercent=0",
            });
        }
        layout.entries.push(("bufferPercent".to_owned(), "0".to_owned()));
    }
    let mut options = Options::default();
    options.cache_bytes = settings.cache_bytes;
    if settings.log_bytes > 0 {
        options.log_budget_bytes = settings.log_bytes * 2 * CHECKPOINTS_A_BUDGET;
        options.checkpoint_period = NO_CHECKPOINT;
    }
    let engine = Betree::open(&Environment::real(), folder, options);
    let engine = engine.map_err(failed(NAME, "opening the store"))?;
    Ok(Box::new(ContractPeer::new(NAME, engine, settings.trees, &layout)?))
}
