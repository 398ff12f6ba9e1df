//! The engine's figures, by the names that all engines have for the same things.
//!
//! RocksDB's counters come as one text, by its own names. They are there where the option `statistics` is on.

use pando_storage::{BlockingMode, Statistics, StorageError, TreeId, Wait};
use rocksdb::properties;

use crate::store::Store;

/// Counters of RocksDB, and the names here.
const COUNTERS: [(&str, &str); 14] = [
    ("rocksdb.block.cache.hit", "cache.hits"),
    ("rocksdb.block.cache.miss", "cache.misses"),
    ("rocksdb.bloom.filter.useful", "filters.spared_reads"),
    ("rocksdb.bytes.read", "reads.bytes"),
    ("rocksdb.bytes.written", "commits.bytes"),
    ("rocksdb.compact.read.bytes", "compactions.read_bytes"),
    ("rocksdb.compact.write.bytes", "compactions.write_bytes"),
    ("rocksdb.flush.write.bytes", "flushes.write_bytes"),
    ("rocksdb.memtable.hit", "buffers.hits"),
    ("rocksdb.memtable.miss", "buffers.misses"),
    ("rocksdb.no.file.opens", "data.opens"),
    ("rocksdb.stall.micros", "stalls.micros"),
    ("rocksdb.wal.bytes", "log.write_bytes"),
    ("rocksdb.wal.synced", "log.syncs"),
];

/// Figures of column families that are summed.
const SUMS: [(&properties::PropName, &str); 8] = [
    (properties::CUR_SIZE_ALL_MEM_TABLES, "buffers.bytes"),
    (properties::ESTIMATE_PENDING_COMPACTION_BYTES, "debt.compaction_bytes"),
    (properties::ESTIMATE_NUM_KEYS, "data.entries"),
    (properties::ESTIMATE_TABLE_READERS_MEM, "data.reader_bytes"),
    (properties::LIVE_SST_FILES_SIZE, "data.live_bytes"),
    (properties::TOTAL_SST_FILES_SIZE, "data.file_bytes"),
    (properties::NUM_IMMUTABLE_MEM_TABLE, "buffers.waiting"),
    (properties::NUM_RUNNING_COMPACTIONS, "compactions.running"),
];

impl Store {
    /// Figures of the whole store.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::new();
        let families = self.families();
        for (property, name) in SUMS {
            let of_family = |family| self.database.property_int_value_cf(family, property).ok().flatten();
            let sum = families.iter().filter_map(|family| of_family(family.handle())).sum();
            statistics.set(name, sum);
        }
        let counters = self.counters();
        for (theirs, ours) in COUNTERS {
            if let Some(count) = counter(&counters, theirs) {
                statistics.set(ours, count);
            }
        }
        let cache = self.tuning.cache();
        statistics.set("cache.limit_bytes", self.cache_bytes());
        statistics.set("cache.page_bytes", cache.get_usage() as u64);
        statistics.set("cache.pinned_bytes", cache.get_pinned_usage() as u64);
        statistics.set("buffers.budget_bytes", self.options.buffers());
        statistics.set("commits.newest", self.newest.read().timestamp().get());
        statistics.set("commits.synced", self.sync_state.synced().get());
        statistics.set("families.count", families.len() as u64);
        statistics.set("intents.bytes", self.intents.memory() as u64);
        statistics.set("intents.entries", self.intents.len() as u64);
        statistics.set("read_claims.ranges", self.read_claims.ranges() as u64);
        statistics.set("read_claims.transactions", self.read_claims.readers() as u64);
        statistics.set("transactions.live", self.live.lock().len() as u64);
        statistics.set("trees.count", self.trees.read().len() as u64);
        statistics
    }

    /// Figures of one tree, and of the column family that it shares.
    pub(crate) fn tree_statistics(&self, id: TreeId) -> Result<Statistics, StorageError> {
        let tree = self.trees.read().get(id)?.clone();
        let mut statistics = Statistics::new();
        let size = self.tree_size(id, BlockingMode::MayBlock)?;
        statistics.set("entries", size.entries);
        statistics.set("content_bytes", size.bytes);
        statistics.set("file_bytes", self.tree_file_bytes(id)?);
        statistics.set("page_bytes", tree.family.settings.page_bytes);
        statistics.set("filter_bits", tree.family.settings.filter_bits);
        for (property, name) in [
            (properties::LIVE_SST_FILES_SIZE, "family.live_bytes"),
            (properties::ESTIMATE_PENDING_COMPACTION_BYTES, "family.debt_bytes"),
            (properties::CUR_SIZE_ALL_MEM_TABLES, "family.buffer_bytes"),
        ] {
            let figure = self.database.property_int_value_cf(tree.family.handle(), property);
            statistics.set(name, figure.ok().flatten().unwrap_or(0));
        }
        Ok(statistics)
    }

    /// The waits of commits for flushes and compactions.
    pub(crate) fn waits(&self) -> Vec<Wait> {
        let counters = self.counters();
        let micros = counter(&counters, "rocksdb.stall.micros").unwrap_or(0);
        // RocksDB counts the time, not how often.
        let stalls = Wait { name: "a commit waits for flushes and compactions", count: 1, micros };
        if micros == 0 { Vec::new() } else { vec![stalls] }
    }

    fn counters(&self) -> String {
        self.database_options.get_statistics().unwrap_or_default()
    }
}

/// One counter out of RocksDB's text.
fn counter(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(" COUNT : "));
    lines.find(|(have, _)| *have == name)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_out_of_rocksdbs_text() {
        let text = "rocksdb.block.cache.miss COUNT : 12\nrocksdb.block.cache.miss.more COUNT : 3\n\
                    rocksdb.db.get.micros P50 : 0.5 COUNT : 7 SUM : 9";
        assert_eq!(counter(text, "rocksdb.block.cache.miss"), Some(12));
        assert_eq!(counter(text, "rocksdb.db.get.micros"), None);
        assert_eq!(counter("", "rocksdb.wal.bytes"), None);
    }
}
