//! Figures: sizes of trees and of the store, and WiredTiger's counters under the names of this engine.

use std::path::Path;
use std::sync::atomic::Ordering;

use pando_environment::{Access, Environment, OpenMode};
use pando_storage::{Statistics, StorageError, TreeId};
use pando_wiredtiger_sys as sys;

use crate::failure::environment_failed;
use crate::library::c_text;
use crate::store::Store;

/// Figures of the database: the name, which all engines have for the same thing, and the number of
/// WiredTiger's.
const OF_STORE: [(&str, u32); 24] = [
    ("cache.dirty_bytes", sys::WT_STAT_CONN_CACHE_BYTES_DIRTY),
    ("cache.evictions_by_callers", sys::WT_STAT_CONN_CACHE_EVICTION_APP),
    ("cache.evictions_clean", sys::WT_STAT_CONN_CACHE_EVICTION_CLEAN),
    ("cache.evictions_dirty", sys::WT_STAT_CONN_CACHE_EVICTION_DIRTY),
    ("cache.limit_bytes", sys::WT_STAT_CONN_CACHE_BYTES_MAX),
    ("cache.lookaside_entries", sys::WT_STAT_CONN_CACHE_LOOKASIDE_ENTRIES),
    ("cache.misses", sys::WT_STAT_CONN_CACHE_READ),
    ("cache.page_bytes", sys::WT_STAT_CONN_CACHE_BYTES_INUSE),
    ("cache.pages", sys::WT_STAT_CONN_CACHE_PAGES_INUSE),
    ("cache.read_bytes", sys::WT_STAT_CONN_CACHE_BYTES_READ),
    ("cache.requests", sys::WT_STAT_CONN_CACHE_PAGES_REQUESTED),
    ("cache.write_bytes", sys::WT_STAT_CONN_CACHE_BYTES_WRITE),
    ("cache.writes", sys::WT_STAT_CONN_CACHE_WRITE),
    ("checkpoints.count", sys::WT_STAT_CONN_TXN_CHECKPOINT),
    ("checkpoints.last_millis", sys::WT_STAT_CONN_TXN_CHECKPOINT_TIME_RECENT),
    (CHECKPOINT_MILLIS, sys::WT_STAT_CONN_TXN_CHECKPOINT_TIME_TOTAL),
    ("data.files_open", sys::WT_STAT_CONN_FILE_OPEN),
    ("data.read_bytes", sys::WT_STAT_CONN_BLOCK_BYTE_READ),
    ("data.reads", sys::WT_STAT_CONN_READ_IO),
    ("data.write_bytes", sys::WT_STAT_CONN_BLOCK_BYTE_WRITE),
    ("data.writes", sys::WT_STAT_CONN_WRITE_IO),
    ("log.syncs", sys::WT_STAT_CONN_LOG_SYNC),
    ("log.write_bytes", sys::WT_STAT_CONN_LOG_BYTES_WRITTEN),
    ("log.writes", sys::WT_STAT_CONN_LOG_WRITES),
];
/// The time that checkpoints took.
const CHECKPOINT_MILLIS: &str = "checkpoints.millis";

/// Figures of a table.
const OF_TREE: [(&str, u32); 10] = [
    ("cache.misses", sys::WT_STAT_DSRC_CACHE_READ),
    ("cache.page_bytes", sys::WT_STAT_DSRC_CACHE_BYTES_INUSE),
    ("cache.requests", sys::WT_STAT_DSRC_CACHE_PAGES_REQUESTED),
    ("cache.writes", sys::WT_STAT_DSRC_CACHE_WRITE),
    ("file_bytes", sys::WT_STAT_DSRC_BLOCK_SIZE),
    ("file_free_bytes", sys::WT_STAT_DSRC_BLOCK_REUSE_BYTES),
    ("height", sys::WT_STAT_DSRC_BTREE_MAXIMUM_DEPTH),
    ("lsm.bloom_bytes", sys::WT_STAT_DSRC_BLOOM_SIZE),
    ("lsm.chunks", sys::WT_STAT_DSRC_LSM_CHUNK_COUNT),
    ("lsm.generation_max", sys::WT_STAT_DSRC_LSM_GENERATION_MAX),
];

/// The figures of the engine and of WiredTiger. A closed engine has only its own.
pub(crate) fn statistics(store: &Store) -> Statistics {
    let mut statistics = Statistics::new();
    statistics.set("commits.newest", store.newest.load(Ordering::Acquire));
    statistics.set("commits.synced", store.sync_state.synced().get());
    statistics.set("intents.entries", store.intents.len() as u64);
    statistics.set("read_claims.ranges", store.read_claims.ranges() as u64);
    statistics.set("read_claims.transactions", store.read_claims.readers() as u64);
    statistics.set("sessions.in_use", u64::from(store.sessions.lent()));
    statistics.set("transactions.live", store.live.lock().len() as u64);
    statistics.set("trees.count", store.trees.read().listed().count() as u64);
    let numbers = OF_STORE.map(|(_, number)| number);
    let values = store.with_session("reading figures", |session| {
        session.statistics(c"statistics:", c"statistics=(fast)", &numbers)
    });
    for ((name, _), value) in OF_STORE.iter().zip(values.unwrap_or_default()) {
        match *name {
            CHECKPOINT_MILLIS => statistics.set("checkpoints.nanos", value.saturating_mul(1_000_000)),
            name => statistics.set(name, value),
        }
    }
    statistics
}

/// The figures of one tree.
pub(crate) fn tree_statistics(store: &Store, tree: TreeId) -> Result<Statistics, StorageError> {
    store.check_open()?;
    let table = store.trees.read().table(tree)?;
    let numbers = OF_TREE.map(|(_, number)| number);
    let uri = c_text(&format!("statistics:{}", table.uri.to_string_lossy()));
    let values = store.with_session("reading figures of a tree", |session| {
        session.statistics(&uri, c"statistics=(fast)", &numbers)
    })?;
    let mut statistics = Statistics::new();
    let size = table.size();
    statistics.set("entries", size.entries);
    statistics.set("content_bytes", size.bytes);
    OF_TREE.iter().zip(values).for_each(|((name, _), value)| statistics.set(name, value));
    Ok(statistics)
}

/// Bytes of the files of a tree. WiredTiger tells it without opening them.
pub(crate) fn tree_bytes(store: &Store, tree: TreeId) -> Result<u64, StorageError> {
    store.check_open()?;
    let table = store.trees.read().table(tree)?;
    let uri = c_text(&format!("statistics:{}", table.uri.to_string_lossy()));
    let sizes = store.with_session("measuring a tree", |session| {
        session.statistics(&uri, c"statistics=(size)", &[sys::WT_STAT_DSRC_BLOCK_SIZE])
    })?;
    Ok(sizes.first().copied().unwrap_or(0))
}

/// Bytes of all files in WiredTiger's folder.
pub(crate) fn store_bytes(environment: &Environment, folder: &Path) -> Result<u64, StorageError> {
    let failed = |error| environment_failed("cannot measure WiredTiger's files", error);
    let files = environment.files();
    let mut bytes = 0;
    for name in files.list(folder).map_err(failed)? {
        // The library removes files of its journal and of merged chunks meanwhile.
        if let Ok(file) = files.open(&folder.join(name), OpenMode::ReadOnly, Access::Buffered) {
            bytes += file.length().map_err(failed)?;
        }
    }
    Ok(bytes)
}
