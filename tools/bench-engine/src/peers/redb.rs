//! redb: a table per tree. Its commits are either on the device at once or only in memory until a later one
//! is; here they are in memory, with one to the device every 100 ms.

use std::path::Path;

use redb::{Database, Durability, ReadTransaction, ReadableDatabase, TableDefinition};

use crate::batch::Batch;
use crate::data::Tree;
use crate::error::{BenchError, failed};
use crate::peer::{Peer, PeerSettings, Reader, SeeRow};

const NAME: &str = "redb";
const FILE: &str = "data.redb";

struct RedbPeer {
    db: Database,
    names: Vec<String>,
}

type Definition<'n> = TableDefinition<'n, &'static [u8], &'static [u8]>;

pub fn open(folder: &Path, settings: PeerSettings) -> Result<Box<dyn Peer>, BenchError> {
    let db = Database::builder()
        .set_cache_size(settings.cache_bytes as usize)
        .create(folder.join(FILE))
        .map_err(failed(NAME, "opening the store"))?;
    let peer = RedbPeer { db, names: (0..settings.trees).map(|place| Tree::new(place).name()).collect() };
    peer.create_tables().map_err(failed(NAME, "making the tables"))?;
    Ok(Box::new(peer))
}

impl RedbPeer {
    fn create_tables(&self) -> Result<(), redb::Error> {
        let writer = self.db.begin_write()?;
        for name in &self.names {
            writer.open_table(Definition::new(name))?;
        }
        Ok(writer.commit()?)
    }

    fn put_all(&self, batch: &Batch) -> Result<(), redb::Error> {
        let mut writer = self.db.begin_write()?;
        writer.set_durability(Durability::None)?;
        let mut places: Vec<u32> = batch.iter().map(|(tree, _, _)| tree.place()).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let mut table = writer.open_table(Definition::new(&self.names[place as usize]))?;
            for (_, key, value) in batch.iter().filter(|(tree, _, _)| tree.place() == place) {
                table.insert(key, value)?;
            }
        }
        Ok(writer.commit()?)
    }
}

impl Peer for RedbPeer {
    fn write(&self, batch: &Batch) -> Result<(), BenchError> {
        self.put_all(batch).map_err(failed(NAME, "writing a batch"))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError> {
        let transaction = self.db.begin_read().map_err(failed(NAME, "beginning to read"))?;
        Ok(Box::new(RedbReader { names: &self.names, transaction }))
    }

    fn sync(&self) -> Result<(), BenchError> {
        let sync = || -> Result<(), redb::Error> {
            let mut writer = self.db.begin_write()?;
            writer.set_durability(Durability::Immediate)?;
            Ok(writer.commit()?)
        };
        sync().map_err(failed(NAME, "syncing"))
    }

    fn drain(&self) -> Result<(), BenchError> {
        self.sync()
    }
}

struct RedbReader<'p> {
    names: &'p [String],
    transaction: ReadTransaction,
}

impl Reader for RedbReader<'_> {
    fn get(&self, tree: Tree, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let mut get = || -> Result<bool, redb::Error> {
            let table = self.transaction.open_table(Definition::new(&self.names[tree.place() as usize]))?;
            Ok(table.get(key)?.inspect(|value| see(value.value())).is_some())
        };
        get().map_err(failed(NAME, "reading a key"))
    }

    fn scan(&self, tree: Tree, from: &[u8], rows: usize, see: SeeRow<'_>) -> Result<usize, BenchError> {
        let mut scan = || -> Result<usize, redb::Error> {
            let table = self.transaction.open_table(Definition::new(&self.names[tree.place() as usize]))?;
            let mut seen = 0;
            for entry in table.range(from..)?.take(rows) {
                let (key, value) = entry?;
                see(key.value(), value.value());
                seen += 1;
            }
            Ok(seen)
        };
        scan().map_err(failed(NAME, "scanning"))
    }
}
