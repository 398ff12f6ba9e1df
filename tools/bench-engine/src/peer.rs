//! A peer: a storage engine as this tool sees it. Small on purpose: what all of them can do, in the way each
//! does it best.

use std::collections::BTreeMap;
use std::path::Path;

use crate::batch::Batch;
use crate::data::Tree;
use crate::error::BenchError;
use crate::peers;
use crate::peers::betree::Buffers;

/// An open store. Dropping it ends it without draining, as a killed process would, as far as the library
/// allows.
pub trait Peer: Send + Sync {
    /// Writes a batch in one transaction: all or nothing, visible when this returns.
    fn write(&self, batch: &Batch) -> Result<(), BenchError>;

    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError>;

    /// Brings everything that was written to the device, as far as a power cut goes. Called every 100 ms.
    fn sync(&self) -> Result<(), BenchError>;

    /// Returns once no work is left to do in the background, and everything is on the device.
    fn drain(&self) -> Result<(), BenchError>;

    /// Makes the store as small as the library can while it is open, and returns once it is.
    fn compact(&self) -> Result<(), BenchError> {
        self.drain()
    }

    /// The library's own counters.
    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

/// Is shown the key and the value of each row of a scan.
pub type SeeRow<'s> = &'s mut dyn FnMut(&[u8], &[u8]);

/// A reader: one state of the store.
pub trait Reader {
    /// Shows the value of a key; false if it is not there.
    fn get(&self, tree: Tree, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError>;

    /// Shows so many entries from a key on, in order; gives how many there were.
    fn scan(&self, tree: Tree, from: &[u8], rows: usize, see: SeeRow<'_>) -> Result<usize, BenchError>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerKind {
    Betree,
    /// The same without buffers in its nodes (`bufferPercent` 0): every merge goes to leaves, as in a B-tree.
    Btree,
    Rocksdb,
    /// RocksDB behind the contract of `storage`, as Pando uses it.
    #[serde(rename = "rocksdb-engine")]
    RocksdbEngine,
    Lmdb,
    /// LMDB behind the contract.
    #[serde(rename = "lmdb-engine")]
    LmdbEngine,
    /// WiredTiger with B-trees.
    Wiredtiger,
    /// The same behind the contract.
    #[serde(rename = "wiredtiger-engine")]
    WiredtigerEngine,
    Redb,
    Fjall,
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// Of `betree` and `btree`: options of the trees that are made, by name.
    pub layout: Vec<(String, String)>,
    /// The size of its own caches and write buffers, in bytes.
    pub cache_bytes: u64,
    /// Its trees, made where they do not exist.
    pub trees: u32,
    /// Of `betree`: bytes of log that may be left for recovery; 0 is the default.
    pub log_bytes: u64,
}

impl PeerKind {
    /// All that are in this build.
    pub fn built() -> Vec<PeerKind> {
        let all = [
            (PeerKind::Betree, true),
            (PeerKind::Btree, true),
            (PeerKind::Rocksdb, cfg!(feature = "rocksdb")),
            (PeerKind::RocksdbEngine, cfg!(feature = "rocksdb-engine")),
            (PeerKind::Lmdb, cfg!(feature = "lmdb")),
            (PeerKind::LmdbEngine, cfg!(feature = "lmdb-engine")),
            (PeerKind::Wiredtiger, cfg!(feature = "wiredtiger")),
            (PeerKind::WiredtigerEngine, cfg!(feature = "wiredtiger-engine")),
            (PeerKind::Redb, cfg!(feature = "redb")),
            (PeerKind::Fjall, cfg!(feature = "fjall")),
        ];
        all.into_iter().filter(|(_, built)| *built).map(|(kind, _)| kind).collect()
    }

    pub fn name(self) -> &'static str {
        match self {
            PeerKind::Betree => "betree",
            PeerKind::Btree => "btree",
            PeerKind::Rocksdb => "rocksdb",
            PeerKind::RocksdbEngine => "rocksdb-engine",
            PeerKind::Lmdb => "lmdb",
            PeerKind::LmdbEngine => "lmdb-engine",
            PeerKind::Wiredtiger => "wiredtiger",
            PeerKind::WiredtigerEngine => "wiredtiger-engine",
            PeerKind::Redb => "redb",
            PeerKind::Fjall => "fjall",
        }
    }

    /// Its name as its makers write it.
    pub fn title(self) -> &'static str {
        match self {
            PeerKind::Betree => "betree",
            PeerKind::Btree => "betree as B-tree",
            PeerKind::Rocksdb => "RocksDB",
            PeerKind::RocksdbEngine => "RocksDB behind the contract",
            PeerKind::Lmdb => "LMDB",
            PeerKind::LmdbEngine => "LMDB behind the contract",
            PeerKind::Wiredtiger => "WiredTiger",
            PeerKind::WiredtigerEngine => "WiredTiger behind the contract",
            PeerKind::Redb => "redb",
            PeerKind::Fjall => "fjall",
        }
    }

    pub fn parse(name: &str) -> Result<PeerKind, BenchError> {
        let built = PeerKind::built();
        built.iter().copied().find(|kind| kind.name() == name).ok_or_else(|| BenchError::UnknownPeer {
            name: name.to_owned(),
            built: built.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "),
        })
    }

    /// The bare library below an engine that stands behind the contract.
    pub fn bare_library(self) -> Option<PeerKind> {
        match self {
            PeerKind::RocksdbEngine => Some(PeerKind::Rocksdb),
            PeerKind::LmdbEngine => Some(PeerKind::Lmdb),
            PeerKind::WiredtigerEngine => Some(PeerKind::Wiredtiger),
            _ => None,
        }
    }

    /// The meaning of an acknowledged batch, beside the sync every 100 ms.
    pub fn durability(self) -> &'static str {
        match self {
            PeerKind::Betree | PeerKind::Btree => "log record in the kernel",
            PeerKind::Rocksdb | PeerKind::RocksdbEngine => "log record in the kernel (sync = false)",
            PeerKind::Lmdb | PeerKind::LmdbEngine => "pages in the kernel (NOSYNC)",
            PeerKind::Wiredtiger | PeerKind::WiredtigerEngine => "journal in the kernel (log_flush)",
            PeerKind::Redb => "in memory only (Durability::None)",
            PeerKind::Fjall => "journal in the kernel (PersistMode::Buffer)",
        }
    }

    /// Whether the device's bytes are read past the kernel's page cache.
    pub fn reads_directly(self) -> bool {
        matches!(self, PeerKind::Betree | PeerKind::Btree | PeerKind::Rocksdb | PeerKind::RocksdbEngine)
    }

    /// Whether ten thousand trees can be asked of it: RocksDB's are prefixes here, which cost nothing, and
    /// fjall syncs several files for each (200 take 17 s to make).
    pub fn suits_many_trees(self) -> bool {
        !matches!(self, PeerKind::Rocksdb | PeerKind::Fjall)
    }

    pub fn open(self, folder: &Path, settings: PeerSettings) -> Result<Box<dyn Peer>, BenchError> {
        std::fs::create_dir_all(folder).map_err(crate::error::on_file("make the folder", folder))?;
        match self {
            PeerKind::Betree => peers::betree::open(folder, settings, Buffers::InNodes),
            PeerKind::Btree => peers::betree::open(folder, settings, Buffers::None),
            #[cfg(feature = "rocksdb")]
            PeerKind::Rocksdb => peers::rocksdb::open(folder, settings),
            #[cfg(feature = "rocksdb-engine")]
            PeerKind::RocksdbEngine => peers::rocksdb_engine::open(folder, settings),
            #[cfg(feature = "lmdb")]
            PeerKind::Lmdb => peers::lmdb::open(folder, settings),
            #[cfg(feature = "lmdb-engine")]
            PeerKind::LmdbEngine => peers::lmdb_engine::open(folder, settings),
            #[cfg(feature = "wiredtiger")]
            PeerKind::Wiredtiger => peers::wiredtiger::open(folder, settings),
            #[cfg(feature = "wiredtiger-engine")]
            PeerKind::WiredtigerEngine => peers::wiredtiger_engine::open(folder, settings),
            #[cfg(feature = "redb")]
            PeerKind::Redb => peers::redb::open(folder, settings),
            #[cfg(feature = "fjall")]
            PeerKind::Fjall => peers::fjall::open(folder, settings),
            #[cfg(not(all(
                feature = "rocksdb-engine",
                feature = "lmdb-engine",
                feature = "wiredtiger-engine",
                feature = "redb",
                feature = "fjall"
            )))]
            other => PeerKind::parse(other.name()).and_then(|kind| kind.open(folder, settings)),
        }
    }
}
