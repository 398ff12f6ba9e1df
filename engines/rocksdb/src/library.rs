//! RocksDB's objects with their lifetimes: the database, its column families, and snapshots that any thread
//! may keep.
//!
//! The crate `rocksdb` ties snapshots and handles of column families to a borrow of the database. Here each
//! holds a share of the database instead, so that a transaction may own it. All unsafe code of the engine is
//! in this module.

use std::sync::{Arc, OnceLock};

use pando_storage::{BlockingMode, SnapshotTimestamp};
use rocksdb::{
    BoundColumnFamily, DBWithThreadMode, MultiThreaded, ReadOptions, ReadTier, SnapshotWithThreadMode,
};

use crate::failure::corrupt;
use crate::layout::FamilyRange;
use crate::options::TreeSettings;

/// An open database.
pub(crate) type Database = DBWithThreadMode<MultiThreaded>;

/// A column family: the trees of one set of options.
pub(crate) struct Family {
    /// Dropped before the database, as fields are in their order.
    handle: Arc<BoundColumnFamily<'static>>,
    pub(crate) settings: TreeSettings,
    _database: Arc<Database>,
}

impl Family {
    /// The column family of this name, which must be open.
    pub(crate) fn open(
        database: &Arc<Database>,
        name: &str,
        settings: TreeSettings,
    ) -> Result<Family, pando_storage::StorageError> {
        let handle = database
            .cf_handle(name)
            .ok_or_else(|| corrupt(format!("the column family `{name}` is missing")))?;
        // SAFETY: the handle is valid while the database is open. The database is behind an `Arc`, a share of
        // which is kept beside the handle and dropped after it.
        let handle = unsafe {
            std::mem::transmute::<Arc<BoundColumnFamily<'_>>, Arc<BoundColumnFamily<'static>>>(handle)
        };
        Ok(Family { handle, settings, _database: Arc::clone(database) })
    }

    /// RocksDB's handle.
    pub(crate) fn handle(&self) -> &Arc<BoundColumnFamily<'static>> {
        &self.handle
    }
}

/// A snapshot of RocksDB with the number of the last write that it sees.
pub(crate) struct Snapshot {
    /// Options of gets: made at the first one.
    waiting: OnceLock<ReadOptions>,
    cached: OnceLock<ReadOptions>,
    /// Dropped before the database, as fields are in their order.
    inner: SnapshotWithThreadMode<'static, Database>,
    timestamp: SnapshotTimestamp,
    _database: Arc<Database>,
}

impl Snapshot {
    /// The newest state, which has this number. No write may be under way.
    pub(crate) fn take(database: &Arc<Database>, number: u64) -> Snapshot {
        let inner = database.snapshot();
        // SAFETY: the snapshot refers to the database, which lies behind an `Arc` and does not move. A share
        // of it is kept beside the snapshot and dropped after it.
        let inner = unsafe {
            std::mem::transmute::<
                SnapshotWithThreadMode<'_, Database>,
                SnapshotWithThreadMode<'static, Database>,
            >(inner)
        };
        let timestamp = SnapshotTimestamp::new(number);
        let (waiting, cached) = (OnceLock::new(), OnceLock::new());
        Snapshot { waiting, cached, inner, timestamp, _database: Arc::clone(database) }
    }

    /// The newest commit that it sees.
    pub(crate) fn timestamp(&self) -> SnapshotTimestamp {
        self.timestamp
    }

    /// Options for a get of this snapshot.
    pub(crate) fn get_options(&self, blocking: BlockingMode) -> &ReadOptions {
        let options = match blocking {
            BlockingMode::MayBlock => &self.waiting,
            BlockingMode::CachedOnly => &self.cached,
        };
        options.get_or_init(|| self.read_options(blocking))
    }

    /// Options for an iterator over a range of this snapshot.
    pub(crate) fn scan_options(&self, blocking: BlockingMode, range: FamilyRange) -> ReadOptions {
        let mut options = self.read_options(blocking);
        options.set_iterate_lower_bound(range.lower);
        options.set_iterate_upper_bound(range.upper);
        options
    }

    fn read_options(&self, blocking: BlockingMode) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_snapshot(&self.inner);
        if blocking == BlockingMode::CachedOnly {
            options.set_read_tier(ReadTier::BlockCache);
        }
        options
    }
}

/// Stands in for a function that libraries before version 8 lack. The crate `rocksdb` refers to it in code
/// that frees options, and calls it for a manager of write buffers only, which this engine never makes.
#[cfg(lacks_write_buffer_manager)]
// SAFETY: no other function of the program has this name, as the library lacks it.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_write_buffer_manager_destroy(_: *mut std::ffi::c_void) {
    unreachable!("the engine makes no manager of write buffers");
}
