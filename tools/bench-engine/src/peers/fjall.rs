//! fjall: a keyspace per tree, with LZ4, which is what it can.
//!
//! Write buffers are a keyspace's own and beside the cache; a quarter of the cache's size is spread over
//! them, and the block cache gets the rest. Its journal may not be smaller than 64 MiB.

use std::path::Path;
use std::time::Duration;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot};

use crate::batch::Batch;
use crate::data::Tree;
use crate::error::{BenchError, failed};
use crate::peer::{Peer, PeerSettings, Reader, SeeRow};

const NAME: &str = "fjall";
const WRITE_BUFFERS_SHARE: u64 = 4;
const WRITE_BUFFER_BYTES_MIN: u64 = 1 << 20;
const JOURNAL_BYTES: u64 = 64 << 20;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

struct FjallPeer {
    db: Database,
    keyspaces: Vec<Keyspace>,
}

pub fn open(folder: &Path, settings: PeerSettings) -> Result<Box<dyn Peer>, BenchError> {
    let buffers = settings.cache_bytes / WRITE_BUFFERS_SHARE;
    // One that is written to and one that is being flushed.
    let buffer = (buffers / u64::from(settings.trees) / 2).max(WRITE_BUFFER_BYTES_MIN);
    let db = Database::builder(folder)
        .cache_size(settings.cache_bytes - buffers)
        .max_journaling_size(JOURNAL_BYTES)
        .open()
        .map_err(failed(NAME, "opening the store"))?;
    let options = || KeyspaceCreateOptions::default().max_memtable_size(buffer);
    let keyspaces = (0..settings.trees)
        .map(|place| db.keyspace(&Tree::new(place).name(), options))
        .collect::<Result<_, _>>()
        .map_err(failed(NAME, "opening the keyspaces"))?;
    Ok(Box::new(FjallPeer { db, keyspaces }))
}

impl FjallPeer {
    fn keyspace(&self, tree: Tree) -> &Keyspace {
        &self.keyspaces[tree.place() as usize]
    }
}

impl Peer for FjallPeer {
    fn write(&self, batch: &Batch) -> Result<(), BenchError> {
        let mut writes = self.db.batch().durability(Some(PersistMode::Buffer));
        for (tree, key, value) in batch.iter() {
            writes.insert(self.keyspace(tree), key, value);
        }
        writes.commit().map_err(failed(NAME, "writing a batch"))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError> {
        Ok(Box::new(FjallReader { peer: self, snapshot: self.db.snapshot() }))
    }

    fn sync(&self) -> Result<(), BenchError> {
        self.db.persist(PersistMode::SyncData).map_err(failed(NAME, "syncing"))
    }

    fn drain(&self) -> Result<(), BenchError> {
        for keyspace in &self.keyspaces {
            keyspace.rotate_memtable_and_wait().map_err(failed(NAME, "draining"))?;
        }
        // Compactions start one another: quiet is what stays quiet.
        let mut quiet = 0;
        while quiet < 20 {
            let busy = self.db.outstanding_flushes() > 0 || self.db.active_compactions() > 0;
            quiet = if busy { 0 } else { quiet + 1 };
            std::thread::sleep(LOOK_AGAIN);
        }
        self.sync()
    }
}

struct FjallReader<'p> {
    peer: &'p FjallPeer,
    snapshot: Snapshot,
}

impl Reader for FjallReader<'_> {
    fn get(&self, tree: Tree, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let value =
            self.snapshot.get(self.peer.keyspace(tree), key).map_err(failed(NAME, "reading a key"))?;
        Ok(value.inspect(|value| see(value)).is_some())
    }

    fn scan(&self, tree: Tree, from: &[u8], rows: usize, see: SeeRow<'_>) -> Result<usize, BenchError> {
        let mut seen = 0;
        for entry in self.snapshot.range(self.peer.keyspace(tree), from..).take(rows) {
            let (key, value) = entry.into_inner().map_err(failed(NAME, "scanning"))?;
            see(&key, &value);
            seen += 1;
        }
        Ok(seen)
    }
}
