//! LMDB, through `heed`: a named database per tree, without readahead, since what is read is anywhere.
//!
//! LMDB has no cache of its own: its map is the kernel's page cache, which the memory cap bounds, and nothing
//! else does.

use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithoutTls};

use crate::batch::Batch;
use crate::data::Tree;
use crate::error::{BenchError, failed};
use crate::peer::{Peer, PeerSettings, Reader, SeeRow};

const NAME: &str = "LMDB";
/// Address space only: more than any run of this tool needs.
const MAP_BYTES: usize = 256 << 30;
const READERS_MAX: u32 = 256;

type Table = Database<'static, Bytes, Bytes>;

struct LmdbPeer {
    env: Env<WithoutTls>,
    tables: Vec<Table>,
}

pub fn open(folder: &Path, settings: PeerSettings) -> Result<Box<dyn Peer>, BenchError> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(MAP_BYTES).max_readers(READERS_MAX).max_dbs(settings.trees);
    // SAFETY: NO_SYNC leaves syncing to `Peer::sync`; the folder is this process's own, and nothing else
    // touches the file or opens it a second time.
    let env = unsafe {
        options.flags(EnvFlags::NO_SYNC | EnvFlags::NO_READ_AHEAD);
        options.open(folder)
    };
    let env = env.map_err(failed(NAME, "opening the store"))?;
    let tables = (0..settings.trees)
        .map(|place| open_table(&env, &Tree::new(place).name()))
        .collect::<Result<_, _>>()
        .map_err(failed(NAME, "opening the tables"))?;
    Ok(Box::new(LmdbPeer { env, tables }))
}

fn open_table(env: &Env<WithoutTls>, name: &str) -> Result<Table, heed::Error> {
    let writer = env.write_txn()?;
    let created = env.create_databases_and_commit(writer, |opener, writer| {
        opener.create_database::<Bytes, Bytes>(writer, Some(name)).map(CommitOrAbort::<_, ()>::Commit)
    })?;
    Ok(created.commit().expect("the closure commits"))
}

impl LmdbPeer {
    fn put_all(&self, batch: &Batch) -> Result<(), heed::Error> {
        let mut writer = self.env.write_txn()?;
        for (tree, key, value) in batch.iter() {
            self.tables[tree.place() as usize].put(&mut writer, key, value)?;
        }
        writer.commit()
    }
}

impl Peer for LmdbPeer {
    fn write(&self, batch: &Batch) -> Result<(), BenchError> {
        self.put_all(batch).map_err(failed(NAME, "writing a batch"))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError> {
        let transaction = self.env.read_txn().map_err(failed(NAME, "beginning to read"))?;
        Ok(Box::new(LmdbReader { tables: &self.tables, transaction }))
    }

    fn sync(&self) -> Result<(), BenchError> {
        self.env.force_sync().map_err(failed(NAME, "syncing"))
    }

    fn drain(&self) -> Result<(), BenchError> {
        self.sync()
    }
}

struct LmdbReader<'p> {
    tables: &'p [Table],
    transaction: RoTxn<'p, WithoutTls>,
}

impl Reader for LmdbReader<'_> {
    fn get(&self, tree: Tree, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let table = &self.tables[tree.place() as usize];
        let value = table.get(&self.transaction, key).map_err(failed(NAME, "reading a key"))?;
        Ok(value.inspect(|value| see(value)).is_some())
    }

    fn scan(&self, tree: Tree, from: &[u8], rows: usize, see: SeeRow<'_>) -> Result<usize, BenchError> {
        let mut scan = || -> Result<usize, heed::Error> {
            // LMDB knows no empty key.
            let lower = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
            let range = (lower, Bound::Unbounded);
            let mut seen = 0;
            for entry in self.tables[tree.place() as usize].range(&self.transaction, &range)?.take(rows) {
                let (key, value) = entry?;
                see(key, value);
                seen += 1;
            }
            Ok(seen)
        };
        scan().map_err(failed(NAME, "scanning"))
    }
}
