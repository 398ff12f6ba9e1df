//! An engine behind the contract of `storage`, as the catalog uses it: documents with intents, index entries
//! blind.

use std::collections::BTreeMap;

use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, KeyRange, SharedEngine, StorageError, Transaction,
    TreeId, TreeOptions,
};

use crate::batch::Batch;
use crate::data::{DOCUMENTS, Tree};
use crate::error::{BenchError, failed};
use crate::peer::{Peer, Reader, SeeRow};

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
        self.engine.checkpoint().map_err(failed(self.name, "draining"))
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
