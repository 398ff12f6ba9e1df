//! `betree`, through the contract of `storage`, as the catalog uses it: documents with intents, index entries
//! blind.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pando_betree::{Betree, Options};
use pando_environment::Environment;
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, Engine, KeyRange, StorageError, Transaction, TreeId,
    TreeOptions,
};

use crate::batch::Batch;
use crate::data::{DOCUMENTS, Tree};
use crate::error::{BenchError, failed};
use crate::peer::{Peer, PeerSettings, Reader, SeeRow};

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

struct BetreePeer {
    engine: Arc<Betree>,
    trees: Vec<TreeId>,
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
    let failed = |error| failed(NAME, "opening the store")(error);
    let engine = Betree::open(&Environment::real(), folder, options).map_err(failed)?;
    let known: BTreeMap<String, TreeId> =
        engine.list_trees().map_err(failed)?.into_iter().map(|tree| (tree.name, tree.id)).collect();
    let tree = |place| {
        let name = Tree::new(place).name();
        known.get(&name).map_or_else(|| engine.create_tree(&name, &layout), |id| Ok(*id))
    };
    let trees = (0..settings.trees).map(tree).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    Ok(Box::new(BetreePeer { engine, trees }))
}

impl BetreePeer {
    fn tree(&self, tree: Tree) -> TreeId {
        self.trees[tree.place() as usize]
    }

    fn put_all(&self, batch: &Batch) -> Result<(), StorageError> {
        let mut writer = self.engine.begin(Begin::WRITE)?;
        for (tree, key, value) in batch.iter() {
            if tree == DOCUMENTS {
                writer.put(self.tree(tree), key, value)?;
            } else {
                writer.put_blind(self.tree(tree), key, value)?;
            }
        }
        writer.commit(Durability::Logged)?;
        Ok(())
    }
}

impl Peer for BetreePeer {
    fn write(&self, batch: &Batch) -> Result<(), BenchError> {
        self.put_all(batch).map_err(failed(NAME, "writing a batch"))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError> {
        let transaction = self.engine.begin(Begin::READ).map_err(failed(NAME, "beginning to read"))?;
        Ok(Box::new(BetreeReader { peer: self, transaction }))
    }

    /// The engine syncs its log within 100 ms by itself.
    fn sync(&self) -> Result<(), BenchError> {
        Ok(())
    }

    fn drain(&self) -> Result<(), BenchError> {
        self.engine.checkpoint().map_err(failed(NAME, "draining"))
    }

    fn compact(&self) -> Result<(), BenchError> {
        self.engine.compact(&[], &pando_storage::Operation::default()).map_err(failed(NAME, "compacting"))
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let waits = self.engine.waits();
        let waits = waits.iter().map(|wait| (format!("waits.{}.micros", wait.name), wait.micros));
        let statistics = self.engine.statistics();
        statistics.iter().map(|(name, value)| (name.to_owned(), value)).chain(waits).collect()
    }
}

struct BetreeReader<'p> {
    peer: &'p BetreePeer,
    transaction: Box<dyn Transaction>,
}

impl Reader for BetreeReader<'_> {
    fn get(&self, tree: Tree, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let value = self
            .transaction
            .get(self.peer.tree(tree), key, BlockingMode::MayBlock)
            .map_err(failed(NAME, "reading a key"))?;
        Ok(value.inspect(|value| see(value)).is_some())
    }

    fn scan(&self, tree: Tree, from: &[u8], rows: usize, see: SeeRow<'_>) -> Result<usize, BenchError> {
        let lower = std::ops::Bound::Included(from.to_vec());
        let range = KeyRange { lower, ..KeyRange::all() };
        let mut cursor = Cursor::new(self.peer.tree(tree), range, Direction::Forward).expecting(rows);
        for seen in 0..rows {
            match cursor.next(&*self.transaction, BlockingMode::MayBlock).map_err(failed(NAME, "scanning"))? {
                Some((key, value)) => see(key, value),
                None => return Ok(seen),
            }
        }
        Ok(rows)
    }
}
