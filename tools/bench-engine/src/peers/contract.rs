//! An engine behind the contract of `storage`, as the catalog uses it: documents with intents, index entries
//! blind.

use std::collections::BTreeMap;
use std::time::Duration;

use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, KeyRange, SharedEngine, StorageError, Transaction,
    TreeId, TreeOptions,
};

use crate::batch::Batch;
use crate::data::{DOCUMENTS, Tree};
use crate::error::{BenchError, failed};
use crate::peer::{Peer, Reader, SeeRow};

const LOOK_AGAIN: Duration = Duration::from_millis(10);
const LOOKS_UNTIL_QUIET: u32 = 20;
/// Figures of an engine that are 0 when it has nothing to do in the background; not all engines have them.
const BUSY: [&str; 2] = ["buffers.waiting", "compactions.running"];

/// See the module's head.
pub struct ContractPeer {
    name: &'static str,
    engine: SharedEngine,
    trees: Vec<TreeId>,
}

impl ContractPeer {
    /// The peer of an open engine, with so many trees, which are made where they do not exist.
    pub fn new(
        name: &'static str,
        engine: SharedEngine,
        trees: u32,
        layout: &TreeOptions,
    ) -> Result<ContractPeer, BenchError> {
        let failed = |error| failed(name, "opening the store")(error);
        let known: BTreeMap<String, TreeId> =
            engine.list_trees().map_err(failed)?.into_iter().map(|tree| (tree.name, tree.id)).collect();
        let tree = |place| {
            let name = Tree::new(place).name();
            known.get(&name).map_or_else(|| engine.create_tree(&name, layout), |id| Ok(*id))
        };
        let trees = (0..trees).map(tree).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        Ok(ContractPeer { name, engine, trees })
    }

    fn tree(&self, tree: Tree) -> TreeId {
        self.trees[tree.place() as usize]
    }

    fn is_busy(&self) -> bool {
        let statistics = self.engine.statistics();
        BUSY.iter().any(|name| statistics.get(name).is_some_and(|value| value > 0))
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

impl Peer for ContractPeer {
    fn write(&self, batch: &Batch) -> Result<(), BenchError> {
        self.put_all(batch).map_err(failed(self.name, "writing a batch"))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError> {
        let transaction = self.engine.begin(Begin::READ).map_err(failed(self.name, "beginning to read"))?;
        Ok(Box::new(ContractReader { peer: self, transaction }))
    }

    /// The engine syncs its log within 100 ms by itself.
    fn sync(&self) -> Result<(), BenchError> {
        Ok(())
    }

    fn drain(&self) -> Result<(), BenchError> {
        self.engine.checkpoint().map_err(failed(self.name, "draining"))?;
        // As the bare library: its compactions start one another, and quiet is what stays quiet.
        let mut quiet = 0;
        while quiet < LOOKS_UNTIL_QUIET {
            quiet = if self.is_busy() { 0 } else { quiet + 1 };
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    fn compact(&self) -> Result<(), BenchError> {
        self.engine
            .compact(&[], &pando_storage::Operation::default())
            .map_err(failed(self.name, "compacting"))
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let waits = self.engine.waits();
        let waits = waits.iter().map(|wait| (format!("waits.{}.micros", wait.name), wait.micros));
        let statistics = self.engine.statistics();
        statistics.iter().map(|(name, value)| (name.to_owned(), value)).chain(waits).collect()
    }
}

struct ContractReader<'p> {
    peer: &'p ContractPeer,
    transaction: Box<dyn Transaction>,
}

impl Reader for ContractReader<'_> {
    fn get(&self, tree: Tree, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let value = self
            .transaction
            .get(self.peer.tree(tree), key, BlockingMode::MayBlock)
            .map_err(failed(self.peer.name, "reading a key"))?;
        Ok(value.inspect(|value| see(value)).is_some())
    }

    fn scan(&self, tree: Tree, from: &[u8], rows: usize, see: SeeRow<'_>) -> Result<usize, BenchError> {
        let lower = std::ops::Bound::Included(from.to_vec());
        let range = KeyRange { lower, ..KeyRange::all() };
        let mut cursor = Cursor::new(self.peer.tree(tree), range, Direction::Forward).expecting(rows);
        for seen in 0..rows {
            match cursor
                .next(&*self.transaction, BlockingMode::MayBlock)
                .map_err(failed(self.peer.name, "scanning"))?
            {
                Some((key, value)) => see(key, value),
                None => return Ok(seen),
            }
        }
        Ok(rows)
    }
}
